package operations

import (
	"github.com/passbook-run/passbook/internal/agent/gate"
	"github.com/passbook-run/passbook/run"
)

// turns are the places of runs in the queue of a host.
type turns struct {
	byRun map[string]int
	of    int
}

// turnsOf reads the queue of the host with a state directory. What cannot be read has no places.
func turnsOf(stateDir string) turns {
	q, err := gate.Open(stateDir, "", gate.Options{}).Waiting()
	all := turns{byRun: map[string]int{}, of: len(q)}
	for i, w := range q {
		if err == nil && all.byRun[w.Run] == 0 {
			all.byRun[w.Run] = i + 1
		}
	}
	return all
}

// place returns the place of a run; nil: it has none.
func (t turns) place(runID string) *run.Turn {
	if n := t.byRun[runID]; n > 0 {
		return &run.Turn{Place: n, Of: t.of}
	}
	return nil
}

// placed sets the places of the runs that wait for their turn.
func placed(rows []Row, stateDir string) {
	var all turns
	for i, r := range rows {
		if r.Limited == nil || r.Limited.Kind != run.LimitAtOnce {
			continue
		}
		if all.byRun == nil {
			all = turnsOf(stateDir)
		}
		rows[i].EffectiveStatus.Turn = all.place(r.RunID)
	}
}

// TurnOf returns the place of a run's call in the queue of the host with a state directory; nil: none waits there.
func TurnOf(stateDir, runID string, recorded run.Status) *run.Turn {
	if recorded != run.WaitingLimit {
		return nil
	}
	return turnsOf(stateDir).place(runID)
}
