package simulation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

// fault is one that a test plants behind the seams, to see the simulation detect it.
type fault string

const (
	askedAgain fault = "a running call counts as lost and is repeated"
	metaLost   fault = "meta.json is not replaced after a crash"
)

// plant does what a planted fault does before a step.
func (w *world) plant(s activities.Step) {
	switch {
	case w.fault == metaLost && w.count[crash] > 0 && s.Path == w.dir.Path(rundir.MetaFile):
		w.meta, _ = os.ReadFile(s.Path)
	case w.fault == metaLost && w.meta != nil && disk.Op(s.Op) == disk.OpSyncFolder &&
		s.Path == filepath.Clean(w.dir.Root):
		w.check(os.WriteFile(w.dir.Path(rundir.MetaFile), w.meta, 0o600))
		w.meta = nil
	}
}

// TestRepeatedCallIsDetected shows within a few runs that invariant 4 does not hold. TestWalk does the same with the
// other fault.
func TestRepeatedCallIsDetected(t *testing.T) {
	const first, runs = 189, 40 // earlier runs show it late or not at all
	for s := uint64(first); s < first+runs; s++ {
		p := draw(s)
		p.turns = false
		if o := simulate(t, s, p, askedAgain); o.err != nil && strings.Contains(o.err.Error(), "invariant 4: ") {
			return
		}
	}
	require.Fail(t, "the repeated call is not detected")
}
