package cli

import (
	"path/filepath"
	"strings"
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
				return w.here(append([]string{row.verb, "1234-page", "--from", "cp-1", "--output-dir", dir, "--detach"},
					more...)...)
			}
			output, code := call(row.first...)
			require.Equal(t, 0, code, output)
			claim, err := projector.At(dir).Claim()
			require.NoError(t, err)
			before, started := everything(t, dir), w.temporal.count()
			for what, more := range row.others {
				output, code := call(more...)
				require.Equal(t, 2, code, what+": "+output)
				require.Contains(t, output, "made from the same checkpoint with another "+what)
				require.Contains(t, output, "starter attach "+claim.RunID)
			}
			require.Equal(t, before, everything(t, dir))
			require.Equal(t, started, w.temporal.count())
			output, code = call(row.first...)
			require.Equal(t, 0, code, output)
			require.Contains(t, output, claim.RunID, "the same one again is that run")
		})
	}
}

// TestForkOfCompletedRunAsksForCheckpoint refuses a fork that has nothing to do, and prints commands that run as
// printed.
func TestForkOfCompletedRunAsksForCheckpoint(t *testing.T) {
	w := newTargetWorld(t)
	before, started := w.digests(t), w.temporal.count()
	args := []string{"fork", "1234-page", "--task", "it's new", "--detach", "--output-dir", filepath.Join(w.root, "a b")}
	output, code := w.here(args...)
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "fork refused: run 1234-page is done and has no step left")
	require.Contains(t, output, "All checkpoints: starter checkpoints 1234-page --all")
	require.Equal(t, before, w.digests(t))
	require.Equal(t, started, w.temporal.count())
	_, command, is := strings.Cut(output, "from stage build: starter ")
	require.True(t, is, output)
	command, _, _ = strings.Cut(command, "\n")
	require.Equal(t, "fork 1234-page --detach --output-dir '"+w.root+"/a b' --task 'it'\\''s new' --from cp-1", command)
	output, code = w.here(append(args, "--from", "cp-1")...)
	require.Equal(t, 0, code, output)
	require.Equal(t, started+1, w.temporal.count())

	t.Run("a replay starts from the first checkpoint", func(t *testing.T) {
		output, code := w.here("replay", "1234-page", "--detach", "--output-dir", "again")
		require.Equal(t, 0, code, output)
		claim, err := projector.At("again").Claim()
		require.NoError(t, err)
		require.Equal(t, "cp-1", claim.SourceCheckpoint)
	})
}
