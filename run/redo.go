package run

import "cmp"

// Redone counts how often decisions sent the run back into a stage, or past it. It distinguishes a repeated pass from
// the first one, so that each has its own call ID and folder.
type Redone struct {
	Stage int   `json:"stage"`
	Until Place `json:"until"` // places of the stage before this one are repetitions
	Times int   `json:"times"`
}

// Redo is the number of times that the run was sent back to its current place, or past it; 0 for a place that it
// reaches for the first time.
func (s State) Redo() int {
	for _, r := range s.Redone {
		if r.Stage == s.Next.Stage && s.Next.Before(r.Until) {
			return r.Times
		}
	}
	return 0
}

// Before reports whether a run that is never sent back reaches p first.
func (p Place) Before(q Place) bool {
	return cmp.Or(cmp.Compare(p.Stage, q.Stage), cmp.Compare(p.Round, q.Round), cmp.Compare(p.Step, q.Step)) < 0
}

// mostStages bounds the effect of a damaged stream on a state.
const mostStages = 1000

// sendBack counts what a decision makes the run repeat: from a place up to the current place of the run. nil: the
// current step.
func (f *folder) sendBack(redo string, to *Place) {
	if to == nil {
		to = &f.Next
	}
	if redo == "" || to.Stage < 0 || f.Next.Stage > mostStages {
		return
	}
	f.Redone = list(f, f.Redone)
	for stage := to.Stage; stage <= f.Next.Stage; stage++ {
		until := Place{Stage: stage + 1} // the whole stage
		if stage == to.Stage && redo == RedoRound {
			until = *to
		} else if stage == f.Next.Stage {
			until = Place{Stage: stage, Round: f.Next.Round, Step: f.Next.Step + 1}
		}
		f.redoStage(stage, until)
	}
}

func (f *folder) redoStage(stage int, until Place) {
	for i := range f.Redone {
		if r := &f.Redone[i]; r.Stage == stage {
			if r.Times++; r.Until.Before(until) {
				r.Until = until
			}
			return
		}
	}
	f.Redone = append(f.Redone, Redone{Stage: stage, Until: until, Times: 1})
}
