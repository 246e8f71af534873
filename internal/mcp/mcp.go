// Package mcp offers the table of operations to agents, as an MCP server: a tool for each operation, and resources for
// reports, artifacts and prompts. It decides nothing about runs.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/build"
)

// prefix begins the name of every tool, so that it differs from those of other servers.
const prefix = "passbook_"

const instructions = `Passbook runs pipelines of AI agents for hours or days, and records everything in a run directory.
Start a run with passbook_start and follow it with passbook_wait. If needs_input is true, the run waits for an answer:
read passbook_question, ask your user unless your user lets you decide, then call passbook_decide with the id of the
question. available_actions lists what the status allows. A problem names the next step.`

// problemKey is the key of the problem in the metadata of a result that is an error.
const problemKey = "passbook.run/problem"

// Serve answers one client until it closes its end, or ctx ends. Nothing but the protocol is written to out.
func Serve(ctx context.Context, h api.Host, can api.Access, in io.ReadCloser, out io.WriteCloser) error {
	s, err := NewServer(h, can)
	if err != nil {
		return err
	}
	return s.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
}

// NewServer returns a server with the tools that a client with this access may use.
func NewServer(h api.Host, can api.Access) (*sdk.Server, error) {
	s := sdk.NewServer(&sdk.Implementation{Name: "passbook", Title: "Passbook", Version: build.Version()},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}})
	for _, o := range api.Table() {
		if !can.Includes(o.Access) {
			continue
		}
		tool, err := toolOf(o)
		if err != nil {
			return nil, err
		}
		s.AddTool(tool, handler(h, o))
	}
	r := resources{h}
	for _, t := range templates() {
		s.AddResourceTemplate(&t, r.read)
	}
	s.AddReceivingMiddleware(guarded, r.listed)
	return s, nil
}

func toolOf(o api.Operation) (*sdk.Tool, error) {
	input, err := jsonschema.ForType(o.Input, nil)
	if err != nil {
		return nil, fmt.Errorf("describe the input of %s: %w", o.Name, err)
	}
	output, err := jsonschema.ForType(o.Output, nil)
	if err != nil {
		return nil, fmt.Errorf("describe the output of %s: %w", o.Name, err)
	}
	open(output)
	reads := o.Access == api.CanRead
	outside := !reads // agents work with providers and repositories
	return &sdk.Tool{
		Name: prefix + o.Name, Title: o.Summary, Description: strings.TrimSpace(o.Summary + ". " + o.Details),
		InputSchema: input, OutputSchema: output,
		Annotations: &sdk.ToolAnnotations{
			Title: o.Summary, ReadOnlyHint: reads, DestructiveHint: &o.Destructive,
			IdempotentHint: o.Repeatable || reads, OpenWorldHint: &outside,
		},
	}, nil
}

// open allows keys that a later version adds to an output.
func open(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if s.Properties != nil {
		s.AdditionalProperties = nil
	}
	for _, p := range s.Properties {
		open(p)
	}
	open(s.Items)
}

// handler executes an operation as a tool.
func handler(h api.Host, o api.Operation) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		out, err := o.Call(ctx, h, req.Params.Arguments)
		if err != nil {
			return refused(h.ProblemOf(err)), nil
		}
		raw, err := encode(out)
		if err != nil {
			return nil, fmt.Errorf("encode the output of %s: %w", o.Name, err)
		}
		return &sdk.CallToolResult{StructuredContent: json.RawMessage(raw),
			Content: []sdk.Content{&sdk.TextContent{Text: string(raw)}}}, nil
	}
}

// encode writes JSON without escapes that only a browser needs.
func encode(v any) ([]byte, error) {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(strings.TrimSuffix(text.String(), "\n")), err
}

// refused is the result of an operation that reported a problem: a text for the agent, and the problem for its program.
func refused(p api.Problem) *sdk.CallToolResult {
	return &sdk.CallToolResult{
		IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: p.Message}},
		Meta: sdk.Meta{problemKey: p},
	}
}
