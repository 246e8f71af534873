package realcli

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestClaudeFollowsARun lets the real claude start a run, wait for its question, answer it and wait for the end, with
// the MCP server alone.
func TestClaudeFollowsARun(t *testing.T) {
	cli := Claude()
	program := installed(t, cli)
	root := t.TempDir()
	project, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(project, root, "./starter", "./worker", "./internal/supervisor/passbook-call")
	require.NoError(t, err)
	home, dir := filepath.Join(root, "home"), filepath.Join(root, "run")
	_, err = testenv.WriteAsks(root)
	require.NoError(t, err)
	turn := func(tool string, in map[string]any) modelapi.Turn {
		return modelapi.Turn{Text: "Next.", Tool: "mcp__passbook__passbook_" + tool, Input: in}
	}
	api := modelapi.NewAnthropic(
		turn("start", map[string]any{"config": filepath.Join(root, "asks.yaml"), "directory": dir}),
		turn("wait", map[string]any{"run": dir}),
		turn("question", map[string]any{"run": dir}),
		turn("decide", map[string]any{"run": dir, "action": "continue", "note": "it is right"}),
		turn("wait", map[string]any{"run": dir}),
		modelapi.Turn{Text: "Done."},
	)
	t.Cleanup(api.Close)
	require.NoError(t, cli.WriteHome(home, api.URL))
	environ := append(testenv.CleanEnv(os.Environ()), "PASSBOOK_STATE_DIR="+filepath.Join(root, "state"))
	starter := filepath.Join(programs, "starter")
	build := exec.CommandContext(t.Context(), starter, "server", "build")
	build.Dir, build.Env = project, environ
	built, err := build.Output()
	require.NoError(t, err)
	server := strings.Fields(string(built))
	environ = append(environ, "PASSBOOK_SERVER="+server[len(server)-1]) // not the last one that any checkout has built
	t.Cleanup(func() {
		stop := exec.CommandContext(context.WithoutCancel(t.Context()), starter, "server", "stop", "--now")
		stop.Env = environ
		out, err := stop.CombinedOutput()
		require.NoError(t, err, string(out))
	})
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"passbook": map[string]any{
		"command": starter, "args": []string{"mcp"},
		"env": map[string]string{"PASSBOOK_STATE_DIR": filepath.Join(root, "state"), "HOME": os.Getenv("HOME"),
			"PASSBOOK_SERVER": server[len(server)-1]},
	}}})
	require.NoError(t, err)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program[0], "-p", "Run the pipeline.", "--output-format", "json",
		"--strict-mcp-config", "--mcp-config", string(config), "--allowedTools", "mcp__passbook")
	cmd.Dir, cmd.Env = root, append(environ, append(cli.Environ(api.URL), "HOME="+home)...)
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	asked, _ := api.Asked()
	require.Len(t, asked, 6, string(out))
	results := asked[5].Results
	require.Len(t, results, 5)
	for i, want := range []string{`new\":true`, `needs_input\":true`, "Is this right?", "decided: continue",
		`status\":\"done`} {
		require.Contains(t, results[i], want)
	}
	journal, err := os.ReadFile(filepath.Join(dir, "events.jsonl"))
	require.NoError(t, err)
	require.Regexp(t, `"note":"it is right".*"decided_by":"claude-code for [^"]+"`, string(journal))
}
