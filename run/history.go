package run

import (
	"cmp"
	"slices"
)

// History is what only grows: the phases and hand-offs of a run. It is folded from the same events as State, but stays
// on disk: it does not travel. A phase is in the list of each kind of end that it had; the newest of them, by seq, is
// the one that counts.
type History struct {
	Seen      []PhaseMark `json:"seen_phases"`
	Completed []PhaseMark `json:"completed_phases"`
	Failed    []PhaseMark `json:"failed_phases"`
	Handoffs  []string    `json:"seen_handoff_ids"` // every hand-off ever requested, a revert or not
}

// PhaseMark is the event in which a phase started, completed or failed.
type PhaseMark struct {
	Phase string `json:"phase"`
	Seq   int64  `json:"seq"`
}

// phaseEnd is the result of the last end of a phase.
type phaseEnd int

const (
	notEnded phaseEnd = iota
	endedWell
	endedBadly
)

// Recorder folds events into a History, each in the same time, however much there is. A nil one records nothing.
type Recorder struct {
	h        History
	ends     map[string]phaseEnd // of every phase that has ended; nil: all lookups are to be made from h
	begun    map[string]bool
	handoffs map[string]bool
}

// NewRecorder continues from h, which it does not change.
func NewRecorder(h History) *Recorder {
	return &Recorder{h: History{
		Seen: kept(h.Seen), Completed: kept(h.Completed), Failed: kept(h.Failed), Handoffs: kept(h.Handoffs),
	}}
}

// History is what is recorded so far. Later events do not change it.
func (r *Recorder) History() History {
	h := r.h
	return History{Seen: kept(h.Seen), Completed: kept(h.Completed), Failed: kept(h.Failed), Handoffs: kept(h.Handoffs)}
}

// kept returns a list that later appends do not reach, and never null.
func kept[T any](list []T) []T { return filledList(slices.Clip(list)) }

// Apply folds one event.
func (r *Recorder) Apply(e Event) {
	if row := kinds()[e.Kind]; row != nil && row.record != nil {
		row.record(r, &e)
	}
}

func (r *Recorder) phaseStarted(e *Event) {
	p := decoded[PhaseStart](e)
	r.begin(p.Key, e.Seq)
}

func (r *Recorder) phaseEnded(e *Event) {
	p := decoded[PhaseEnd](e)
	r.end(p.Key, p.Outcome, e.Seq)
}

func (r *Recorder) handoffRequested(e *Event) { r.request(requested(e, QuestionHandoff).ID) }

func (r *Recorder) reverted(e *Event) {
	var p RunReverted
	if e.Decode(&p); p.State != nil {
		r.revert(p.To)
	}
}

func (r *Recorder) begin(phase string, seq int64) {
	if r == nil {
		return
	}
	r.index()
	if phase != "" && !r.begun[phase] {
		r.begun[phase] = true
		r.h.Seen = append(r.h.Seen, PhaseMark{phase, max(seq, newestOf(r.h.Seen))})
	}
}

func newestOf(marks []PhaseMark) int64 {
	if len(marks) == 0 {
		return 0
	}
	return marks[len(marks)-1].Seq
}

// end records an end only if its result differs from that of the end before, so rounds that all succeed take no space.
// The marks of all ends count upwards, even in a damaged stream that repeats a seq: which one is the newest does not
// depend on where a fold began.
func (r *Recorder) end(phase, outcome string, seq int64) {
	if r == nil {
		return
	}
	r.index()
	seq = max(seq, newestOf(r.h.Completed)+1, newestOf(r.h.Failed)+1)
	switch {
	case phase == "":
	case succeeded(outcome) && r.ends[phase] != endedWell:
		r.ends[phase] = endedWell
		r.h.Completed = append(r.h.Completed, PhaseMark{phase, seq})
	case unsuccessful(outcome) && r.ends[phase] != endedBadly:
		r.ends[phase] = endedBadly
		r.h.Failed = append(r.h.Failed, PhaseMark{phase, seq})
	}
}

func (r *Recorder) request(id string) {
	if r == nil {
		return
	}
	r.index()
	if id != "" && !r.handoffs[id] {
		r.handoffs[id] = true
		r.h.Handoffs = append(r.h.Handoffs, id)
	}
}

// revert drops the ends of phases after to.
func (r *Recorder) revert(to int64) {
	if r == nil {
		return
	}
	r.h.Seen, r.h.Completed, r.h.Failed = upTo(r.h.Seen, to), upTo(r.h.Completed, to), upTo(r.h.Failed, to)
	r.ends = nil
}

// upTo cuts off the marks after an event. Later appends go to new memory: the list may still be
// shared.
func upTo(marks []PhaseMark, to int64) []PhaseMark {
	n := len(marks)
	for n > 0 && marks[n-1].Seq > to {
		n--
	}
	return slices.Clip(marks[:n])
}

// index makes the lookups, once and after a revert.
func (r *Recorder) index() {
	if r.ends != nil {
		return
	}
	r.ends, r.begun = map[string]phaseEnd{}, map[string]bool{}
	for _, m := range r.h.Seen {
		r.begun[m.Phase] = true
	}
	r.h.eachEnd(func(m PhaseMark, end phaseEnd) { r.ends[m.Phase] = end })
	if r.handoffs == nil {
		r.handoffs = map[string]bool{}
		for _, id := range r.h.Handoffs {
			r.handoffs[id] = true
		}
	}
}

// eachEnd walks through the ends of all phases in the order of their events.
func (h History) eachEnd(visit func(PhaseMark, phaseEnd)) {
	well, badly := h.Completed, h.Failed
	for len(well)+len(badly) > 0 {
		if len(badly) == 0 || len(well) > 0 && well[0].Seq < badly[0].Seq {
			visit(well[0], endedWell)
			well = well[1:]
		} else {
			visit(badly[0], endedBadly)
			badly = badly[1:]
		}
	}
}

// SeenPhases are the phases that have begun, in the order of their first beginnings; never nil.
func (h History) SeenPhases() []string {
	out := make([]string, len(h.Seen))
	for i, m := range h.Seen {
		out[i] = m.Phase
	}
	return out
}

// CompletedPhases are the phases whose newest end counts as completed, in the order of those ends; never nil.
func (h History) CompletedPhases() []string { return h.ended(h.Completed, endedWell) }

// FailedPhases are the phases whose newest end was a failure, in the order of those ends; never nil.
func (h History) FailedPhases() []string { return h.ended(h.Failed, endedBadly) }

func (h History) ended(marks []PhaseMark, as phaseEnd) []string {
	newest, last := map[string]phaseEnd{}, map[string]int64{}
	h.eachEnd(func(m PhaseMark, end phaseEnd) { newest[m.Phase], last[m.Phase] = end, m.Seq })
	out := []string{}
	for _, m := range marks {
		if newest[m.Phase] == as && last[m.Phase] == m.Seq {
			out = append(out, m.Phase)
		}
	}
	return out
}

// Reverts collects the reverts of a run, to tell the events that hold from those that a revert left behind.
type Reverts struct {
	list []revertTo
	last int64 // event
}

type revertTo struct{ seq, to int64 }

// Take takes the next event.
func (r *Reverts) Take(e Event) {
	r.last = max(r.last, e.Seq)
	if e.Kind != KindRunReverted {
		return
	}
	if p := decoded[RunReverted](&e); p.State != nil && p.To >= 0 && p.To < e.Seq {
		r.list = append(r.list, revertTo{e.Seq, p.To})
	}
}

// InForce returns the events that hold: a revert leaves behind what came after the event that it goes back to, and what
// had been left behind at that event already. The costs of what is left behind count: it has been paid for.
func (r *Reverts) InForce() Ranges {
	var out Ranges
	last := r.last
	for _, back := range slices.Backward(r.list) {
		if back.seq <= last { // it is not left behind itself
			out, last = append(out, Range{First: back.seq, Last: last}), back.to
		}
	}
	out = append(out, Range{First: 1, Last: last})
	slices.Reverse(out)
	return out
}

// Ranges are ranges of events in ascending order.
type Ranges []Range

// Has reports whether an event is in one of them.
func (r Ranges) Has(seq int64) bool {
	i, found := slices.BinarySearchFunc(r, seq, func(r Range, seq int64) int { return cmp.Compare(r.First, seq) })
	return found && seq <= r[i].Last || i > 0 && seq <= r[i-1].Last
}

// InForce returns those of a run's first events that hold. Events are numbered from 1 without gaps.
func InForce(events []Event) []Event {
	var reverts Reverts
	for i, e := range events {
		reverts.Take(e.At(int64(i) + 1))
	}
	holds := reverts.InForce()
	var out []Event
	for i, e := range events {
		if holds.Has(int64(i) + 1) {
			out = append(out, e)
		}
	}
	return out
}
