package fsck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// judgeStream reports damage to events.jsonl itself.
func (x *examined) judgeStream() {
	s := &x.stream
	for _, f := range []struct {
		code   Code
		at     places
		format string
	}{
		{StreamLineUnreadable, s.unreadable, "not a JSON object: %s of " + layout.EventsFile},
		{StreamLineUnreadable, s.misnamed, "names no file of a run directory: %s of " + layout.EventsFile},
		{StreamSeqGap, s.gaps, "numbers are missing before, or in: %s of " + layout.EventsFile},
		{StreamSeqDuplicate, s.repeats, "the number was there before: %s of " + layout.EventsFile},
	} {
		switch {
		case f.at.n == 0:
		case f.at.first[0] > s.lines:
			x.lags(f.code, "", fmt.Sprintf(f.format, f.at))
		default:
			x.find(f.code, fmt.Sprintf(f.format, f.at))
		}
	}
	if s.torn > 0 {
		x.lags(StreamTornTail, layout.EventsFile, fmt.Sprintf("%d bytes behind the last line of %s are not a line", s.torn,
			layout.EventsFile))
	}
}

// judgeRecorded reports the damage that the journal records.
func (x *examined) judgeRecorded() error {
	found, err := x.dir.Damage(x.stream.want.State)
	for _, d := range found {
		x.find(DamageRecorded, d.String())
	}
	return err
}

// judgeMeta compares meta.json with the events, the decisions and the cross checkpoint.
func (x *examined) judgeMeta() {
	switch {
	case x.meta.raw == nil:
		if x.stream.lines > 0 {
			x.lags(MetaMissing, layout.MetaFile, fmt.Sprintf("there are %d events and no %s", x.stream.lines,
				layout.MetaFile))
		}
		return
	case x.meta.err != nil:
		x.findIn(MetaUnreadable, layout.MetaFile, fmt.Sprintf("%s cannot be read: %v", layout.MetaFile, x.meta.err))
		return
	}
	x.judgeHandoff()
	if x.cross != nil {
		x.judgeCross()
	}
	x.judgeStatus()
	x.judgeChain()
	x.judgeKeys()
	x.judgeLiveness()
}

// judgeLiveness reports a run that is open in its events and that no workflow continues. An undecided question requires
// an operator, even if no epoch has recorded the interruption yet.
func (x *examined) judgeLiveness() {
	if x.effective.Status != run.Interrupted || x.effective.Recorded == run.Interrupted {
		return
	}
	x.lags(RunningWithoutLiveWorkflow, "", fmt.Sprintf("the run is recorded as %s, and its workflow is %s",
		x.effective.Recorded, x.effective.Liveness))
	q, open := x.asks()
	if !open {
		return
	}
	x.lags(InterruptedWithActiveHandoff, "", fmt.Sprintf("the run was interrupted, and the question %s is not decided",
		q.ID))
	if h, _ := x.stream.want.State.Handoff(); h.ID != q.ID { // that of a hand-off is in meta.json, and named there
		x.lags(ActiveHandoffWithoutDecision, "", fmt.Sprintf("no decision on the question %s is in the journal", q.ID))
	}
}

// asks returns the question that the events leave open and that no decision on disk answers.
func (x *examined) asks() (run.Question, bool) {
	q, open := x.stream.want.State.Asks()
	return q, open && x.answer(q.ID) == nil
}

// judgeHandoff checks the open question in meta.json.
func (x *examined) judgeHandoff() {
	id, there := x.meta.handoff()
	status, folded := x.meta.status(), x.folded()
	if !there {
		if status == run.AwaitingPhaseHandoff {
			x.find(AwaitingWithoutActiveHandoff, "the run awaits a decision, and "+layout.MetaFile+
				" does not say on what")
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
		x.find(code, fmt.Sprintf("the run has ended, and %s still contains hand-off %s", layout.MetaFile, id))
	}
	if !decided {
		x.find(ActiveHandoffWithoutDecision, fmt.Sprintf("no decision on hand-off %s is on disk", id))
	}
	asked := x.stream.want.History.Handoffs
	if h, open := x.stream.want.State.Handoff(); open {
		asked = append(slices.Clip(asked), h.ID) // a review is not in the history
	}
	if !slices.Contains(asked, id) {
		x.find(MetaHandoffWithoutEvent, fmt.Sprintf("hand-off %s was never requested in %s", id, layout.EventsFile))
	}
}

// stale reports whether a hand-off in meta.json has ended. A run over several projects has none after its end.
func (x *examined) stale() (bool, Code) {
	if x.cross == nil {
		return x.meta.status().Settled(), TerminalWithStaleHandoff
	}
	return rundir.Terminal(x.meta.status()), CrossTerminalWithStaleHandoff
}

// judgeStatus compares the status of meta.json with that of the events, the most specific code first.
func (x *examined) judgeStatus() {
	m, f := x.meta.status(), x.folded()
	if f == "" {
		f = run.Unknown
	}
	message := fmt.Sprintf("the status is %s in the events, but %[3]s in %[2]s", f, layout.MetaFile, orNone(m))
	if m != run.Halted && x.haltWasDecided() {
		x.find(HaltDecisionWithoutHaltedMeta, fmt.Sprintf("a halt was decided, but the status in %s is %s", layout.MetaFile,
			orNone(m)))
	}
	open := x.openInEvents()
	switch {
	case m == x.folded():
	case rundir.Terminal(f) && !rundir.Terminal(m):
		x.find(TerminalEventWithoutTerminalMeta, message)
	case f == run.Interrupted:
		x.find(InterruptedEventWithoutInterruptedMeta, message)
	case rundir.Terminal(m) && !rundir.Terminal(f):
		x.find(TerminalMetaWithoutTerminalEvent, message)
	default:
		x.find(StatusMismatch, message)
	}
	if id, _ := x.meta.handoff(); open != "" && id != open && x.cross == nil && !x.folded().Settled() {
		x.find(HandoffEventWithoutMetaHandoff, fmt.Sprintf("hand-off %s is open, and %s does not contain it", open,
			layout.MetaFile))
	}
}

func orNone(s run.Status) string {
	if s == "" {
		return "nothing"
	}
	return string(s)
}

// openInEvents is the undecided hand-off in the events; empty: none.
func (x *examined) openInEvents() string {
	h, open := x.stream.want.State.Handoff()
	waits := slices.Contains([]run.Status{run.AwaitingPhaseHandoff, run.AwaitingHumanReview, run.Failed, run.Interrupted},
		x.folded())
	if !open || !waits || x.answer(h.ID) != nil {
		return ""
	}
	return h.ID
}

// judgeChain compares the lines in meta.json with their digest there.
func (x *examined) judgeChain() {
	s, e := x.stream, x.meta.typed.Events
	at := fmt.Sprintf("%s has seen %d events in %d bytes", layout.MetaFile, e.Seq, e.Size)
	switch {
	case s.size < e.Size && s.beyond == 0 && s.torn == 0:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s ends after %d events and %d bytes", at, layout.EventsFile,
			s.lines, s.size))
	case s.size != e.Size || s.lines != e.Seq:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s holds %d there", at, layout.EventsFile, s.lines))
	case s.chain != e.Chain:
		x.find(ChainMismatch, fmt.Sprintf("%s, and %s holds other bytes there: a line was changed", at,
			layout.EventsFile))
	}
}

// judgeKeys compares every key of meta.json that follows from the events. With a broken chain nothing can be compared.
func (x *examined) judgeKeys() {
	if x.has(ChainMismatch, HaltDecisionWithoutHaltedMeta, TerminalEventWithoutTerminalMeta,
		TerminalMetaWithoutTerminalEvent,
		InterruptedEventWithoutInterruptedMeta, StatusMismatch, AwaitingWithoutActiveHandoff,
		HandoffEventWithoutMetaHandoff,
		MetaHandoffWithoutEvent, TerminalWithStaleHandoff) {
		return
	}
	if keys := x.strayKeys(); len(keys) > 0 {
		x.find(DerivedFileBehind, fmt.Sprintf("%s is not what the events give: %s", layout.MetaFile,
			strings.Join(keys, ", ")))
		return
	}
	if want, err := x.meta.object.Sum(); x.meta.typed.Digest != "" && (err != nil || want != x.meta.typed.Digest) {
		x.findIn(DerivedFileDamaged, layout.MetaFile,
			layout.MetaFile+" is not what was written: a key that does not follow from events was changed")
	}
}

// strayKeys lists the keys of meta.json that differ from the events, in the order in which they are written.
func (x *examined) strayKeys() []string {
	want, err := object.ObjectOf(x.stream.want.Meta)
	if err != nil {
		return nil // what was decoded from JSON can be encoded
	}
	notFolded := []string{"events", "segment_head", "derived", "summary", "records", "behind", "digests", "digest"}
	var stray []string
	for _, k := range append(want.Keys, "phase_handoff") {
		if !slices.Contains(notFolded, k) && !slices.Contains(stray, k) &&
			!object.SameJSON(x.meta.object.Values[k], want.Values[k]) {
			stray = append(stray, k)
		}
	}
	return stray
}
