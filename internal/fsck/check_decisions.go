package fsck

import (
	"fmt"
	"strings"

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

// haltWasDecided reports whether a decision to halt is in force. In Passbook's stream a run may have been resumed after
// it.
func (x *examined) haltWasDecided() bool {
	last := x.lastHalt()
	if last == nil {
		return false
	}
	h, open := x.stream.state().Open(run.QuestionHandoff)
	return !x.own || x.folded() == run.Halted || open && h.ID == last.HandoffID
}

// endedOtherwise reports whether the events settle the run, but not as halted: no decision to halt changes that.
func (x *examined) endedOtherwise() bool {
	f := x.folded()
	return f.Closed() && f != run.Halted && f != run.Interrupted
}

// recorded is the recorded status: that of the events, or of meta.json in the directory of another program.
func (x *examined) recorded() run.Status {
	switch {
	case x.own || !x.meta.good():
		return x.folded()
	case x.child:
		return x.meta.status()
	}
	return rundir.Recorded(x.stream.state(), x.meta.status(), x.answers)
}

// judgeOrder reports events of another program in an unusual order. They are folded nevertheless.
func (x *examined) judgeOrder() {
	if x.stream.fold == nil {
		return
	}
	const most = 5
	u := x.stream.fold.Unusual()
	if u.Count == 0 {
		return
	}
	var lines []string
	for _, e := range u.First[:min(most, len(u.First))] {
		lines = append(lines, fmt.Sprintf("event %d: %s", e.Seq, e.Message))
	}
	if more := u.Count - int64(len(lines)); more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	x.find(StreamOrderUnusual, "the events are in an unusual order: "+strings.Join(lines, "; "))
}
