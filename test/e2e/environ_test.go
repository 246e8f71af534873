package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const latePipeline = `pipeline: late
agent: {run: [the-agent], reply: text, env: [OUT, DEPLOY_KEY]}
limits: {attempts: 1}
roles:
  reader: {prompt: read.md, gives: report}
stages:
  - name: read
    steps:
      - role: reader
      - run: 'the-agent # as a command'
      - role: reader
`

// lateAgent records its key, and prints it.
const lateAgent = `#!/bin/sh
[ -z "$OUT" ] || echo "$DEPLOY_KEY" >> "$OUT/keys"
while [ -n "$OUT" ] && [ -e "$OUT/wait" ]; do sleep 0.05; done
echo "The key is $DEPLOY_KEY."
`

// TestAgentInstalledLaterIsFound: the background worker was started in a terminal that neither finds the agent nor has
// its key. A resume from one that does is enough, also for the worker after the next crash. The key is in no file but
// the one that hands it over, and that is gone when the run is done.
func TestAgentInstalledLaterIsFound(t *testing.T) {
	t.Parallel()
	const secret = "correct-horse-battery"
	h := newEnv(t)
	out, bin, folder, dir := h.dir("out"), h.dir("bin"), h.dir("pipeline"), h.dir("run")
	write := func(path, text string, mode os.FileMode) {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write(filepath.Join(folder, "late.yaml"), latePipeline, 0o600)
	write(filepath.Join(folder, "read.md"), "Read it.\n", 0o600)
	write(filepath.Join(out, "wait"), "", 0o600)
	keys := func() []string {
		raw, err := os.ReadFile(filepath.Join(out, "keys"))
		if err != nil {
			return nil
		}
		return strings.Fields(string(raw))
	}
	old := h.env
	h.starter("server", "start")
	worker := h.worker()
	gone := filepath.Join(h.dir("gone"), "the-agent")
	write(gone, "#!/bin/sh\nexit 127\n", 0o700) // a start needs a program
	h.env = append(old, "PATH="+filepath.Dir(gone)+":"+os.Getenv("PATH"))
	h.starter("run", "--config", filepath.Join(folder, "late.yaml"), "--output-dir", dir, "--detach")
	until(t, "the agent is not found", func() bool { return statusIs(dir, run.Paused) })
	require.Equal(t, run.PassFailed, metaOf(t, dir).Reason)
	require.NoError(t, os.Remove(gone))

	write(filepath.Join(bin, "the-agent"), lateAgent, 0o700)
	h.env = append(old, "PATH="+bin+":"+os.Getenv("PATH"), "OUT="+out, "DEPLOY_KEY="+secret)
	output, code := h.try("doctor", dir)
	require.Equal(t, 3, code, output)
	words := strings.Join(strings.Fields(output), " ")
	require.Contains(t, words, "which does not find the-agent")
	require.Contains(t, words, "resume "+dir+" in a terminal that finds its agents")
	h.starter("resume", dir)
	until(t, "the agent is called", func() bool { return len(keys()) == 1 })
	require.Equal(t, worker, h.worker(), "the same worker")
	handed := filepath.Join(h.state(), "environ", metaOf(t, dir).RunID+".json")
	info, err := os.Stat(handed)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	output, _ = h.try("doctor", dir)
	require.Contains(t, strings.Join(strings.Fields(output), " "), "the environment of its resume at")

	h.crash(worker)
	h.env = old
	foreground := h.attach("worker")
	until(t, "the call is made again", func() bool { return len(keys()) == 2 })
	require.NoError(t, os.Remove(filepath.Join(out, "wait")))
	until(t, "the run is done", func() bool { return statusIs(dir, run.Done) })
	require.Equal(t, []string{secret, secret, secret}, keys())
	history := h.historyOf(metaOf(t, dir).RunID)
	foreground.interrupt()
	require.Zero(t, foreground.wait(), foreground.output())
	require.NoFileExists(t, handed)

	places := append(contents(t, dir), contents(t, h.state())...)
	for where, raw := range history {
		places = append(places, place{"history " + where, raw})
	}
	hidden := 0
	for _, p := range append(places, place{"what the worker said", []byte(foreground.output())}) {
		require.NotContains(t, string(p.raw), secret, p.name)
		hidden += bytes.Count(p.raw, []byte("[redacted:env-DEPLOY_KEY"))
	}
	require.Positive(t, hidden)
}
