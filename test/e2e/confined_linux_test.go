package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
)

// decider is an agent that answers the question of another run under another name: by the directory, and by the server
// alone. Then it looks for keys.
const decider = `cat >/dev/null
unset PASSBOOK_DELIVERY
echo '{}' >settings.yaml
export PASSBOOK_SETTINGS="$PWD/settings.yaml"
PASSBOOK_STATE_DIR={state} setsid -w starter decide {run} --action continue --by alice 2>&1
echo "by the directory: $?"
PASSBOOK_STATE_DIR=$PWD/own TEMPORAL_ADDRESS={address} setsid -w starter list 2>&1
find / -path /proc -prune -o \( -name links.key -o -name cli.key -o -name worker.key \) \
	-size +0 ! -path "$PWD/own/*" -print 2>/dev/null | while read -r key; do head -c 1 "$key" >/dev/null && echo "key: $key"; done
exit 0
`

// TestAgentAnswersGate has agents answer questions. Without a sandbox, an agent of the same user can, under any
// name. In a sandbox, nothing that it can read is enough.
func TestAgentAnswersGate(t *testing.T) {
	t.Parallel()
	if problem := sandbox.Examine().Problem; problem != "" {
		t.Skip(problem)
	}
	bin := t.TempDir()
	data := read(t, filepath.Join(programs, "starter"))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "starter"), data, 0o755))
	h := newEnv(t, "PASSBOOK_SANDBOX_MODE=none", "PATH="+bin+":"+os.Getenv("PATH")) // a sandbox shows the folders in PATH
	for _, row := range []struct {
		mode    string
		decides bool
	}{{sandbox.None, true}, {sandbox.Workspace, false}} {
		gate := h.asksAboutThePlan("gate-" + row.mode)
		output := h.answer(row.mode, strings.NewReplacer("{state}", h.state(),
			"{run}", gate, "{address}", h.running().Server.Address, "{id}", metaOf(t, gate).RunID).Replace(decider))
		require.Equal(t, row.decides, strings.Contains(output, "by the directory: 0"), output)
		require.Equal(t, row.decides, strings.Contains(output, filepath.Join(h.state(), "server", "certs", "cli.key")), output)
		require.Equal(t, row.decides, strings.Contains(output, "uses TLS"),
			"without a sandbox, a client without a certificate is refused; in it, no server is reached: %s", output)
		require.NotContains(t, output, "not found", "the starter is there")
		if !row.decides {
			require.Contains(t, output, "is not a run directory")
			require.NotContains(t, output, "key: ")
			require.True(t, statusIs(gate, run.AwaitingPhaseHandoff))
			continue
		}
		until(t, "the run is done", func() bool { return statusIs(gate, run.Done) })
		decided := of[run.QuestionDecided](eventsOf(t, gate), run.KindHandoffDecided)
		require.Len(t, decided, 1)
		require.Equal(t, "alice", decided[0].DecidedBy)
	}
}

// answer runs an agent with a script in a sandbox mode, and returns its reply.
func (h *environment) answer(mode, script string) string {
	h.t.Helper()
	config := h.definition(h.dir("agent-"+mode), fmt.Sprintf(`pipeline: deciders
agent: {run: [sh, AGENT], reply: text, sandbox: %s}
roles: {planner: {prompt: plan.md, gives: report}}
stages: [{name: plan, steps: [{role: planner}]}]
`, mode), map[string]string{"plan.md": "Plan it.\n", "agent.sh": script})
	dir := h.dir("run-" + mode)
	h.starter("run", "--config", config, "--output-dir", dir)
	return string(read(h.t, dir+"/_orchestrator/passes/pass-001/raw-output.txt"))
}

// slowWriter is an agent that writes only where a sandbox lets it. It waits for a file in its folder.
const slowWriter = `cat >/dev/null
touch begun
until [ -e go ]; do sleep 0.02; done
rm begun go
echo '<!DOCTYPE html><title>x</title></html>' >artifact.html
echo Done.
`

// TestConfinedRun works a run in the default sandbox: the worker dies in the middle of a call, the next one joins the
// call, and the page gets its pictures.
func TestConfinedRun(t *testing.T) {
	t.Parallel()
	if problem := sandbox.Examine().Problem; problem != "" {
		t.Skip(problem)
	}
	h := newEnv(t, testenv.SandboxVar+"=")
	config := h.definition(h.dir("own"), `pipeline: confined
agent: {run: [sh, AGENT], reply: text}
artifact: {file: artifact.html, seed: seed.html}
roles: {writer: {prompt: write.md, gives: artifact}}
stages:
  - name: write
    steps:
      - role: writer
      - screenshots: {sizes: [320x240], kinds: [viewport]}
`, map[string]string{"write.md": "Write.\n", "seed.html": "<!DOCTYPE html>\n", "agent.sh": slowWriter})
	dir := h.dir("run")
	h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	var begun []string
	until(t, "the agent works", func() bool {
		begun, _ = filepath.Glob(h.state() + "/scratch/*/*/work/begun")
		return len(begun) == 1
	})
	first := h.worker()
	h.kill(first)
	h.starter("server", "start")
	require.NotEqual(t, first, h.worker())
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(begun[0]), "go"), nil, 0o600))
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	complete(t, dir)
	claims, err := filepath.Glob(h.state() + "/store/calls/*/*/claim-*")
	require.NoError(t, err)
	require.Len(t, claims, 1, "the call was made once")
	var claim calls.Claim
	require.NoError(t, json.Unmarshal(read(t, claims[0]), &claim))
	require.Equal(t, sandbox.Held{Mode: sandbox.Workspace, Network: []string{sandbox.Internet}}, claim.Sandbox)
	var png []string
	require.NoError(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".png" {
			png = append(png, path)
		}
		return err
	}))
	require.Len(t, png, 1)
	require.Equal(t, "viewport-320x240.png", filepath.Base(png[0]))
	h.valid(dir)
}
