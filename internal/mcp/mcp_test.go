package mcp

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/forgery"
)

// desk is a client that talks to a server in this process. There is no Temporal server.
type desk struct {
	t       *testing.T
	client  *sdk.ClientSession
	host    api.Host
	schemas map[string]*jsonschema.Schema // of outputs, by the name of the tool
}

func newDesk(t *testing.T, can api.Access) *desk {
	t.Helper()
	root := t.TempDir()
	t.Setenv("TEMPORAL_ADDRESS", "")
	h := api.Host{
		Settings: config.Settings{StateDir: filepath.Join(root, "state"), RunRoot: filepath.Join(root, "runs")},
		Program:  "starter", Clock: func() run.Clock { return run.Clock{Now: time.Now(), Zone: time.UTC} },
		Connect: func(context.Context) (operations.Operator, func(), error) {
			return operations.Operator{}, nil, api.ErrNoServer
		},
	}
	s, err := NewServer(h, can)
	require.NoError(t, err)
	here, there := sdk.NewInMemoryTransports()
	_, err = s.Connect(t.Context(), there, nil)
	require.NoError(t, err)
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), here, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	d := &desk{t: t, client: c, host: h, schemas: map[string]*jsonschema.Schema{}}
	for tool, err := range c.Tools(t.Context(), nil) {
		require.NoError(t, err)
		d.schemas[tool.Name] = compiled(t, tool.OutputSchema)
	}
	return d
}

// compiled validates a schema as a client gets it.
func compiled(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	s, err := testenv.Schema(schema)
	require.NoError(t, err)
	require.Equal(t, []string{"object"}, s.Types.ToStrings())
	return s
}

// call calls a tool. Its output follows its schema, and the text is the same JSON.
func (d *desk) call(tool string, input any) (out map[string]any, problem api.Problem) {
	d.t.Helper()
	r, err := d.client.CallTool(d.t.Context(), &sdk.CallToolParams{Name: prefix + tool, Arguments: input})
	require.NoError(d.t, err, tool)
	if !r.IsError && row(d.t, tool).Foreign {
		require.Equal(d.t, foreign, r.Content[1].(*sdk.TextContent).Text)
		r.Content = r.Content[:1]
	}
	require.Len(d.t, r.Content, 1)
	text := r.Content[0].(*sdk.TextContent).Text
	if r.IsError {
		raw, err := json.Marshal(r.Meta[problemKey])
		require.NoError(d.t, err)
		require.NoError(d.t, json.Unmarshal(raw, &problem))
		require.Equal(d.t, text, problem.Message)
		require.Nil(d.t, r.StructuredContent, "%s: an error does not follow the schema of the output", tool)
		require.Contains(d.t, row(d.t, tool).Problems, problem.Code, "%s: %s", tool, text)
		return nil, problem
	}
	require.NoError(d.t, d.schemas[prefix+tool].Validate(r.StructuredContent), "%s: %s", tool, text)
	require.NoError(d.t, json.Unmarshal([]byte(text), &out))
	require.Equal(d.t, r.StructuredContent, any(out))
	return out, problem
}

func row(t *testing.T, name string) api.Operation {
	t.Helper()
	all := api.Table()
	i := slices.IndexFunc(all, func(o api.Operation) bool { return o.Name == name })
	require.NotEqual(t, -1, i, name)
	return all[i]
}

func TestToolsFollowTheTable(t *testing.T) {
	for _, can := range api.Accesses() {
		d := newDesk(t, can)
		var listed []string
		for tool, err := range d.client.Tools(t.Context(), nil) {
			require.NoError(t, err)
			name, ok := strings.CutPrefix(tool.Name, prefix)
			require.True(t, ok, tool.Name)
			listed = append(listed, name)
			o := row(t, name)
			require.Equal(t, o.Access == api.CanRead, tool.Annotations.ReadOnlyHint, name)
			require.Equal(t, o.Destructive, *tool.Annotations.DestructiveHint, name)
			require.Equal(t, reflect.Struct, o.Input.Kind(), name)
			require.NotEmpty(t, tool.Description)
			compiled(t, tool.InputSchema)
		}
		var want []string
		for _, o := range api.Table() {
			if slices.Index(api.Accesses(), o.Access) <= slices.Index(api.Accesses(), can) {
				want = append(want, o.Name)
			}
		}
		require.ElementsMatch(t, want, listed, can)
	}
	reader := newDesk(t, api.CanRead)
	_, err := reader.client.CallTool(t.Context(), &sdk.CallToolParams{Name: "passbook_cancel",
		Arguments: map[string]any{"run": "x"}})
	require.Error(t, err, "a reader has no tool that changes a run")
}

// hostile are names of runs and paths that an agent may be made to send.
var hostile = []string{
	"", ".", "..", "/", "/etc", "../../../etc/passwd", "no-such-run", "\x00", "a\nb", "$(reboot)", "`id`", "; rm -rf /",
	"-x", "--help", "%2e%2e%2f", "\u202egnp.exe", "\x1b[2J", strings.Repeat("a/", 3000), "file:///etc/passwd", "🙂",
	"<script>alert(1)</script>", `{"run":"x"}`,
}

// TestHostileInputs calls every tool with hostile strings in every field, and with values of another type. Each answer
// is a problem of the row, and nothing is written.
func TestHostileInputs(t *testing.T) {
	d := newDesk(t, api.CanOperate)
	t.Chdir(t.TempDir())
	for _, o := range api.Table() {
		for i := range o.Input.NumField() {
			key, _, _ := strings.Cut(o.Input.Field(i).Tag.Get("json"), ",")
			if key == "-" {
				continue
			}
			_, p := d.call(o.Name, map[string]any{key: map[string]any{"a": 1}})
			require.Equal(t, api.CodeInvalid, p.Code, "%s: %s", o.Name, key)
			if o.Input.Field(i).Type.Kind() != reflect.String || o.Name == "list" || o.Name == "wait" {
				continue
			}
			for _, text := range hostile {
				_, p := d.call(o.Name, map[string]any{key: text})
				require.NotEmpty(t, p.Message, "%s: %s is %q", o.Name, key, text)
				require.NotEqual(t, api.CodeUnavailable, p.Code)
			}
		}
		_, p := d.call(o.Name, map[string]any{"no such key": 1})
		require.Equal(t, api.CodeInvalid, p.Code)
		require.Contains(t, p.Message, o.Name+": ")
	}
	for _, text := range hostile {
		_, p := d.call("wait", map[string]any{"run": text, "seconds": 1})
		require.NotEmpty(t, p.Message)
		for _, uri := range []string{"passbook://runs/" + text + "/artifact", "passbook://runs/x/" + text, text,
			"passbook://runs/x/passes/" + text + "/prompt", "passbook://" + text + "/x/artifact"} {
			_, err := d.client.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			require.Error(t, err, "%q", uri)
		}
	}
	empty(t, ".")
	empty(t, filepath.Dir(d.host.Settings.StateDir))
}

// empty requires a folder without files.
func empty(t *testing.T, folder string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		require.True(t, e.IsDir(), "%s was written", path)
		return nil
	}))
}

// TestToolsReturnWhatTheirSchemasDescribe calls every tool that reads, for a recorded run that asks a question.
func TestToolsReturnWhatTheirSchemasDescribe(t *testing.T) {
	const letter = "b654562e-1523-486a-8b74-0d5ef482ff96"
	d := newDesk(t, api.CanRead)
	require.NoError(t, os.CopyFS(filepath.Join(d.host.Settings.RunRoot, "letter"),
		os.DirFS("../console/testdata/letter")))
	for tool := range d.schemas {
		name, in := strings.TrimPrefix(tool, prefix), map[string]any{"run": letter}
		switch name {
		case "list", "inbox":
			delete(in, "run")
		case "pass":
			in["pass"] = 4
		}
		out, problem := d.call(name, in)
		require.Empty(t, problem, tool)
		require.NotEmpty(t, out, tool)
	}
}

// TestForgedJournalProvesNoAuthor: the events of a directory that this machine has not recorded can be forged, and their
// chain too. The outputs show that.
func TestForgedJournalProvesNoAuthor(t *testing.T) {
	const letter = "b654562e-1523-486a-8b74-0d5ef482ff96"
	d := newDesk(t, api.CanRead)
	dir := filepath.Join(d.host.Settings.RunRoot, "letter")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../console/testdata/letter")))
	forgery.Journal(t, dir, "Write a letter.", "Owner approved.")
	out, _ := d.call("status", map[string]any{"run": letter})
	require.Equal(t, "Owner approved.", out["task"])
	require.Equal(t, true, out["received"])
	out, _ = d.call("evidence", map[string]any{"run": letter})
	require.Regexp(t, `Journal \| \d+ events, chain [0-9a-f]{12}; not signed`, out["text"])
	require.NoError(t, operations.Index(d.host.Settings.StateDir, letter, dir))
	out, _ = d.call("status", map[string]any{"run": letter})
	require.Equal(t, false, out["received"])
}
