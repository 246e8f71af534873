package rundir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// judgeStream names what is wrong with events.jsonl itself.
func (x *examined) judgeStream() {
	s := &x.stream
	for _, f := range []struct {
		code   Code
		at     places
		format string
	}{
		{StreamLineUnreadable, s.unreadable, "not a JSON object: %s of " + EventsFile},
		{StreamSeqGap, s.gaps, "numbers are missing before, or in: %s of " + EventsFile},
		{StreamSeqDuplicate, s.repeats, "the number was there before: %s of " + EventsFile},
	} {
		switch {
		case f.at.n == 0:
		case f.at.first[0] > s.lines && x.own:
			x.lags(f.code, "", fmt.Sprintf(f.format, f.at))
		default:
			x.find(f.code, fmt.Sprintf(f.format, f.at))
		}
	}
	if s.torn > 0 {
		x.lags(StreamTornTail, EventsFile, fmt.Sprintf("%d bytes behind the last line of %s are no line", s.torn, EventsFile))
	}
	x.judgeOrder()
}

// judgeRecorded names the damage that the journal itself records.
func (x *examined) judgeRecorded() error {
	if !x.own {
		return nil
	}
	found, err := x.dir.Damage(x.stream.state())
	for _, d := range found {
		x.find(DamageRecorded, d.String())
	}
	return err
}

// judgeMeta names what is wrong with meta.json, beside the events, the decisions and the cross checkpoint.
func (x *examined) judgeMeta() {
	switch {
	case x.meta.raw == nil:
		if x.stream.lines > 0 {
			x.lags(MetaMissing, MetaFile, fmt.Sprintf("there are %d events and no %s", x.stream.lines, MetaFile))
		}
		return
	case x.meta.err != nil:
		x.findIn(MetaUnreadable, MetaFile, fmt.Sprintf("%s cannot be read: %v", MetaFile, x.meta.err))
		return
	}
	x.judgeHandoff()
	if x.cross != nil {
		x.judgeCross()
	}
	x.judgeStatus()
	if x.own {
		x.judgeChain()
		x.judgeKeys()
	}
	x.judgeLiveness()
}

// judgeLiveness names a run that its events leave open and that no workflow continues. A question that it left undecided is an operator's, whether or not
// an epoch has journaled the interruption yet.
func (x *examined) judgeLiveness() {
	if x.standing.Status != run.Interrupted || x.standing.Recorded == run.Interrupted {
		return
	}
	x.lags(RunningWithoutLiveWorkflow, "", fmt.Sprintf("the run is recorded as %s, and its workflow is %s", x.standing.Recorded, x.standing.Liveness))
	q, open := x.asks()
	if !open {
		return
	}
	x.lags(InterruptedWithActiveHandoff, "", fmt.Sprintf("the run was interrupted, and the question %s is not decided", q.ID))
	if q.Kind != run.QuestionHandoff { // that of a hand-off is in meta.json, and named there
		x.lags(ActiveHandoffWithoutDecision, "", fmt.Sprintf("no decision on the question %s is in the journal", q.ID))
	}
}

// asks gives the question that the events of a Passbook run leave open, and that no decision on disk answers.
func (x *examined) asks() (run.Question, bool) {
	q, open := x.stream.state().Asks()
	return q, open && x.own && x.answer(q.ID) == nil
}

// judgeHandoff looks at the open question that meta.json names.
func (x *examined) judgeHandoff() {
	id, there := x.meta.handoff()
	status, folded := x.meta.status(), x.folded()
	if !there {
		if status == run.AwaitingPhaseHandoff {
			x.find(AwaitingWithoutActiveHandoff, "the run awaits a decision, and "+MetaFile+" does not say on what")
		}
		return
	}
	decided := x.answer(id) != nil
	if status == run.Interrupted || folded == run.Interrupted {
		stands := "not decided"
		if decided {
			stands = "decided, and not acted on"
		}
		x.find(InterruptedWithActiveHandoff, fmt.Sprintf("the run was interrupted, and hand-off %s is %s", id, stands))
	}
	if stale, code := x.stale(); stale {
		x.find(code, fmt.Sprintf("the run is over, and %s still holds hand-off %s", MetaFile, id))
	}
	if !decided {
		x.find(ActiveHandoffWithoutDecision, fmt.Sprintf("no decision on hand-off %s is on disk", id))
	}
	if !x.child && !slices.Contains(x.stream.snapshot().SeenHandoffIDs, id) {
		x.find(MetaHandoffWithoutEvent, fmt.Sprintf("hand-off %s was never requested in %s", id, EventsFile))
	}
}

// stale says that a hand-off which meta.json holds is over. A run over several projects keeps none at its end, however it ended.
func (x *examined) stale() (bool, Code) {
	if x.cross == nil {
		return x.meta.status().Settled(), TerminalWithStaleHandoff
	}
	return terminal(x.meta.status()), CrossTerminalWithStaleHandoff
}

// judgeStatus compares the status of meta.json with that of the events, most telling name first.
func (x *examined) judgeStatus() {
	m, f := x.meta.status(), x.folded()
	if f == "" {
		f = run.Unknown
	}
	said := fmt.Sprintf("the events say %s, and %s says %s", f, MetaFile, orNone(m))
	if m != run.Halted && x.haltWasDecided() {
		x.find(HaltDecisionWithoutHaltedMeta, fmt.Sprintf("a halt was decided, and %s says %s", MetaFile, orNone(m)))
	}
	open := x.openInEvents()
	switch {
	case m == x.recorded():
	case !x.own && f == run.Unknown && !m.Closed() && x.stream.lines > 0: // events without a start say nothing of the status
	case terminal(f) && !terminal(m):
		x.find(TerminalEventWithoutTerminalMeta, said)
	case f == run.Interrupted:
		x.find(InterruptedEventWithoutInterruptedMeta, said)
	case terminal(m) && !terminal(f):
		x.find(TerminalMetaWithoutTerminalEvent, said)
	default:
		x.find(StatusMismatch, said)
	}
	if id, _ := x.meta.handoff(); open != "" && id != open && x.cross == nil && !x.recorded().Settled() {
		x.find(HandoffEventWithoutMetaHandoff, fmt.Sprintf("hand-off %s is open, and %s does not hold it", open, MetaFile))
	}
}

func orNone(s run.Status) string {
	if s == "" {
		return "nothing"
	}
	return string(s)
}

// openInEvents is the hand-off that the events leave open and nobody has decided; empty: none.
func (x *examined) openInEvents() string {
	h := x.stream.state().Handoff
	waits := slices.Contains([]run.Status{run.AwaitingPhaseHandoff, run.Failed, run.Interrupted}, x.folded())
	if h == nil || !waits || x.answer(h.ID) != nil {
		return ""
	}
	return h.ID
}

// judgeChain compares the lines that meta.json has seen with the digest that it keeps of them.
func (x *examined) judgeChain() {
	s, e := x.stream, x.meta.typed.Events
	at := fmt.Sprintf("%s has seen %d events in %d bytes", MetaFile, e.Seq, e.Size)
	switch {
	case s.size < e.Size && s.beyond == 0 && s.torn == 0:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s ends after %d events and %d bytes", at, EventsFile, s.lines, s.size))
	case s.size != e.Size || s.lines != e.Seq:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s holds %d there", at, EventsFile, s.lines))
	case s.chain != e.Chain:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s holds other bytes there: a line was changed", at, EventsFile))
	}
}

// judgeKeys compares every key of meta.json that follows from the events. With a broken chain nothing can be said of them.
func (x *examined) judgeKeys() {
	if x.has(ChainMismatch, HaltDecisionWithoutHaltedMeta, TerminalEventWithoutTerminalMeta, TerminalMetaWithoutTerminalEvent,
		InterruptedEventWithoutInterruptedMeta, StatusMismatch, AwaitingWithoutActiveHandoff, HandoffEventWithoutMetaHandoff,
		MetaHandoffWithoutEvent, TerminalWithStaleHandoff) {
		return
	}
	if keys := x.strayKeys(); len(keys) > 0 {
		x.find(DerivedFileBehind, fmt.Sprintf("%s is not what the events give: %s", MetaFile, strings.Join(keys, ", ")))
		return
	}
	if want, err := x.meta.object.sum(); x.meta.typed.Digest != "" && (err != nil || want != x.meta.typed.Digest) {
		x.findIn(DerivedFileDamaged, MetaFile, MetaFile+" is not what was written: a key that no event gives was changed")
	}
}

// strayKeys are the keys of meta.json that are not what the events give, in the order in which they are written.
func (x *examined) strayKeys() []string {
	want, err := objectOf(x.stream.want)
	if err != nil {
		return nil // what was decoded from JSON can be encoded
	}
	notFolded := []string{"events", "segment_head", "derived", "summary", "records", "behind", "digests", "digest"}
	var stray []string
	for _, k := range append(want.keys, "phase_handoff") {
		if !slices.Contains(notFolded, k) && !slices.Contains(stray, k) && !sameJSON(x.meta.object.values[k], want.values[k]) {
			stray = append(stray, k)
		}
	}
	return stray
}
