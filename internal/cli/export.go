package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/traces"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// ExportReport is the output of `export --json`.
type ExportReport struct {
	RunID   string `json:"run_id"`
	TraceID string `json:"trace_id"`
	To      string `json:"to"` // file or URL, without secrets
	Spans   int    `json:"spans"`
	Open    int    `json:"open_spans"`    // that have not ended, and are not exported
	Skipped int    `json:"skipped_lines"` // of events.jsonl that are damaged
}

// exportMark begins a file with an exported trace.
const exportMark = `{"resourceSpans":`

// exportRetry is how long a collector that is busy is asked again.
const exportRetry = 10 * time.Second

func (a *app) export() *cobra.Command {
	var to string
	var force bool
	cmd := &cobra.Command{
		Use: "export [RUN]", Short: "Export a run as an OpenTelemetry trace",
		Long: `Export a run as an OpenTelemetry trace, from its events alone, also of a directory that another program
wrote. No server is needed. Ids follow from the run: repeated exports are the same trace. Spans that have not ended are
left out: export a run that continues again when it has ended.

A file gets one line of OTLP JSON for each 512 spans, as the file exporter of the OpenTelemetry Collector writes them.
A URL is that of a collector that receives OTLP over HTTP; without a path it gets /v1/traces. For its headers,
certificates and time-outs, set OTEL_EXPORTER_OTLP_HEADERS and the other variables of OpenTelemetry.`,
		Example: "  starter export --otlp trace.jsonl runs/app\n  starter export --otlp http://127.0.0.1:4318 runs/app",
	}
	cmd.Flags().StringVar(&to, "otlp", "", "file or URL; - prints the lines")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is not an exported trace")
	asJSON := jsonFlag(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error {
		switch {
		case to == "":
			return asUsage(errors.New("name a file or a URL: starter export --otlp FILE|URL [RUN]"))
		case to == "-" && *asJSON:
			return asUsage(errors.New("--otlp - and --json exclude each other: name a file"))
		}
		return nil
	}
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		r, err := a.exportTo(ctx, d, to, force)
		if err != nil {
			return fmt.Errorf("export %s: %w", d.Root, err)
		}
		out := a.out
		if to == "-" {
			out = a.err
		}
		return show(a, *asJSON, r, func(r ExportReport) { printExport(out, r) })
	})
}

func printExport(w io.Writer, r ExportReport) {
	fmt.Fprintf(w, "Exported %s of trace %s to %s\n", run.Plural(r.Spans, "span"), r.TraceID, r.To)
	if r.Open > 0 {
		fmt.Fprintf(w, "%s not ended and left out: export the run again when it has ended.\n", haveNot(r.Open))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(w, "%s of events.jsonl skipped; run: starter check %s\n", run.Plural(r.Skipped, "damaged line"), r.RunID)
	}
}

func haveNot(n int) string {
	if n == 1 {
		return "1 span has"
	}
	return fmt.Sprintf("%d spans have", n)
}

func (a *app) exportTo(ctx context.Context, d rundir.Dir, to string, force bool) (ExportReport, error) {
	if strings.Contains(to, "://") {
		return a.exportToURL(ctx, d, to)
	}
	resource, err := traces.Resource(ctx)
	if err != nil {
		return ExportReport{}, err
	}
	var lines bytes.Buffer
	sum, err := traces.Read(d, func(spans []*traces.Span) error { return traces.Write(&lines, resource, spans) })
	if err != nil {
		return ExportReport{}, err
	}
	if to == "-" {
		_, err = lines.WriteTo(a.raw)
		return exported(sum, "the standard output"), err
	}
	path, err := filepath.Abs(to)
	if err == nil {
		err = replaceable(path, force, "an exported trace", exportMark)
	}
	if err == nil {
		err = durable.Disk{}.WriteFile(path, lines.Bytes(), 0o644)
	}
	return exported(sum, path), err
}

func (a *app) exportToURL(ctx context.Context, d rundir.Dir, to string) (ExportReport, error) {
	c, err := traces.Connect(ctx, to, exportRetry)
	if err != nil {
		return ExportReport{}, asUsage(err)
	}
	sum, err := traces.Read(d, func(spans []*traces.Span) error { return c.Send(ctx, spans) })
	return exported(sum, c.URL()), errors.Join(err, c.Close(ctx))
}

func exported(s traces.Summary, to string) ExportReport {
	return ExportReport{RunID: s.RunID, TraceID: s.TraceID, To: to, Spans: s.Spans, Open: s.Open, Skipped: s.Skipped}
}
