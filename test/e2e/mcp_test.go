package e2e_test

import (
	"encoding/json"
	"os"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
)

// client starts an MCP server, as a client does.
func (h *environment) client(name string, args ...string) *sdk.ClientSession {
	h.t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: name}, nil).Connect(h.t.Context(), &sdk.CommandTransport{
		Command: h.command(h.t.Context(), append([]string{"mcp"}, args...)...)}, nil)
	require.NoError(h.t, err)
	h.t.Cleanup(func() { _ = c.Close() }) // the context has ended it
	return c
}

// call calls a tool, whose result follows its schema. problem is the text of an error.
func call(t *testing.T, c *sdk.ClientSession, tool string, in map[string]any) (out map[string]any, problem string) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_" + tool, Arguments: in})
	require.NoError(t, err, tool)
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		return nil, text
	}
	for described, err := range c.Tools(t.Context(), nil) {
		require.NoError(t, err)
		if described.Name == "passbook_"+tool {
			schema, err := testenv.Schema(described.OutputSchema)
			require.NoError(t, err, tool)
			require.NoError(t, schema.Validate(r.StructuredContent), tool)
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &out))
	return out, ""
}

// tool calls a tool in a session of its own.
func (h *environment) tool(name string, in map[string]any) map[string]any {
	h.t.Helper()
	out, problem := call(h.t, h.client("story"), name, in)
	require.Empty(h.t, problem, name)
	return out
}

// TestAgentsDecideAtOnce: of two clients that answer a question with different actions at once, one wins, and both
// learn it. The run records the client and the key of its user. A client that may only read has no tool to decide.
func TestAgentsDecideAtOnce(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	require.NoError(t, os.Mkdir(h.dir("definition"), 0o700))
	asks, err := testenv.WriteAsks(h.dir("definition"))
	require.NoError(t, err)
	started := h.tool("start", map[string]any{"config": asks, "directory": h.dir("run")})
	id := started["run_id"].(string)
	clients := []*sdk.ClientSession{h.client("one"), h.client("two"), h.client("reader", "--can", "read")}
	waited := make([]map[string]any, len(clients))
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() { waited[i], _ = call(t, c, "wait", map[string]any{"run": id}) })
	}
	all.Wait()
	for _, w := range waited {
		require.Equal(t, true, w["needs_input"])
		require.Contains(t, w["available_actions"], "decide")
	}
	question := waited[0]["question"].(map[string]any)["id"]
	problems := make([]string, 2)
	for i, action := range []string{run.ActionContinue, run.ActionHalt} {
		all.Go(func() {
			_, problems[i] = call(t, clients[i], "decide",
				map[string]any{"run": id, "action": action, "question": question})
		})
	}
	all.Wait()
	require.NotEqual(t, problems[0] == "", problems[1] == "", "one of them wins: %q", problems)
	_, err = clients[2].CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_decide"})
	require.ErrorContains(t, err, "unknown tool")

	until(t, "the decision is recorded", func() bool {
		return len(metaOf(t, h.dir("run")).State.Decisions) == 1
	})
	journal := string(read(t, h.dir("run/events.jsonl")))
	winner := map[bool]string{true: "one", false: "two"}[problems[0] == ""]
	require.Regexp(t, `"decided_by":"`+winner+` for [^"]+","auth":"key `, journal)
}
