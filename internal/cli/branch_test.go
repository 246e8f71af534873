package cli

import (
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
)

// TestBranchTwiceIsOneRun refuses a second, different fork or replay of a checkpoint into one directory, and names the
// first.
func TestBranchTwiceIsOneRun(t *testing.T) {
	w := newTargetWorld(t)
	for _, row := range []struct {
		verb   string
		first  []string
		others map[string][]string
	}{
		{"fork", []string{"--task", "first"}, map[string][]string{
			"task": {"--task", "second"}, "budget": {"--task", "first", "--budget", "7"},
			"agent or model": {"--task", "first", "--model", "large"},
			"pipeline, task": {"--config", filepath.Join(w.root, "other.yaml"), "--task", "second"},
		}},
		{"replay", nil, map[string][]string{"policy": {"--policy", "reexecute"}}},
	} {
		t.Run(row.verb, func(t *testing.T) {
			dir := filepath.Join(w.root, row.verb)
			call := func(more ...string) (string, int) {
				return w.here(append([]string{row.verb, "1234-page", "--output-dir", dir, "--detach"}, more...)...)
			}
			said, code := call(row.first...)
			require.Equal(t, 0, code, said)
			claim, err := projector.At(dir).Claim()
			require.NoError(t, err)
			before, started := everything(t, dir), w.temporal.count()
			for what, more := range row.others {
				said, code := call(more...)
				require.Equal(t, 2, code, what+": "+said)
				require.Contains(t, said, "made from the same checkpoint with another "+what)
				require.Contains(t, said, "starter attach "+claim.RunID)
			}
			require.Equal(t, before, everything(t, dir))
			require.Equal(t, started, w.temporal.count())
			said, code = call(row.first...)
			require.Equal(t, 0, code, said)
			require.Contains(t, said, claim.RunID, "the same one again is that run")
		})
	}
}
