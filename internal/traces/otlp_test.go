package traces

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

// alone removes the variables of OpenTelemetry.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_ENDPOINT",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_PROTOCOL",
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"} {
		t.Setenv(name, "")
	}
}

func TestLinesAreOTLP(t *testing.T) {
	alone(t)
	t.Setenv("OTEL_SERVICE_NAME", "review-host")
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a")
	r, err := Resource(t.Context())
	require.NoError(t, err)
	f := NewFold("run-1")
	spans := spansOf(f, eventsIn(t, "every-kind.jsonl"))
	var one, two bytes.Buffer
	require.NoError(t, Write(&one, r, spans))
	require.NoError(t, Write(&two, r, spansOf(NewFold("run-1"), eventsIn(t, "every-kind.jsonl"))))
	require.Equal(t, one.String(), two.String(), "an export is repeatable")
	require.Equal(t, 1, bytes.Count(one.Bytes(), []byte("\n")))
	require.True(t, bytes.HasPrefix(one.Bytes(), []byte(`{"resourceSpans":`)))
	var line struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []struct{ Key string } }
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, StartTimeUnixNano string
					Kind                                             int
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(one.Bytes(), &line))
	require.Len(t, line.ResourceSpans[0].Resource.Attributes, 2)
	require.Len(t, line.ResourceSpans[0].ScopeSpans[0].Spans, len(spans))
	for _, s := range line.ResourceSpans[0].ScopeSpans[0].Spans {
		require.Equal(t, ID("run-1"), s.TraceID)
		require.Regexp(t, `^[0-9a-f]{16}$`, s.SpanID)
		require.Regexp(t, `^([0-9a-f]{16})?$`, s.ParentSpanID)
		require.Regexp(t, `^[0-9]{19}$`, s.StartTimeUnixNano)
		require.Positive(t, s.Kind)
	}
}

// receiver answers as a collector and keeps what it got.
type receiver struct {
	*httptest.Server
	status  int
	answer  *collectorpb.ExportTraceServiceResponse
	got     []*Span
	path    string
	headers http.Header
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	rc := &receiver{status: http.StatusOK}
	rc.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc.path, rc.headers = r.URL.Path, r.Header
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			var err error
			body, err = gzip.NewReader(r.Body)
			require.NoError(t, err)
		}
		raw, err := io.ReadAll(body)
		require.NoError(t, err)
		var req collectorpb.ExportTraceServiceRequest
		require.NoError(t, proto.Unmarshal(raw, &req))
		if rc.status == http.StatusOK {
			rc.got = append(rc.got, req.ResourceSpans[0].ScopeSpans[0].Spans...)
		}
		out, err := proto.Marshal(rc.answer)
		require.NoError(t, err)
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.WriteHeader(rc.status)
		_, err = w.Write(out)
		require.NoError(t, err)
	}))
	t.Cleanup(rc.Close)
	return rc
}

func TestCollectorGetsSpans(t *testing.T) {
	alone(t)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key=sesame")
	rc := newReceiver(t)
	spans := spansOf(NewFold("run-1"), eventsIn(t, "every-kind.jsonl"))
	for url, path := range map[string]string{"": "/v1/traces", "/": "/v1/traces", "/in/otlp": "/in/otlp"} {
		c, err := Connect(t.Context(), rc.URL+url, time.Second)
		require.NoError(t, err)
		rc.got = nil
		require.NoError(t, c.Send(t.Context(), spans))
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, path, rc.path)
		require.Equal(t, "sesame", rc.headers.Get("Api-Key"))
		require.Len(t, rc.got, len(spans))
		for i := range spans {
			require.True(t, proto.Equal(spans[i], rc.got[i]))
		}
	}
	c, err := Connect(t.Context(), rc.URL, time.Second)
	require.NoError(t, err)
	rc.status = http.StatusBadRequest
	require.ErrorContains(t, c.Send(t.Context(), spans), "400 Bad Request")
	rc.status = http.StatusOK
	rc.answer = &collectorpb.ExportTraceServiceResponse{PartialSuccess: &collectorpb.ExportTracePartialSuccess{
		RejectedSpans: 2, ErrorMessage: "too old"}}
	require.ErrorContains(t, c.Send(t.Context(), spans), "too old")
	rc.Close()
	require.ErrorContains(t, c.Send(t.Context(), spans), "send spans to "+rc.URL+"/v1/traces")
}

func TestAddressesOfCollectors(t *testing.T) {
	alone(t)
	for address, want := range map[string]string{
		"ftp://collector":                    "is not an http or https URL",
		"http://":                            "is not an http or https URL",
		"http://ada:secret@h:4317":           "port 4317 is that of OTLP over gRPC; use OTLP over HTTP",
		"http://h/\x01?api_key=secret":       "the address is not a URL",
		"grpc://ada:secret@collector/x?a=b":  "is not an http or https URL",
		"file:///tmp/x?token=secret&other=1": "is not an http or https URL",
	} {
		_, err := Connect(t.Context(), address, time.Second)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "secret")
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	_, err := Connect(t.Context(), "http://h:4318", time.Second)
	require.ErrorContains(t, err, "set it to http/protobuf")
}

func TestEndpointOfTheEnvironment(t *testing.T) {
	alone(t)
	require.Empty(t, Endpoint())
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318/")
	require.Equal(t, "http://h:4318/v1/traces", Endpoint())
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://h:4318/mine")
	require.Equal(t, "http://h:4318/mine", Endpoint())
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	require.Empty(t, Endpoint())
	t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
	t.Setenv("OTEL_SDK_DISABLED", "true")
	require.Empty(t, Endpoint())
}
