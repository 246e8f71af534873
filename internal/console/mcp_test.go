package console

import (
	"net/http"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/testenv"
)

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func (d *desk) mcp(can api.Access) *sdk.ClientSession {
	d.t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(d.t.Context(), &sdk.StreamableClientTransport{
		Endpoint: "http://" + d.at + "/mcp", HTTPClient: &http.Client{Transport: bearer(d.tokens[can])},
		DisableStandaloneSSE: true}, nil)
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, c.Close()) })
	return c
}

// TestToolsReturnWhatTheirSchemasDescribe calls every tool that reads.
func TestToolsReturnWhatTheirSchemasDescribe(t *testing.T) {
	c := newDesk(t).mcp(api.CanRead)
	for tool, err := range c.Tools(t.Context(), nil) {
		require.NoError(t, err)
		schema, err := testenv.Schema(tool.OutputSchema)
		require.NoError(t, err)
		in := map[string]any{"run": letter}
		switch tool.Name {
		case "passbook_list", "passbook_inbox":
			delete(in, "run")
		case "passbook_pass":
			in["pass"] = 4
		}
		r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool.Name, Arguments: in})
		require.NoError(t, err)
		require.False(t, r.IsError, "%s: %v", tool.Name, r.Content)
		require.NoError(t, schema.Validate(r.StructuredContent), tool.Name)
	}
}

// TestMCPOffersWhatTheTokenAllows: a client has the tools of its token, acts in its name, and names runs by ids.
func TestMCPOffersWhatTheTokenAllows(t *testing.T) {
	d := newDesk(t)
	for _, can := range api.Accesses() {
		c := d.mcp(can)
		want := 0
		for _, o := range api.Table() {
			if can.Includes(o.Access) {
				want++
			}
		}
		tools, err := c.ListTools(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, tools.Tools, want)
	}
	reader, operator := d.mcp(api.CanRead), d.mcp(api.CanOperate)
	r, err := reader.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_status",
		Arguments: map[string]any{"run": letter}})
	require.NoError(t, err)
	require.False(t, r.IsError)
	require.Contains(t, r.Content[0].(*sdk.TextContent).Text, `"needs_input":true`)
	_, err = reader.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_pause",
		Arguments: map[string]any{"run": letter}})
	require.Error(t, err, "a reader has no tool that changes a run")
	require.Empty(t, d.connected)

	r, err = operator.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_pause",
		Arguments: map[string]any{"run": letter}})
	require.NoError(t, err)
	require.True(t, r.IsError, "there is no server")
	require.Equal(t, []access.Identity{{Name: "to-operate", Auth: "token to-operate", Can: api.CanOperate}}, d.connected)
	for _, name := range []string{d.s.host.Settings.RunRoot + "/letter", ".", "testdata/letter", "../letter", "/etc"} {
		r, err := reader.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_status",
			Arguments: map[string]any{"run": name}})
		require.NoError(t, err)
		require.True(t, r.IsError, "%s is a directory", name)
	}
	read, err := reader.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "passbook://runs/" + letter + "/artifact"})
	require.NoError(t, err)
	require.Contains(t, read.Contents[0].Text, "A letter")

	require.NoError(t, d.s.tokens.Revoke(t.Context(), "to-read"))
	_, err = reader.ListTools(t.Context(), nil)
	require.Error(t, err, "the token is revoked")
}
