package realcli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestClaudeThatRepeatsItself: the real claude runs one command again and again. It is ended, continued with what it did, and
// ended for good when it does it again.
func TestClaudeThatRepeatsItself(t *testing.T) {
	cli := Claude()
	program := installed(t, cli)
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(checkout, t.TempDir(), "./starter", "./worker",
		"./internal/supervisor/passbook-call")
	require.NoError(t, err)
	api := modelapi.NewAnthropic(modelapi.Turn{Tool: "Bash", Input: map[string]string{"command": "echo 1 failed"},
		Times: modelapi.Always})
	t.Cleanup(api.Close)
	root := t.TempDir()
	home, dir := filepath.Join(root, "home"), filepath.Join(root, "run")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, cli.WriteHome(home, api.URL))
	definition := "pipeline: repeats\nagent:\n  run: ['" + strings.Join(program, "', '") +
		"', -p, --output-format, stream-json, --verbose, --allowedTools, Bash]\n  reply: claude-stream\n  sandbox: none\n" +
		"  env: [ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC]\n" +
		"roles:\n  fixer: {prompt: fix.md, gives: report}\nstages:\n  - name: fix\n    steps: [{role: fixer}]\n"
	for name, text := range map[string]string{"repeats.yaml": definition, "fix.md": "Make the tests pass.\n",
		"settings.yaml": "sandbox: {mode: none}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	starter := func(args ...string) (string, int) {
		cmd := exec.Command(filepath.Join(programs, "starter"), args...)
		cmd.Dir = checkout // from where the embedded server is built once
		cmd.Env = append(testenv.CleanEnv(os.Environ()), "HOME="+home, "XDG_CACHE_HOME="+cache,
			"PASSBOOK_STATE_DIR="+filepath.Join(root, "state"), "PASSBOOK_SETTINGS="+filepath.Join(root, "settings.yaml"),
			"ANTHROPIC_BASE_URL="+api.URL, "ANTHROPIC_API_KEY=sk-test", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
		out, _ := cmd.CombinedOutput()
		return string(out), cmd.ProcessState.ExitCode()
	}
	t.Cleanup(func() { starter("server", "stop", "--now") })
	output, code := starter("run", "--config", filepath.Join(root, "repeats.yaml"), "--output-dir", dir)
	require.Equal(t, 3, code, output)
	now, err := rundir.At(dir).Now()
	require.NoError(t, err)
	require.Equal(t, run.PassFailed, now.State.Reason, output)
	require.Contains(t, output, "stalled")
	status, _ := starter("status", dir)
	require.Contains(t, status, "the agent repeats itself, and does so again after a warning: ")
	require.Contains(t, status, "the same call with the same result: Bash echo 1 failed")
	asked, _ := api.Asked()
	told := 0
	for _, a := range asked {
		if strings.Contains(string(a.Body), "you repeat yourself, ") {
			told++
		}
	}
	require.GreaterOrEqual(t, told, 20, "requests of the session that was continued")
	require.Less(t, told, len(asked))
}
