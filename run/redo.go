package run

import "cmp"

// Redone counts how often decisions have sent the run back into a stage, or over it. It tells a pass that is done again from one that is done for
// the first time, so that each has a call id and a folder of its own.
type Redone struct {
	Stage int   `json:"stage"`
	Until Place `json:"until"` // places of the stage before this one were done before
	Times int   `json:"times"`
}

// Redo is how often the run was sent back to the place where it stands, or over it; 0 where it has not been before.
func (s State) Redo() int {
	for _, r := range s.Redone {
		if r.Stage == s.Next.Stage && s.Next.before(r.Until) {
			return r.Times
		}
	}
	return 0
}

// before says that a run which nobody sends back comes to p first.
func (p Place) before(q Place) bool {
	return cmp.Or(cmp.Compare(p.Stage, q.Stage), cmp.Compare(p.Round, q.Round), cmp.Compare(p.Step, q.Step)) < 0
}

// mostStages bounds what a damaged stream can make of a state.
const mostStages = 1000

// sendBack counts what a decision makes the run do again: from a place on, up to where the run stands. nil: the step where it stands.
func (f *folder) sendBack(redo string, to *Place) {
	if to == nil {
		to = &f.Next
	}
	if redo == "" || to.Stage < 0 || f.Next.Stage > mostStages {
		return
	}
	f.Redone = list(f, f.Redone)
	for stage := to.Stage; stage <= f.Next.Stage; stage++ {
		until := Place{Stage: stage + 1} // all of it
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
			if r.Times++; r.Until.before(until) {
				r.Until = until
			}
			return
		}
	}
	f.Redone = append(f.Redone, Redone{Stage: stage, Until: until, Times: 1})
}
