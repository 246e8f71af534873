package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/realcli"
)

// steeredAgent keeps its prompts, and waits while a file is there.
const steeredAgent = `n=$(ls "$OUT" | grep -c prompt); cat > "$OUT/prompt-$((n + 1))"
while [ -e "$OUT/wait" ]; do sleep 0.05; done
echo Done.
`

// TestSteer steers a run while a call runs: the call keeps its prompt, and the next one of each role contains the
// instruction. With --now the call is made again. A replay composes the same prompts and makes no call.
func TestSteer(t *testing.T) {
	t.Parallel()
	h := newEnv(t, uncached)
	out, dir, folder := h.dir("out"), h.dir("run"), t.TempDir()
	require.NoError(t, os.MkdirAll(out, 0o700))
	h.env = append(h.env, "OUT="+out)
	for name, text := range map[string]string{
		"p.md": "Do it.\n", "agent.sh": steeredAgent,
		"pipeline.yaml": fmt.Sprintf("pipeline: steered\n"+
			"agent: {run: [sh, %s], reply: text, env: [OUT], sandbox: none}\n"+
			"roles: {writer: {prompt: p.md, gives: report}, reviewer: {prompt: p.md, gives: report}}\n"+
			"stages: [{name: work, steps: [{role: writer}, {role: reviewer}, {role: writer}]}]\n",
			filepath.Join(folder, "agent.sh")),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	prompt := func(n int) string {
		text, err := os.ReadFile(filepath.Join(out, fmt.Sprint("prompt-", n)))
		require.NoError(t, err)
		_, rest, _ := strings.Cut(string(text), "\n\n---\n\n")
		return rest
	}
	asked := func(n int) func() bool {
		return func() bool {
			info, err := os.Stat(filepath.Join(out, fmt.Sprint("prompt-", n)))
			return err == nil && info.Size() > 0
		}
	}
	hold := filepath.Join(out, "wait")
	require.NoError(t, os.WriteFile(hold, nil, 0o600))
	h.starter("run", filepath.Join(folder, "pipeline.yaml"), "--output-dir", dir, "--detach")
	until(t, "the first call runs", asked(1))

	require.Contains(t, h.starter("steer", dir, "Keep the API."), "the next prompt contains the instruction")
	text, code := h.try("steer", dir, "Be brief.", "--role", "revewer")
	require.Equal(t, 2, code, text)
	require.Contains(t, text, `the pipeline has no role "revewer" from here on; its roles are writer, reviewer`)
	text, code = h.try("steer", dir)
	require.Equal(t, 2, code, text)
	require.Contains(t, h.starter("status", dir), "Keep the API. (for every role, by ")
	require.Contains(t, h.starter("steer", dir, "Use tabs.", "--role", "writer", "--now"), "interrupting the running call")
	until(t, "the call is made again", asked(2))
	require.Equal(t, "Do it.\n", prompt(1))
	require.Equal(t, "# Instructions of the operator\n\nKeep the API.\n\nUse tabs.\n\n---\n\nDo it.\n", prompt(2))
	require.NoError(t, os.Remove(hold))
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Equal(t, "# Instructions of the operator\n\nKeep the API.\n\n---\n\nDo it.\n", prompt(3))
	require.Equal(t, "Do it.\n", prompt(4), "the role has used it")
	require.Contains(t, h.starter("evidence", dir), "steered at once (role writer): Use tabs.")
	text, code = h.try("steer", dir, "Too late.")
	require.Equal(t, 5, code, text)
	require.Contains(t, text, "cannot steer a run that is done")

	again := h.dir("again")
	h.starter("replay", dir, "--output-dir", again)
	require.True(t, statusIs(again, run.Done))
	require.NoFileExists(t, filepath.Join(out, "prompt-5"), "every call is in the record")
	h.sound(dir)
	h.sound(again)
}

// TestSteeredClaudeContinues interrupts the real claude with an instruction. It continues its conversation with it: the
// model is asked again for at most one answer. It takes about 6 s.
func TestSteeredClaudeContinues(t *testing.T) {
	t.Parallel()
	a := newRealAgent(t, realcli.Claude(), "Bash", "command", "-p", "--output-format", "stream-json", "--verbose",
		"--allowedTools", "Bash")
	h := newEnv(t)
	dir := h.dir("run")
	h.starter("run", "--config", a.definition(h.root, "claude-stream", "continue"), "--output-dir", dir, "--detach")
	until(t, "the call gets further", func() bool { return a.answered() >= 2 })
	require.Contains(t, h.starter("steer", dir, "Write less.", "--now"), "interrupting the running call")
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	end := of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd)[0]
	require.NotEmpty(t, end.ResumedFrom)
	require.Len(t, end.Instructions, 1)
	require.LessOrEqual(t, a.repeated(), 1)
	require.Equal(t, 1, end.Attempts)
	asked, _ := a.api.Asked()
	require.Contains(t, string(asked[len(asked)-1].Body), "Write less.", "the model gets the instruction")
	h.noAgents()
}
