package traces

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"go.opentelemetry.io/otel/sdk/resource"
	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/passbook-run/passbook/internal/build"
)

// scope names who made the spans.
const scope = "github.com/passbook-run/passbook"

// Batch is the number of spans of one request.
const Batch = 512

// Resource describes this program: OTEL_SERVICE_NAME, or else passbook, and OTEL_RESOURCE_ATTRIBUTES.
func Resource(ctx context.Context) (*resourcepb.Resource, error) {
	env, err := resource.New(ctx, resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("read OTEL_RESOURCE_ATTRIBUTES: %w; write KEY=VALUE,KEY=VALUE", err)
	}
	out, named := &resourcepb.Resource{}, false
	for _, kv := range env.Attributes() {
		named = named || kv.Key == "service.name"
		out.Attributes = append(out.Attributes, text(string(kv.Key), kv.Value.String()))
	}
	if !named {
		out.Attributes = append([]*commonpb.KeyValue{text("service.name", "passbook")}, out.Attributes...)
	}
	return out, nil
}

// request returns spans in the form of OTLP.
func request(r *resourcepb.Resource, spans []*Span) []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{Resource: r, ScopeSpans: []*tracepb.ScopeSpans{{
		Scope: &commonpb.InstrumentationScope{Name: scope, Version: build.Version()}, Spans: spans,
	}}}}
}

// Write writes spans as one line of OTLP JSON, as the file exporter of the OpenTelemetry Collector does.
func Write(w io.Writer, r *resourcepb.Resource, spans []*Span) error {
	raw, err := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(
		&collectorpb.ExportTraceServiceRequest{ResourceSpans: request(r, spans)})
	if err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	var line any
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("encode spans: %w", err)
	}
	hexIDs(line)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(line)
}

// hexIDs writes ids in hex digits: OTLP JSON does, other than the JSON of protobuf.
func hexIDs(node any) {
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			hexIDs(child)
		}
	case map[string]any:
		for key, child := range n {
			switch s, ok := child.(string); {
			case !ok:
				hexIDs(child)
			case key == "traceId" || key == "spanId" || key == "parentSpanId":
				if id, err := base64.StdEncoding.DecodeString(s); err == nil {
					n[key] = hex.EncodeToString(id)
				}
			}
		}
	}
}
