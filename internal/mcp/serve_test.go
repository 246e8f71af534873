package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// wire is a client that writes the lines of the protocol itself.
type wire struct {
	t     *testing.T
	in    *io.PipeWriter
	out   *bufio.Reader
	ended chan error
}

func newWire(t *testing.T, h api.Host) *wire {
	t.Helper()
	in, write := io.Pipe()
	read, out := io.Pipe()
	w := &wire{t: t, in: write, out: bufio.NewReader(read), ended: make(chan error, 1)}
	go func() {
		w.ended <- Serve(t.Context(), h, api.CanOperate, in, out)
		_ = out.Close()
	}()
	w.send(`{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-06-18",` +
		`"capabilities":{},"clientInfo":{"name":"wire\u001b[2J","version":"1"}}}`)
	require.Contains(t, w.next(), `"id":"hello"`)
	w.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return w
}

func (w *wire) send(line string) {
	w.t.Helper()
	_, err := io.WriteString(w.in, line+"\n")
	require.NoError(w.t, err)
}

func (w *wire) next() string {
	w.t.Helper()
	line, err := w.out.ReadString('\n')
	require.NoError(w.t, err)
	return line
}

// openRun makes the directory of a running run that no server knows.
func (d *desk) openRun(task string) {
	d.t.Helper()
	folder := d.t.TempDir()
	dir := rundir.At(folder)
	payload, err := run.Payload(run.RunStart{Pipeline: "p", RunID: "r-1", ThreadID: "r-1", Epoch: 1, Task: task})
	require.NoError(d.t, err)
	line, err := run.Event{Seq: 1, TS: "2026-01-02T03:04:05.000Z", Kind: run.KindRunStart, Payload: payload}.Line()
	require.NoError(d.t, err)
	claim := `{"version":1,"run_id":"r-1","pipeline":"p"}`
	require.NoError(d.t, os.WriteFile(dir.Path(rundir.ClaimFile), []byte(claim), 0o600))
	require.NoError(d.t, os.WriteFile(dir.Path(rundir.EventsFile), []byte(line+"\n"), 0o600))
	require.NoError(d.t, operations.Index(d.host.Settings.StateDir, "r-1", folder))
}

// TestMalformedRequests: each request gets an error, and the server answers the next one.
func TestMalformedRequests(t *testing.T) {
	w := newWire(t, newDesk(t, api.CanOperate).host)
	for _, row := range []struct {
		params string
		code   int // of the JSON-RPC error; zero: the problem of a tool
	}{
		{`"method":"tools/call","params":{"name":"passbook_erase","arguments":{}}`, jsonrpc.CodeInvalidParams},
		{`"method":"tools/call","params":{"name":"","arguments":{}}`, jsonrpc.CodeInvalidParams},
		{`"method":"tools/call","params":{"name":7}`, jsonrpc.CodeInvalidParams},
		{`"method":"tools/call"`, jsonrpc.CodeInvalidRequest},
		{`"method":"tools/erase","params":{}`, jsonrpc.CodeMethodNotFound},
		{`"method":"tools/call","params":{"name":"passbook_status"}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_status","arguments":null}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_status","arguments":{"run":null}}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_status","arguments":["r-1"]}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_status","arguments":"r-1"}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_status","arguments":{"run":7}}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_wait","arguments":{"run":"r-1","seconds":1e99}}`, 0},
		{`"method":"tools/call","params":{"name":"passbook_start","arguments":{}}`, 0},
		{`"method":"resources/read","params":{"uri":"file:///etc/passwd"}`, jsonrpc.CodeInvalidParams},
		{`"method":"resources/read","params":{"uri":null}`, jsonrpc.CodeInvalidParams},
		{`"method":"resources/read"`, jsonrpc.CodeInvalidRequest},
	} {
		w.send(`{"jsonrpc":"2.0","id":1,` + row.params + `}`)
		var answer struct {
			Error  jsonrpc.Error
			Result struct {
				IsError bool
				Meta    map[string]api.Problem `json:"_meta"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(w.next()), &answer), row.params)
		require.EqualValues(t, row.code, answer.Error.Code, row.params)
		if row.code == 0 {
			require.True(t, answer.Result.IsError, row.params)
			require.Equal(t, api.CodeInvalid, answer.Result.Meta[problemKey].Code, row.params)
		}
	}
	require.NoError(t, w.in.Close())
	require.NoError(t, <-w.ended)
}

// TestHugeMessage: a message without end does not fill the memory.
func TestHugeMessage(t *testing.T) {
	w := newWire(t, newDesk(t, api.CanOperate).host)
	go func() {
		_, _ = io.WriteString(w.in, `{"jsonrpc":"2.0","id":1,"method":"`+strings.Repeat("x", 2*maxMessage)) // it is closed
	}()
	_, err := w.out.ReadString('\n')
	require.ErrorIs(t, err, io.EOF)
	require.ErrorContains(t, <-w.ended, "each line is one JSON-RPC message of at most 1 MiB: correct the client")
}

// TestUnrelatedInputIsReported: the program that runs this command sends something else.
func TestUnrelatedInputIsReported(t *testing.T) {
	w := newWire(t, newDesk(t, api.CanOperate).host)
	w.send("garbage")
	require.ErrorContains(t, <-w.ended, "read the messages of the MCP client: invalid character 'g'")
}

// TestWaits: several waits do not block other requests. A cancelled one ends at once.
func TestWaits(t *testing.T) {
	d := newDesk(t, api.CanRead)
	d.openRun("Add lines.")
	w := newWire(t, d.host)
	wait := `{"jsonrpc":"2.0","id":%,"method":"tools/call","params":{"name":"passbook_wait","arguments":{"run":"r-1",` +
		`"seconds":3600}}}`
	for _, id := range []string{"1", "2", "3"} {
		w.send(strings.Replace(wait, "%", id, 1))
	}
	w.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the user left"}}`)
	require.Contains(t, w.next(), `"id":2`)
	w.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"passbook_status","arguments":{"run":"r-1"}}}`)
	answer := w.next()
	require.Contains(t, answer, `"id":4`)
	require.Contains(t, answer, `"status":"running"`)
	require.NoError(t, w.in.Close())
	require.NoError(t, <-w.ended, "the client has gone, and two of its waits are open")
}

// TestServeEndsAfterItsOperations: an operation that a leaving client has begun is cancelled, and ends first.
func TestServeEndsAfterItsOperations(t *testing.T) {
	d := newDesk(t, api.CanOperate)
	d.openRun("Add lines.")
	h, begun, cleaning, clean := d.host, make(chan bool), make(chan bool), make(chan bool)
	h.Connect = func(ctx context.Context) (operations.Operator, func(), error) {
		close(begun)
		<-ctx.Done()
		close(cleaning)
		<-clean
		return operations.Operator{}, nil, ctx.Err()
	}
	w := newWire(t, h)
	w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"passbook_pause","arguments":{"run":"r-1"}}}`)
	<-begun
	require.NoError(t, w.in.Close())
	<-cleaning
	select {
	case <-w.ended:
		t.Fatal("the server ended before its operation")
	case <-time.After(50 * time.Millisecond):
	}
	close(clean)
	require.NoError(t, <-w.ended)
}

// TestRunsRecordTheClient: messages of a client name it beside its user, on one line.
func TestRunsRecordTheClient(t *testing.T) {
	d := newDesk(t, api.CanOperate)
	d.openRun("Add lines.")
	d.host.Connect = func(context.Context) (operations.Operator, func(), error) {
		return operations.Operator{By: "ada"}, func() {}, nil
	}
	for client, want := range map[string]string{
		"claude-code": "claude-code for ada", "": "ada", " ": "ada", "a\nb\x1b[2J\u202e": `a\nb\x1b[2J\u202e for ada`,
		strings.Repeat("x", 100): strings.Repeat("x", 39) + "… for ada",
	} {
		got, h := "", naming(d.host)
		connect := h.Connect
		h.Connect = func(ctx context.Context) (operations.Operator, func(), error) {
			o, release, err := connect(ctx)
			got = o.By
			return o, release, errors.Join(err, api.ErrNoServer)
		}
		s, err := NewServer(h, api.CanOperate)
		require.NoError(t, err)
		s.AddReceivingMiddleware(identified)
		here, there := sdk.NewInMemoryTransports()
		_, err = s.Connect(t.Context(), there, nil)
		require.NoError(t, err)
		c, err := sdk.NewClient(&sdk.Implementation{Name: client}, nil).Connect(t.Context(), here, nil)
		require.NoError(t, err)
		_, err = c.CallTool(t.Context(), &sdk.CallToolParams{Name: prefix + "pause",
			Arguments: map[string]any{"run": "r-1"}})
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, c.Close())
	}
}

// TestResources reads the record of a run, lists it, and refuses what is not there or too large.
func TestResources(t *testing.T) {
	d := newDesk(t, api.CanRead)
	d.openRun("Add lines to \x1b[2J work.")
	listed, err := d.client.ListResources(t.Context(), nil)
	require.NoError(t, err)
	require.Equal(t, "private", listed.CacheScope)
	require.Len(t, listed.Resources, 1)
	read := func(uri string) (*sdk.ReadResourceResult, error) {
		return d.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
	}
	r, err := read(listed.Resources[0].URI)
	require.NoError(t, err)
	require.Contains(t, r.Contents[0].Text, "# Evidence of r-1")
	out, problem := d.call("status", map[string]any{"run": "r-1"}) // with the warning about foreign texts
	require.Empty(t, problem)
	require.NotEmpty(t, out)
	r, err = read("passbook://runs/r-1/report.html")
	require.NoError(t, err)
	require.Equal(t, "text/html", r.Contents[0].MIMEType)
	for _, uri := range []string{"passbook://runs/r-1/passes/1/prompt", "passbook://runs/r-1/passes/99/reply",
		"passbook://runs/r-1/artifact", "passbook://runs/r-2/artifact"} {
		_, err = read(uri)
		require.ErrorContains(t, err, "not found", uri)
	}
}
