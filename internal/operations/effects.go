package operations

import (
	"fmt"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// ActionsAfter describes the declared external actions that a run began after an event. No revert, fork or replay
// undoes them, and work that continues from there may execute them again.
func ActionsAfter(d rundir.Dir, seq int64) ([]string, error) {
	l, err := view.ReadEffects(d)
	if err != nil {
		return nil, fmt.Errorf("read the effects of %s: %w", d.Root, err)
	}
	out := []string{}
	for _, e := range l.Effects {
		begun := e.Status == view.EffectRecorded || e.Status == view.EffectAttempted || e.Status == view.EffectFailed
		if !e.Declared || e.Class != run.EffectExternal || !begun || e.Seq <= seq || e.Reverted {
			continue
		}
		out = append(out, fmt.Sprintf("step %s is an external action that was executed after the checkpoint (%s, call %s): "+
			"its effect stays, and the step is executed again", e.Step, e.Status, e.Call))
	}
	return out, nil
}
