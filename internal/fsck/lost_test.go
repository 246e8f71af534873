package fsck_test

import (
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestLost: a directory that a run has written to, and of which no event can be read, is neither empty nor a run that
// has not begun.
func TestLost(t *testing.T) {
	write := func(t *testing.T, d projector.Dir, name, text string) {
		require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
	}
	const s1, s2 = "_orchestrator/checkpoints/cp-S1/artifact.html", "_orchestrator/checkpoints/cp-S2/artifact.html"
	tests := []struct {
		name  string
		hurt  func(t *testing.T, d projector.Dir)
		names string // in the error; empty: not lost
	}{
		{"whole", func(*testing.T, projector.Dir) {}, ""},
		{"meta.json is damaged", func(t *testing.T, d projector.Dir) { write(t, d, layout.MetaFile, "x\n") }, ""},
		{"events are damaged, meta.json has the state",
			func(t *testing.T, d projector.Dir) { write(t, d, layout.EventsFile, "x\n") }, s2},
		{"everything", func(t *testing.T, d projector.Dir) {
			for _, name := range []string{layout.EventsFile, layout.MetaFile, layout.StateFile} {
				write(t, d, name, "x\n")
			}
		}, s2},
		{"and the newest checkpoint", func(t *testing.T, d projector.Dir) {
			write(t, d, layout.EventsFile, "x\n")
			write(t, d, s2, "x")
		}, s1},
		{"events are gone", func(t *testing.T, d projector.Dir) {
			require.NoError(t,
				os.Remove(d.Path(layout.EventsFile)))
		}, s2},
		{"and every checkpoint", func(t *testing.T, d projector.Dir) {
			require.NoError(t, os.Remove(d.Path(layout.EventsFile)))
			require.NoError(t, os.RemoveAll(d.Path("_orchestrator/checkpoints")))
		}, "no checkpoint holds"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStory(t)
			s.start()
			for i := 1; i <= 4; i++ {
				s.pass(i)
			}
			s.send()
			d := written(t, s)
			tt.hurt(t, d)
			now, err := d.Now()
			require.NoError(t, err)
			err = projector.Lost(d.Dir, now.State)
			if tt.names == "" {
				require.NoError(t, err)
				return
			}
			var lost *projector.LostError
			require.ErrorAs(t, err, &lost)
			require.ErrorContains(t, err, tt.names)
			require.ErrorContains(t, err, "manual recovery is needed")
		})
	}
	claimed := projector.At(t.TempDir())
	require.NoError(t, claimed.Take(claim()))
	require.NoError(t, projector.Lost(claimed.Dir, run.State{}), "claimed, and nothing came of it")
}
