package run

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// foreignStream is what the fold of another program's stream keeps beside the state. It is not stored.
type foreignStream struct {
	on       bool
	started  bool   // a start of the run itself was folded
	headless bool   // a missing start was reported
	cross    bool   // the run is one across projects
	alias    string // of the run, if it is a child itself
	children int    // children that started and have not ended
	ended    Status // the last end of the run
	phase    string // name of the phase that is open, as in its line
	unusual  string // what is out of order in the last event
}

// ForeignState begins the fold of a stream that another program wrote. Each event is folded by its meaning alone: the
// table of transitions refuses nothing. A transition that is not in the table is folded and listed (see
// [Fold.Unusual]). A run that ended as done, halted or cancelled is opened again by a start only, and one that is done
// by nothing.
//
// A run across projects has the starts and ends of its children in its own stream. They do not end it.
func ForeignState() State { return State{foreign: foreignStream{on: true}} }

// LastEnd is the last end that another program's stream records, whatever came after it; empty: none.
func (s State) LastEnd() Status { return s.foreign.ended }

func (f *folder) unusual(format string, args ...any) {
	if f.foreign.unusual == "" {
		f.foreign.unusual = fmt.Sprintf(format, args...)
	}
}

// applyForeign folds one event of another program.
func (f *folder) applyForeign(e *Event, r *kindRow) {
	f.foreign.unusual = ""
	switch {
	case r == nil:
		return
	case r.started && !f.foreign.started && !f.foreign.headless: // a stream without a start is reported once
		f.foreign.headless = true
		f.unusual("%s comes before any %s", e.Kind, KindRunStart)
	}
	if r.foreign != nil {
		r.foreign(f, e)
	} else {
		r.fold(f, e)
	}
}

// turn changes the status, and reports a change that is not in the table. An end that settles the run stays.
func (f *folder) turn(e *Event, to Status) bool {
	from := f.statusOrUnknown()
	if from.Settled() {
		f.unusual("%s comes after the end of the run, which stays %s", e.Kind, from)
		return false
	}
	if from != Unknown && Transition(from, to) != nil {
		f.unusual("%s comes while the run is %s", e.Kind, from)
	}
	f.Status, f.Reason = to, ""
	return true
}

// reopen folds what starts or resumes the run itself.
func (f *folder) reopen(e *Event) bool {
	switch from := f.statusOrUnknown(); {
	case from == Done:
		f.unusual("%s comes after the end of the run, which stays done", e.Kind)
		return false
	case from.Settled():
		f.unusual("%s comes after the run ended as %s", e.Kind, from)
	}
	f.Version, f.Status, f.Reason, f.FinishedAt, f.Markers = StateVersion, Running, "", "", f.Markers.reopened()
	f.foreign.children = 0
	f.Starts++
	return true
}

// foreignStart is the payload of run.start in the stream of another program.
type foreignStart struct {
	RunStart
	Alias string `json:"project_alias"`
}

func (f *folder) startForeign(e *Event) {
	p := decoded[foreignStart](e)
	if f.startsChild(p.RunKind, p.Alias) {
		f.foreign.children++
		if !f.statusOrUnknown().Closed() {
			f.Status, f.Reason = Running, ""
		}
		return
	}
	s := &f.foreign
	s.started, s.alias = true, p.Alias
	s.cross = s.cross || strings.HasPrefix(p.RunKind, "cross")
	if !f.reopen(e) {
		return
	}
	if f.Starts == 1 {
		f.Budget = p.Budget
		f.begin(&p.RunStart)
	}
	f.RunID, f.ThreadID, f.RunKind = cmp.Or(p.RunID, f.RunID), cmp.Or(p.ThreadID, f.ThreadID),
		cmp.Or(p.RunKind, f.RunKind)
	f.Pipeline, f.Task = cmp.Or(p.Pipeline, f.Pipeline), cmp.Or(p.Task, f.Task)
	f.Epoch, f.CreatedAt, f.StartedAt = p.Epoch, cmp.Or(p.CreatedAt, f.CreatedAt), cmp.Or(f.StartedAt, e.TS)
	f.head(e)
}

// startsChild reports whether a start is that of a child, which is recorded in the stream of its parent.
func (s *State) startsChild(kind, alias string) bool {
	byAlias := alias != "" && alias != s.foreign.alias
	byKind := s.foreign.cross && kind != "" && !strings.HasPrefix(kind, "cross")
	return s.foreign.started && (byAlias || byKind)
}

func (f *folder) resumeForeign(e *Event) {
	var p RunResumed
	e.Decode(&p)
	if f.Status != Done && p.State != nil {
		f.adopt(p.State)
	}
	if f.reopen(e) {
		f.Epoch = max(f.Epoch, p.Epoch)
	}
}

func (f *folder) pauseForeign(e *Event) {
	var p RunPaused
	e.Decode(&p)
	if f.turn(e, Paused) {
		f.Reason, f.InFlight = p.Reason, nil
		f.head(e)
	}
}

// foreignEnd is the payload of run.end and run.halted in the stream of another program.
type foreignEnd struct {
	RunEnd
	HaltReason string          `json:"halt_reason"`
	Alias      string          `json:"project_alias"`
	Projects   json.RawMessage `json:"projects"`
}

// endForeign folds run.end and run.halted. A child's end names its project, or comes while a child has not ended; only
// that of the parent counts its projects.
func (f *folder) endForeign(e *Event) {
	p := decoded[foreignEnd](e)
	byAlias := p.Alias != "" && p.Alias != f.foreign.alias
	if byAlias || f.foreign.children > 0 && p.Projects == nil {
		f.foreign.children = max(0, f.foreign.children-1)
		return
	}
	if e.Kind == KindRunHalted {
		p.Status = Halted
	}
	if p.Status.Known() && p.Status != Unknown {
		f.foreign.children = 0
		f.close(e, p.Status, cmp.Or(p.Reason, p.HaltReason), e.TS)
		f.Markers = f.Markers.outcome(p.Outcome)
	}
}

func (f *folder) interruptForeign(e *Event) {
	var p RunInterrupted
	e.Decode(&p)
	f.foreign.children = 0
	f.close(e, Interrupted, p.Reason, cmp.Or(p.At, e.TS))
}

// close ends the run. A repeated end changes nothing.
func (f *folder) close(e *Event, to Status, reason, at string) {
	if f.Status == to || !f.turn(e, to) {
		return
	}
	f.Reason = reason
	if to.Closed() {
		f.State = f.closed(to, reason, at)
		f.foreign.ended = to
	}
	f.head(e)
}

func (f *folder) startForeignPhase(e *Event) {
	f.startPhase(e)
	f.foreign.phase = phaseName(e)
}

// endForeignPhase folds the end of a phase. A phase that never started counts too. An end without a key may have
// another title than its start: then the name in the line identifies the phase.
func (f *folder) endForeignPhase(e *Event) {
	p := decoded[PhaseEnd](e)
	key := phaseKey(p.Key, p.Title, e.Phase)
	if p.Key == "" && f.PhaseOpen && phaseName(e) != "" && phaseName(e) == f.foreign.phase && !f.recorder.has(key) {
		key = f.Phase
	}
	if f.recorder != nil && key != "" && !f.recorder.has(key) {
		f.unusual("phase %s ends and never started", key)
		f.recorder.begin(key, e.Seq)
	}
	f.recorder.end(key, p.Outcome, e.Seq)
	if key == f.Phase {
		f.PhaseOpen = false
	}
}

// askForeign opens a question. The last hand-off that was requested is the active one.
func (f *folder) askForeign(e *Event, spec QuestionSpec) {
	q := requested(e, spec.Kind)
	f.count(q)
	open, there := f.Open(QuestionHandoff)
	if there && spec.Kind == QuestionHandoff && f.Status == spec.Status {
		if f.passesOn(q.ID, open.ID) {
			f.foreign.children = 0 // the child has stopped without an end
		} else {
			f.unusual("hand-off %s is requested while %s is open", q.ID, open.ID)
		}
		f.Status = Running
	}
	if f.turn(e, spec.Status) {
		f.open(e, q)
	}
}

// passesOn reports whether a parent asks what one of its children has asked.
func (s *State) passesOn(id, child string) bool {
	return strings.HasPrefix(id, "project:") && strings.HasSuffix(id, ":"+child)
}

// decideForeign folds an answer. Of other questions than hand-offs another program may define other actions: the run
// continues with them.
func (f *folder) decideForeign(e *Event, spec QuestionSpec) {
	d := decision(e, spec.Kind)
	d.DecidedAt = cmp.Or(d.DecidedAt, e.TS)
	asked, _ := f.Open(spec.Kind)
	open := f.answers(spec.Kind, d.ID) == nil
	if !open {
		f.unusual("%s %s is decided and not open", spec.Name, d.ID)
	}
	answer, known := spec.Answer(word(d.Action))
	switch {
	case !known && !spec.AnyAction:
		f.unusual("a %s cannot be decided with %q", spec.Name, d.Action)
		return
	case !open && !(spec.Kind == QuestionHandoff && answer.Effect.Has(EndsHalted)):
		return
	case answer.Effect.Has(EndsHalted):
		f.close(e, Halted, spec.halted(), e.TS)
	case answer.Effect.Has(EndsDone):
		f.close(e, Done, ReasonReviewApproved, e.TS)
	case f.Status == Running || f.turn(e, Running):
		f.Questions = f.without(spec.Kind, false)
		if answer.Effect.Has(Waives) {
			f.waive(f.Markers.Waiver)
			f.Markers.Waiver = asked.waived(d)
		}
	default:
		return
	}
	f.remember(d, Question{})
}
