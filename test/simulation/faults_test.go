package simulation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/layout"
)

// fault is one that a test plants behind the seams, to see the simulation detect it.
type fault string

const (
	writtenTwice fault = "a batch is written twice"
	askedAgain   fault = "a running call is taken for lost and made again"
	metaLost     fault = "meta.json is not replaced after a crash"
)

// plant does what a planted fault does before a step.
func (w *world) plant(s activities.Step) error {
	switch {
	case w.fault == writtenTwice && durable.Op(s.Op) == durable.OpWrite && s.Path == w.dir.Path(layout.EventsFile):
		f, err := os.OpenFile(s.Path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.Write(s.Data)
		w.check(err)
		return f.Close()
	case w.fault == metaLost && w.count[crash] > 0 && s.Path == w.dir.Path(layout.MetaFile):
		w.meta, _ = os.ReadFile(s.Path)
	case w.fault == metaLost && w.meta != nil && durable.Op(s.Op) == durable.OpSyncFolder &&
		s.Path == filepath.Clean(w.dir.Root):
		w.check(os.WriteFile(w.dir.Path(layout.MetaFile), w.meta, 0o600))
		w.meta = nil
	}
	return nil
}

// TestPlantedFaultsAreDetected wants each fault to be seen within a few runs, and prints the seed that shows it.
func TestPlantedFaultsAreDetected(t *testing.T) {
	for f, row := range map[fault]struct {
		want string
		skip uint64 // runs that show it late or not at all
	}{writtenTwice: {"invariant 3: ", 4}, askedAgain: {"invariant 4: ", 140}, metaLost: {"invariant 1: ", 0}} {
		t.Run(string(f), func(t *testing.T) {
			const most = 40
			for s := *seed + row.skip; s < *seed+row.skip+most; s++ {
				p := draw(s)
				p.turns = p.turns && f != askedAgain // the first seed that shows it has none
				if o := simulate(t, s, p, f); o.err != nil && strings.Contains(o.err.Error(), row.want) {
					t.Logf("seed %d: %.200s", s, o.err)
					return
				}
			}
			require.Fail(t, "the fault is not detected", "%s in %d runs from seed %d on", f, most, *seed)
		})
	}
}
