package realcli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/testenv"
)

var inspectMCP = flag.Bool("inspector", false, "let the MCP inspector use the MCP server")

// inspector runs the MCP inspector in CLI mode against a server. Whatever it finds fails the test: it validates the
// messages of the protocol, and each structured result against the schema of its tool.
type inspector struct {
	t       *testing.T
	program []string
	environ []string
	dir     string
	server  []string // its command
}

func (i inspector) ask(method string, args ...string) map[string]any {
	i.t.Helper()
	ctx, cancel := context.WithTimeout(i.t.Context(), 2*time.Minute)
	defer cancel()
	argv := append(append(append([]string{}, i.program...), "--cli"), i.server...)
	cmd := exec.CommandContext(ctx, argv[0], append(append(argv[1:], "--method", method), args...)...)
	cmd.Dir, cmd.Env = i.dir, i.environ
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(i.t, err, "%s %s: %s", method, args, complaints.String())
	require.Empty(i.t, complaints.String(), "%s %s", method, args)
	var answer map[string]any
	require.NoError(i.t, json.Unmarshal(out, &answer), string(out))
	return answer
}

// call calls a tool and returns its structured result.
func (i inspector) call(tool string, args ...string) map[string]any {
	i.t.Helper()
	words := []string{"--tool-name", "passbook_" + tool}
	for _, a := range args {
		words = append(words, "--tool-arg", a)
	}
	answer := i.ask("tools/call", words...)
	require.Nil(i.t, answer["isError"], "%s: %s", tool, answer["content"])
	return answer["structuredContent"].(map[string]any)
}

// listed returns the names in a list.
func (i inspector) listed(method, list, key string) (names []string) {
	i.t.Helper()
	for _, row := range i.ask(method)[list].([]any) {
		names = append(names, row.(map[string]any)[key].(string))
	}
	return names
}

// TestInspector: the MCP inspector starts a run and decides it, reads it with every tool that reads and as a resource,
// and has no finding.
func TestInspector(t *testing.T) {
	if !*inspectMCP {
		t.Skip("runs with -inspector: make test-all")
	}
	i := inspector{t: t, program: installed(t, Inspector()), dir: t.TempDir()}
	project, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(project, i.dir, "./starter", "./worker", "./internal/supervisor/passbook-call")
	require.NoError(t, err)
	starter, state, dir := filepath.Join(programs, "starter"), filepath.Join(i.dir, "state"), filepath.Join(i.dir, "run")
	i.environ = append(testenv.CleanEnv(os.Environ()), "PASSBOOK_STATE_DIR="+state)
	_, err = testenv.WriteAsks(i.dir)
	require.NoError(t, err)
	command := func(args ...string) string {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), starter, args...)
		cmd.Dir, cmd.Env = i.dir, i.environ
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return strings.TrimSpace(string(out))
	}
	t.Cleanup(func() { command("server", "stop", "--now") })

	i.server = []string{starter, "mcp"}
	started := i.call("start", "config=asks.yaml", "directory="+dir)
	id := started["run_id"].(string)
	waited := i.call("wait", "run="+id)
	require.Equal(t, true, waited["needs_input"])
	require.Len(t, i.listed("tools/list", "tools", "name"), len(api.Table()))
	require.Contains(t, i.listed("resources/list", "resources", "uri"), "passbook://runs/"+id+"/evidence.md")
	require.Contains(t, i.listed("resources/templates/list", "resourceTemplates", "uriTemplate"),
		"passbook://runs/{run}/passes/{seq}/prompt")
	require.Equal(t, id, i.call("status", "run="+id)["run_id"])
	contents := i.ask("resources/read", "--uri", "passbook://runs/"+id+"/artifact")["contents"].([]any)
	require.Equal(t, "Notes\n", contents[0].(map[string]any)["text"])
	first := i.call("passes", "run="+id)["passes"].([]any)[0].(map[string]any)
	for _, o := range api.Table() {
		args := map[string][]string{"list": {}, "inbox": {}, "pass": {"run=" + id, "pass=" + string(seqOf(t, first))}}
		if o.Access != api.CanRead {
			continue
		}
		words, special := args[o.Name]
		if !special {
			words = []string{"run=" + id}
		}
		require.NotEmpty(t, i.call(o.Name, words...), o.Name)
	}

	i.call("steer", "run="+id, "text=Be brief.")
	decided := i.call("decide", "run="+id, "action=continue", "note=it is right")
	require.Contains(t, decided["message"], "decided: continue")
	require.Equal(t, "done", i.call("wait", "run="+id)["status"])
	journal, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	require.Regexp(t, `"note":"it is right".*"auth":"key `, string(journal))
	require.Contains(t, string(journal), "Be brief.")
}

// seqOf is the number that names a pass.
func seqOf(t *testing.T, pass map[string]any) []byte {
	t.Helper()
	raw, err := json.Marshal(pass["seq"])
	require.NoError(t, err)
	return raw
}
