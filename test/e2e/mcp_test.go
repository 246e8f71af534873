package e2e_test

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
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

// tool calls a tool in a separate session.
func (h *environment) tool(name string, in map[string]any) map[string]any {
	h.t.Helper()
	out, problem := call(h.t, h.client("story"), name, in)
	require.Empty(h.t, problem, name)
	return out
}
