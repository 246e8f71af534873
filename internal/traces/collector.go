package traces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

	"github.com/passbook-run/passbook/config"
)

// Collector sends spans to an OpenTelemetry Collector, or to another program that receives OTLP over HTTP. The
// variables OTEL_EXPORTER_OTLP_HEADERS, _TIMEOUT, _COMPRESSION and _CERTIFICATE apply.
type Collector struct {
	client   otlptrace.Client
	resource *resourcepb.Resource
	url      string // without secrets
}

const tracesPath = "/v1/traces"

// Connect returns a collector at a URL. A URL without a path gets that of OTLP. Within one request the client repeats
// what the collector could not accept for at most a time.
func Connect(ctx context.Context, address string, repeat time.Duration) (*Collector, error) {
	u, err := url.Parse(address)
	shown := config.Masked(address)
	switch {
	case err != nil:
		return nil, errors.New("the address is not a URL; write http://HOST:4318") // it may contain a secret
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("%q is not an http or https URL; write http://HOST:4318", shown)
	case u.Port() == "4317":
		return nil, fmt.Errorf("%s: port 4317 is that of OTLP over gRPC; use OTLP over HTTP, such as %s://%s:4318", shown,
			u.Scheme, u.Hostname())
	case os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL") == "grpc", os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL") == "grpc":
		return nil, errors.New("OTEL_EXPORTER_OTLP_PROTOCOL is grpc; set it to http/protobuf")
	}
	u.Path = cmp.Or(strings.TrimSuffix(u.Path, "/"), tracesPath)
	r, err := Resource(ctx)
	if err != nil {
		return nil, err
	}
	c := otlptracehttp.NewClient(otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithRetry(
		otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: repeat,
			MaxElapsedTime: repeat}))
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("connect to %s: %w", shown, err)
	}
	return &Collector{client: c, resource: r, url: config.Masked(u.String())}, nil
}

// Send sends spans. The collector has accepted them when it returns nil.
func (c *Collector) Send(ctx context.Context, spans []*Span) error {
	if err := c.client.UploadTraces(ctx, request(c.resource, spans)); err != nil {
		return fmt.Errorf("send spans to %s: %w", c.url, err)
	}
	return nil
}

// URL is the address of the collector, without secrets.
func (c *Collector) URL() string { return c.url }

// Close ends the connection.
func (c *Collector) Close(ctx context.Context) error { return c.client.Stop(ctx) }
