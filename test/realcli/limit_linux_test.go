package realcli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestRunWaitsForUsageLimitOfClaude runs a pipeline with the real claude, the login of a subscription, and an API that
// refuses the second call until a reset in some seconds.
func TestRunWaitsForUsageLimitOfClaude(t *testing.T) {
	cli := Claude()
	program := installed(t, cli)
	checkout, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs, err := testenv.Programs(checkout, t.TempDir(), "./starter", "./worker",
		"./internal/supervisor/passbook-call")
	require.NoError(t, err)
	const seconds = 9
	api := modelapi.NewAnthropic(modelapi.Turn{Text: "First."},
		modelapi.Turn{Fault: modelapi.Fault{Kind: modelapi.FaultPlan, After: seconds}},
		modelapi.Turn{Text: "Again.", Times: modelapi.Always})
	t.Cleanup(api.Close)
	root := t.TempDir()
	home, dir := filepath.Join(root, "home"), filepath.Join(root, "run")
	require.NoError(t, os.MkdirAll(home, 0o700))
	require.NoError(t, cli.WriteHome(home, api.URL))
	definition := "pipeline: limited\nagent:\n  run: ['" + strings.Join(program, "', '") +
		"', -p, --output-format, stream-json, --verbose]\n  reply: claude-stream\n  sandbox: none\n" +
		"  env: [ANTHROPIC_BASE_URL, CLAUDE_CODE_OAUTH_TOKEN, CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC]\n" +
		"limits: {after_reset: {min: 2s, max: 3s}}\nroles:\n  reader: {prompt: read.md, gives: report}\n" +
		"stages:\n  - name: read\n    steps: [{role: reader}, {role: reader}]\n"
	for name, text := range map[string]string{"limited.yaml": definition, "read.md": "Read it.\n",
		"settings.yaml": "sandbox: {mode: none}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	starter := func(args ...string) string {
		cmd := exec.Command(filepath.Join(programs, "starter"), args...)
		cmd.Dir = checkout // from where the embedded server is built once
		cmd.Env = append(testenv.CleanEnv(os.Environ()), "HOME="+home, "XDG_CACHE_HOME="+cache,
			"PASSBOOK_STATE_DIR="+filepath.Join(root, "state"), "PASSBOOK_SETTINGS="+filepath.Join(root, "settings.yaml"),
			"ANTHROPIC_BASE_URL="+api.URL, "CLAUDE_CODE_OAUTH_TOKEN=sk-ant-oat01-test",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		return string(out)
	}
	t.Cleanup(func() { starter("server", "stop", "--now") })
	require.Contains(t, starter("run", "--config", filepath.Join(root, "limited.yaml"), "--output-dir", dir),
		"waits until ")
	now, err := rundir.At(dir).Now()
	require.NoError(t, err)
	require.Equal(t, run.Done, now.State.Status)
	require.Equal(t, 2, now.State.Starts+now.State.Epoch, "one start, one epoch")
	log := api.Log()
	require.Len(t, log, 3)
	require.Equal(t, modelapi.Refused, log[1].Outcome)
	require.Greater(t, log[2].Time.Sub(log[1].Time), (seconds-1+2)*time.Second, "the reset is in whole seconds")
}
