package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
	"github.com/passbook-run/passbook/test/realcli"
	"github.com/passbook-run/passbook/workflows/contract"
)

// claudeTool is a tool call of the real claude, and a text that its result contains.
type claudeTool struct {
	name string
	in   map[string]any
	want string
}

// byClaude takes the run of a trial through its story in one session of the real claude, which may use the tools of the
// MCP server alone. Its model decides nothing: its answers are the tool calls of a script.
func byClaude(tr *trial, definition string) {
	t, cli := tr.t, realcli.Claude()
	program, err := cli.Argv()
	require.NoError(t, err)
	tools := claudeStory(tr, definition)
	var turns []modelapi.Turn
	for _, tool := range tools {
		turns = append(turns, modelapi.Turn{Text: "Next.", Tool: "mcp__passbook__passbook_" + tool.name, Input: tool.in})
	}
	api := cli.API(append(turns, modelapi.Turn{Text: "It is delivered."})...)
	t.Cleanup(api.Close)
	api.ByResults()
	home, folder := filepath.Join(tr.folder, "home"), filepath.Join(tr.folder, "desk")
	require.NoError(t, cli.WriteHome(home, api.URL))
	require.NoError(t, os.Mkdir(folder, 0o700))
	server, env := tr.command(t.Context(), "mcp"), map[string]string{}
	for _, pair := range server.Env {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"passbook": map[string]any{
		"command": server.Path, "args": server.Args[1:], "env": env}}})
	require.NoError(t, err)

	cmd := exec.CommandContext(t.Context(), program[0], "-p", "Run the pipeline.", "--output-format", "json",
		"--strict-mcp-config", "--mcp-config", string(config), "--allowedTools", "mcp__passbook")
	cmd.Dir, cmd.Env = folder, append(append(server.Env, cli.Environ(api.URL)...), "HOME="+home)
	out, err := cmd.Output()
	require.NoError(t, err, string(out))
	asked, _ := api.Asked()
	require.NotEmpty(t, asked, string(out))
	results := asked[len(asked)-1].Results
	require.Len(t, results, len(tools), string(out))
	for i, tool := range tools {
		require.Contains(t, results[i], tool.want, "%d: %s", i, tool.name)
	}
}

// claudeStory are the tool calls that tell the story: claude starts the run, and waits for each question, reads it, and
// sends what storySteps has for it.
func claudeStory(tr *trial, definition string) []claudeTool {
	of := map[string]any{"run": tr.dir}
	tools := []claudeTool{{"start", map[string]any{
		"config": definition, "directory": tr.dir, "source": tr.source, "task": "Add lines."}, `new\":true`}}
	for _, step := range storySteps {
		in := map[string]any{"run": tr.dir}
		for key, text := range map[string]string{"action": step.m.Action, "feedback": step.m.Feedback,
			"note": step.m.Note, "text": step.m.Text, "role": step.m.Role} {
			if text != "" {
				in[key] = text
			}
		}
		tools = append(tools, claudeTool{"wait", of, `needs_input\":true`})
		sent := `Run `
		if step.verb == contract.VerbDecide {
			tools = append(tools, claudeTool{"question", of, `\"action\":\"` + step.m.Action})
			sent = "decided: " + step.m.Action
		}
		if step.kind == run.QuestionDelivery {
			tools = append(tools, claudeTool{"diff", of, "+line"})
		}
		tools = append(tools, claudeTool{step.verb, in, sent})
	}
	return append(tools, claudeTool{"wait", of, `status\":\"done`})
}
