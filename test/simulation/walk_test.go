package simulation_test

import (
	"flag"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

var walk = flag.Int("sim.walk", 200, "TestWalk crashes at every Nth step on the disk; 1: at each")

// TestWalk executes the first runs from the seed on that nothing else disturbs, of a page and of a tree, once for each
// step of its workers on the disk: the worker crashes at that step, in the middle of a write, too. In some the workflow is
// reset, or the run reverted, before.
func TestWalk(t *testing.T) {
	revert := func(w *world) bool {
		w.reverts = true
		w.send(w.execution(), contract.VerbPause, contract.Message{By: "ada"})
		return true
	}
	reset := func(w *world) bool {
		if w.leaves() {
			return false
		}
		w.terminate(w.dice(), 0)
		return true
	}
	for name, row := range map[string]struct {
		tree    bool
		planned func(*world) bool
		shows   run.Kind
	}{
		"page":         {false, nil, run.KindRunEnd},
		"page, reset":  {false, reset, run.KindRunInterrupted},
		"page, revert": {false, revert, run.KindRunReverted},
		"tree":         {true, nil, run.KindRunEnd},
		"tree, reset":  {true, reset, run.KindRunInterrupted},
		"tree, revert": {true, revert, run.KindRunReverted},
	} {
		t.Run(name, func(t *testing.T) {
			s, p := comparable(row.tree)
			want := simulate(t, s, p, "")
			require.NoError(t, want.err)
			if row.planned != nil {
				p.planned, p.plannedAt = row.planned, want.steps/2
				want = simulate(t, s, p, "")
				require.NoError(t, want.err)
			}
			require.Contains(t, want.journal, `"kind":"`+string(row.shows)+`"`)
			crashes, seen := 0, 0 // seen: the step of the first crash that shows the planted fault
			for p.crashAt = p.plannedAt + 1 + int(s)%*walk; p.crashAt <= want.steps; p.crashAt += *walk {
				o := simulate(t, s, p, "")
				require.NoError(t, o.err, "seed %d, crash at step %d of %d", s, p.crashAt, want.steps)
				require.Equal(t, want.artifact, o.artifact, "seed %d, crash at step %d", s, p.crashAt)
				if seen == 0 && simulate(t, s, p, metaLost).err != nil {
					seen = p.crashAt
				}
				crashes += o.counts.disturbances[crash]
			}
			t.Logf("seed %d: %d crashes at %d steps; %s: seen at step %d", s, crashes, want.steps, metaLost, seen)
			require.Positive(t, crashes)
			require.Positive(t, seen, "the fault is not detected: %s", metaLost)
		})
	}
}

// comparable returns the first seed whose undisturbed run has a fixed result, without disturbances.
func comparable(tree bool) (uint64, plan) {
	for s := *seed; ; s++ {
		p := draw(s)
		p.most, p.agentFaults = map[disturbance]int{}, false
		if p.tree == tree && !p.asks && p.budget == "{usd: 9}" {
			return s, p
		}
	}
}
