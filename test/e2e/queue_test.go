package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const onePerPipeline = `pipeline: turns
agent:
  run: [sh, -c, "echo + >> %[1]s; until [ -e %[2]s ]; do sleep 0.1; done; sleep 0.5; echo - >> %[1]s; echo Done."]
  reply: text
limits: {at_once: 1}
roles:
  reader: {prompt: read.md, gives: report}
stages:
  - name: read
    steps: [{role: reader}, {role: reader}]
`

// TestRunsTakeTurns starts runs of a pipeline that may make one call at once, and kills the worker while they wait: no
// call ends before. Calls never overlap, each is made once, and the list shows the queue. It takes about 10 s.
func TestRunsTakeTurns(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	folder := t.TempDir()
	config, log := filepath.Join(folder, "turns.yaml"), filepath.Join(folder, "calls.log")
	open := filepath.Join(folder, "open")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, onePerPipeline, log, open), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "read.md"), []byte("Read it.\n"), 0o600))
	dirs := []string{h.dir("a"), h.dir("b"), h.dir("c"), h.dir("d")}
	for _, dir := range dirs {
		h.starter("run", "--config", config, "--output-dir", dir, "--detach")
	}
	queued := func(n int) func() bool {
		return func() bool {
			var listed struct{ Runs []statusOutput }
			require.NoError(t, json.Unmarshal([]byte(h.starter("list", "--offline", "--json")), &listed))
			return slices.ContainsFunc(listed.Runs, func(s statusOutput) bool {
				return s.EffectiveStatus.Turn != nil && *s.EffectiveStatus.Turn == run.Turn{Place: 1, Of: n}
			})
		}
	}
	until(t, "three wait", queued(3))
	h.kill(h.worker())
	require.NoError(t, os.WriteFile(open, nil, 0o600))
	for _, dir := range dirs {
		h.starter("run", "--config", config, "--output-dir", dir)
		require.Equal(t, string(run.Done), metaOf(t, dir).Status)
	}
	raw, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("+\n-\n", 2*len(dirs)), string(raw))
}
