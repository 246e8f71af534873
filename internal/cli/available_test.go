package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console"
	"github.com/passbook-run/passbook/internal/console/tokens"
	"github.com/passbook-run/passbook/internal/mcp"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
	"github.com/passbook-run/passbook/workflows/contract"
)

// inStatus are the events after the start of a run, by the status in which they leave it.
func inStatus() map[run.Status][]event {
	asked := func(kind run.Kind, question run.QuestionKind, actions ...string) []event {
		return []event{{kind, run.QuestionRequested{Kind: question, ID: "q-1", Round: 1, Question: "Is it right?",
			Actions: actions}}}
	}
	ended := func(s run.Status) []event { return []event{{run.KindRunEnd, run.RunEnd{Status: s}}} }
	return map[run.Status][]event{
		run.Running:   nil,
		run.Replaying: {{run.KindRunReplaying, run.Source{}}},
		run.Paused:    {{run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}}},
		run.WaitingLimit: {{run.KindRunLimited, run.RunLimited{Limited: *run.NewLimited([]run.LimitedCall{{
			Limit: run.Limit{Kind: run.LimitPlan, Account: "claude-max", Agent: "claude"}, Until: "2099-01-02T13:30:00.000Z",
			N: 1}})}}},
		run.AwaitingPhaseHandoff: asked(run.KindHandoffRequested, run.QuestionHandoff, run.ActionContinue, run.ActionHalt),
		run.AwaitingGateDecision: asked(run.KindGateRequested, run.QuestionGate, run.ActionContinue, run.ActionHalt),
		run.AwaitingHumanReview:  asked(run.KindReviewRequested, run.QuestionReview, run.ActionApprove, run.ActionHalt),
		run.Done:                 ended(run.Done),
		run.Halted:               ended(run.Halted),
		run.Cancelled:            ended(run.Cancelled),
		run.Failed:               ended(run.Failed),
	}
}

// TestEveryClientListsTheSameActions compares the actions that the command line, the HTTP API, MCP and Temporal's Web
// UI offer for the same run, in every status that events record.
func TestEveryClientListsTheSameActions(t *testing.T) {
	w := newHost(t)
	t.Setenv("TEMPORAL_ADDRESS", "")
	h := (&app{settings: config.Settings{StateDir: w.state, RunRoot: filepath.Join(w.root, "runs")}}).host()
	get, call := overHTTP(t, h), overMCP(t, h)
	for status, events := range inStatus() {
		t.Run(string(status), func(t *testing.T) {
			id := "run-" + strings.ReplaceAll(string(status), "_", "-")
			d := w.journaledRun(t, id, run.WordingStages, events...)
			m, err := d.Meta()
			require.NoError(t, err)
			require.Equal(t, status, m.State.Status)
			want := m.State.Available(status)
			require.NotEmpty(t, want)

			var out bytes.Buffer
			Main([]string{"status", id, "--json"}, strings.NewReader(""), &out, io.Discard)
			require.Equal(t, want, available(t, out.Bytes()), "command line")
			byHTTP, byMCP := get("/v1/runs/"+id), call("passbook_status", map[string]any{"run": id})
			require.Equal(t, want, available(t, byHTTP), "HTTP")
			require.Equal(t, want, available(t, byMCP), "MCP")

			shown := regexp.MustCompile(`(?m)^- available actions: (.*)$`).FindStringSubmatch(
				workflows.Details(m.State, contract.Input{}))
			require.Len(t, shown, 2)
			var ops []run.Operation
			for name := range strings.SplitSeq(shown[1], ", ") {
				ops = append(ops, run.Operation(name))
			}
			require.Equal(t, want, ops, "Web UI")
			for _, op := range want {
				require.Contains(t, operationNames(), string(op))
			}
		})
	}
}

func operationNames() (names []string) {
	for _, o := range api.Table() {
		names = append(names, o.Name)
	}
	return names
}

// TestClientsNameNextCommands: what is next, by the id of the run where clients name no directories.
func TestClientsNameNextCommands(t *testing.T) {
	w := newHost(t)
	t.Setenv("TEMPORAL_ADDRESS", "")
	w.journaledRun(t, "run-1", run.WordingStages, inStatus()[run.Paused]...)
	h := (&app{settings: config.Settings{StateDir: w.state, RunRoot: filepath.Join(w.root, "runs")}}).host()
	get, call := overHTTP(t, h), overMCP(t, h)
	require.Contains(t, string(get("/v1/runs/run-1")), `"next":["starter resume run-1"]`)
	require.Contains(t, string(call("passbook_status", map[string]any{"run": "run-1"})),
		`"next":["starter resume `+w.root+`/runs/run-1"]`)
}

func available(t *testing.T, answer []byte) []run.Operation {
	t.Helper()
	var s struct {
		AvailableActions []run.Operation `json:"available_actions"`
	}
	require.NoError(t, json.Unmarshal(answer, &s), string(answer))
	return s.AvailableActions
}

// overHTTP returns a client of a console with a token that can only read.
func overHTTP(t *testing.T, h api.Host) func(path string) []byte {
	t.Helper()
	token, err := tokens.In(h.Settings.StateDir).Create(t.Context(), "reader", api.CanRead, time.Now())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- console.Serve(ctx, console.Options{Host: h, User: "ada", Err: io.Discard},
			console.Listening{Address: "127.0.0.1:0"}, func(_, programs string) error {
				ready <- programs
				return nil
			})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	base := <-ready
	return func(path string) []byte {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		raw, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return raw
	}
}

// overMCP returns a client of an MCP server in this process.
func overMCP(t *testing.T, h api.Host) func(tool string, in map[string]any) []byte {
	t.Helper()
	s, err := mcp.NewServer(h, api.CanOperate)
	require.NoError(t, err)
	here, there := sdk.NewInMemoryTransports()
	_, err = s.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return func(tool string, in map[string]any) []byte {
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: in})
		require.NoError(t, err)
		return []byte(r.Content[0].(*sdk.TextContent).Text)
	}
}
