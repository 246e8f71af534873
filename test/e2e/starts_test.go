package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestTwoStartsOnOneDirectory starts two programs at once: of one pipeline, and of two. Only one run begins. The other
// start attaches to it if it is the same, or is refused with the id of the run; it writes nothing.
func TestTwoStartsOnOneDirectory(t *testing.T) {
	t.Parallel()
	h := sharedEnv(t)
	const asks = "pipeline: %s\nagent: {run: [scripted]}\nroles:\n  worker: {prompt: prompt.md, gives: " +
		"report}\nstages:\n  - name: wait\n    steps:\n      - ask: Shall we?\n      - role: worker\n"
	require.NoError(t, os.WriteFile(h.dir("prompt.md"), []byte("Work."), 0o600))
	for name, more := range map[string]string{"one": "", "two": "      - role: worker\n"} {
		require.NoError(t, os.WriteFile(h.dir(name+".yaml"), []byte(fmt.Sprintf(asks, name)+more), 0o600))
	}
	for round := range 6 {
		second := []string{"one", "two"}[round%2]
		dir := h.dir(fmt.Sprint("run-", round))
		output, codes := make([]string, 2), make([]int, 2)
		var both sync.WaitGroup
		for i, name := range []string{"one", second} {
			both.Go(func() {
				output[i], codes[i] = h.try("run", "--config", h.dir(name+".yaml"), "--output-dir", dir, "--detach")
			})
		}
		both.Wait()
		claim, err := rundir.At(dir).Claim()
		require.NoError(t, err)
		received := fmt.Sprintf("round %d, of %s:\n%s\n%s", round, claim.Pipeline, output[0], output[1])
		winners := 0
		for i, name := range []string{"one", second} {
			require.Contains(t, output[i], claim.RunID, "the loser names the holder; %s", received)
			if codes[i] == 0 {
				require.Equal(t, claim.Pipeline, name, received)
				winners++
				continue
			}
			if codes[i] == 2 { // it came late enough to be compared with the run
				require.NotEqual(t, claim.Pipeline, name, received)
				require.Contains(t, output[i], "has another definition; nothing was changed", received)
				continue
			}
			require.Equal(t, 5, codes[i], received)
		}
		require.Positive(t, winners, received)
		until(t, "it asks", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
		start := of[run.RunStart](eventsOf(t, dir), run.KindRunStart)
		require.Len(t, start, 1, received)
		require.Equal(t, claim.RunID, start[0].RunID, received)
		require.NoDirExists(t, filepath.Join(dir, "_orchestrator", "archives"), received)
	}
}
