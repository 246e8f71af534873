package realcli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestClaudeEditsInSandbox lets the real claude edit a repository in a sandbox that reaches the model API only.
func TestClaudeEditsInSandbox(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" || !host.Isolation {
		t.Skip("there is no sandbox with a separate network here: " + host.Problem)
	}
	cli := Claude()
	program := installed(t, cli)
	root := t.TempDir()
	delivery, home := filepath.Join(root, "call"), filepath.Join(root, "home")
	work := filepath.Join(delivery, "work")
	for _, dir := range []string{work, home} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, exec.Command("git", "init", "-q", work).Run())
	require.NoError(t, os.WriteFile(filepath.Join(home, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(delivery, "prompt"), []byte("Write a greeting."), 0o600))
	api := modelapi.NewAnthropic(
		modelapi.Turn{Text: "I write it.", Tool: "Write", Input: map[string]string{
			"file_path": filepath.Join(work, "greeting.txt"), "content": "Hello.\n",
		}},
		modelapi.Turn{Text: "I look around.", Tool: "Bash", Input: map[string]string{
			"command": "cat " + filepath.Join(home, "secret") + "; git status --porcelain", "description": "Look",
		}},
		modelapi.Turn{Text: "Done."},
	)
	t.Cleanup(api.Close)
	require.NoError(t, cli.WriteHome(home, api.URL))
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(t, err)
	c := agent.Command{
		Argv: append(program, "-p", "--output-format", "json", "--permission-mode", "acceptEdits", "--allowedTools",
			"Bash"),
		Environment: append(cli.Environ(api.URL), "PATH="+os.Getenv("PATH"), "HOME="+home),
		Dir:         work, Prompt: filepath.Join(delivery, "prompt"), Stdout: filepath.Join(delivery, "stdout"),
		Stderr: filepath.Join(delivery, "stderr"), Mark: delivery, Timeout: 2 * time.Minute,
		Sandbox: &sandbox.Call{
			Held:  sandbox.Held{Mode: sandbox.Workspace, Network: []string{sandbox.Internet}},
			Bwrap: host.Bwrap, Delivery: delivery, Supervisor: []string{self, supervisor.Verb},
		},
	}
	stdout := printed(t, p, c)
	var reply struct {
		Result string `json:"result"`
	}
	require.NoError(t, json.Unmarshal(stdout, &reply), string(stdout))
	require.Equal(t, "Done.", reply.Result)
	written, err := os.ReadFile(filepath.Join(work, "greeting.txt"))
	require.NoError(t, err)
	require.Equal(t, "Hello.\n", string(written))
	asked, _ := api.Asked()
	require.Len(t, asked, 3)
	require.Equal(t, "sk-test", asked[0].Key)
	results := asked[2].Results
	require.Len(t, results, 2)
	looked := results[1]
	require.Contains(t, looked, "?? greeting.txt")
	require.Contains(t, looked, "No such file or directory", "the home is hidden")
}

// printed is what an agent prints that ends well.
func printed(t *testing.T, p *supervisor.Process, c agent.Command) []byte {
	t.Helper()
	child, err := agent.Start(p, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, child.Kill("end of test")); <-child.Done() })
	exit, err := child.Result()
	require.NoError(t, err)
	stdout, err := os.ReadFile(c.Stdout)
	require.NoError(t, err)
	stderr, err := os.ReadFile(c.Stderr)
	require.NoError(t, err)
	require.Zero(t, exit.Code, "%s\n%s", stdout, stderr)
	return stdout
}
