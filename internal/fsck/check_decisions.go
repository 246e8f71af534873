package fsck

import (
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// answer returns the answer to a hand-off, or nil.
func (x *examined) answer(id string) *rundir.Answer {
	for i := range x.answers {
		if x.answers[i].HandoffID == id {
			return &x.answers[i]
		}
	}
	return nil
}

// lastHalt is the newest decision to halt, or nil.
func (x *examined) lastHalt() *rundir.Answer {
	var last *rundir.Answer
	for i, d := range x.answers {
		if d.Halts() && (last == nil || d.At().After(last.At())) {
			last = &x.answers[i]
		}
	}
	return last
}

// haltWasDecided reports whether a decision to halt is in force: the run may have been resumed after it.
func (x *examined) haltWasDecided() bool {
	last := x.lastHalt()
	if last == nil {
		return false
	}
	h, open := x.stream.want.State.Open(run.QuestionHandoff)
	return x.folded() == run.Halted || open && h.ID == last.HandoffID
}

// endedOtherwise reports whether the events settle the run, but not as halted: no decision to halt changes that.
func (x *examined) endedOtherwise() bool {
	f := x.folded()
	return f.Closed() && f != run.Halted && f != run.Interrupted
}
