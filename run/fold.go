package run

// Apply folds one event into a state. It is pure and total, takes the same time for every event, and never changes s:
// slices that change are copied, so states taken earlier stay as they were.
func Apply(s State, e Event) State {
	f := folder{State: s}
	f.apply(&e)
	return f.State
}

// folder is a state that events are folded into, one after another.
type folder struct {
	State
	own      bool      // the state's slices are not shared: they are changed in place
	recorder *Recorder // of the second layer, so that a payload is read once for both; nil: only the state is folded
}

func (f *folder) apply(e *Event) {
	r := kinds()[e.Kind]
	if r == nil || !r.partOfPass {
		f.applyOne(e, r)
		return
	}
	behind := f.Checkpoint != nil && f.Checkpoint.Seq == e.Seq-1 && isUnnamed(f.Checkpoint.ID, e.Seq-1)
	f.applyOne(e, r)
	if behind {
		f.head(e) // the head includes it
	}
}

func (f *folder) applyOne(e *Event, r *kindRow) {
	f.Seq, f.InvalidTransition = max(f.Seq, e.Seq), ""
	if e.TS > f.TS {
		if e.Kind != KindRunInterrupted {
			f.Used.LiveMS += f.liveUntil(e.TS)
		}
		f.TS = e.TS
	}
	if r != nil {
		r.fold(f, e)
	}
}

// take replaces the state by the result of a function of owners.go. A refused transition is recorded and changes
// nothing.
func (f *folder) take(s State, err error) bool {
	if err != nil {
		f.InvalidTransition = err.Error()
		return false
	}
	f.State = s
	return true
}

// become changes the status if the table allows it. A closed run changes only through the events that open an epoch.
func (f *folder) become(to Status, reason string) bool {
	if err := f.mayBecome(to); err != nil {
		f.InvalidTransition = err.Error()
		return false
	}
	f.Status, f.Reason = to, reason
	return true
}

func (f *folder) start(e *Event) {
	var p RunStart
	e.Decode(&p)
	if !f.mayStart(p.Epoch) {
		f.InvalidTransition = f.refusal(Running).Error()
		return
	}
	if p.State != nil {
		f.adopt(p.State)
	}
	f.Version, f.Status, f.Reason, f.Markers = StateVersion, Running, "", f.Markers.reopened()
	f.RunID, f.ThreadID, f.RunKind, f.Pipeline, f.Task = p.RunID, p.ThreadID, p.RunKind, p.Pipeline, p.Task
	f.Wording, f.Stages = p.Wording, nil
	if p.Wording != "" {
		f.Stages = p.Stages
	}
	f.Epoch, f.CreatedAt, f.FinishedAt = p.Epoch, p.CreatedAt, ""
	f.Starts++
	if f.StartedAt == "" {
		f.StartedAt = e.TS
	}
	f.Budget, f.Plan, f.MemberOf, f.LaneOf, f.Forge = p.Budget, nil, p.MemberOf, p.Lane, nil
	if p.Forge != nil {
		f.Forge = &ForgeState{Ref: *p.Forge, Since: e.TS}
		if p.Forge.Issue != nil {
			f.Forge.Read.Issue = p.Forge.Issue.Read
		}
	}
	if p.Plan != "" {
		f.Plan = &CurrentPlan{PlanRef: p.PlanRef()}
	}
	for _, found := range p.Found {
		f.problem(e, found.Context, found.Category, found.Message, found.Attempt)
	}
	if p.State == nil {
		f.begin(&p)
	} else {
		f.Passes.Total = p.TotalPasses
	}
	if l := p.Lane; l != nil && l.Redo > 0 {
		f.Redone = []Redone{{Stage: f.Next.Stage, Until: Place{Stage: f.Next.Stage + 1}, Times: l.Redo}}
	}
	f.Projects = nil // also of a copy: each has a new run
	for _, ref := range p.Projects {
		f.Projects = append(f.Projects, ProjectState{ProjectRef: ref, Outcome: ProjectPending})
	}
	if w := p.Workspace; w != nil {
		tree := w.Tree
		f.Tree, f.Commit = &tree, w.Base
		if w.Commit != "" {
			f.Commit = w.Commit
		}
	}
	f.head(e)
}

// begin copies from the start of a run what no checkpoint of another run determines.
func (f *folder) begin(p *RunStart) {
	f.Next, f.Replies, f.Passes = Place{Round: 1}, p.Replies, PassCount{Total: p.TotalPasses}
	if p.From != nil {
		f.Next = *p.From
	}
	if p.Artifact != nil {
		seed := p.Artifact.Seed
		f.Artifact = &seed
	}
	if f.Adopted = p.Adopted; f.Adopted != nil {
		f.Sessions = []RoleSession{f.Adopted.session()}
	}
	f.Notes = nil
	for _, n := range p.Notes {
		f.Notes = append(f.Notes, Notes{Name: n.Name, File: n.File})
	}
}

// mayStart reports whether run.start may open an epoch here.
func (s *State) mayStart(epoch int) bool {
	from := s.statusOrUnknown()
	return Transition(from, Running) == nil && (!from.Closed() || epoch > s.Epoch)
}

func (f *folder) pause(e *Event) {
	var p RunPaused
	e.Decode(&p)
	if !f.become(Paused, p.Reason) {
		return
	}
	f.InFlight, f.Limited = nil, nil
	if p.Reason == UserReview {
		f.Review = ""
	}
	if p.Reason == DiskFull || p.Reason == SetupFailed {
		f.problem(e, "", CategoryFileIO, p.Detail, 0)
	}
	if p.Failed != nil {
		f.Failure = f.failedAgain(p)
	}
	f.head(e)
}

// failedAgain counts the starts in which the same pass failed.
func (s *State) failedAgain(p RunPaused) *Failure {
	f := Failure{FailedPass: *p.Failed, Message: p.Detail, Starts: 1}
	f.Category = f.Category.In(s.Wording)
	if s.Failure != nil && s.Failure.Same(f.FailedPass) {
		f.Starts += s.Failure.Starts
	}
	return &f
}

// resume continues in place, or opens an epoch, from the state that it carries.
func (f *folder) resume(e *Event) {
	var p RunResumed
	e.Decode(&p)
	if p.Waits && p.Epoch > f.Epoch {
		f.Epoch = p.Epoch
		return
	}
	if p.State == nil && !f.Status.Closed() {
		replayed := f.Status == Replaying // its recorded part is complete: this starts nothing
		if f.become(Running, "") && !replayed {
			f.Starts++
		}
		if p.Force {
			f.Failure = nil
		}
		f.Need = nil
		f.beginPlan()
		return
	}
	if f.Status == Done || p.Epoch <= f.Epoch {
		f.InvalidTransition = f.refusal(Running).Error()
		return
	}
	if p.State != nil {
		f.adopt(p.State)
	}
	if p.Force {
		f.Failure = nil
	}
	kept := f.Markers.reopened()
	if !f.Status.Settled() { // nothing was decided since
		kept.DeliveryOverride = f.Markers.DeliveryOverride
	}
	f.Status, f.Reason, f.Epoch, f.FinishedAt, f.Markers = Running, "", p.Epoch, "", kept
	f.Need = nil
	f.Starts++
	f.beginPlan()
}

func (f *folder) revert(e *Event) {
	var p RunReverted
	e.Decode(&p)
	if p.State != nil {
		f.adopt(p.State)
		f.recorder.revert(p.To)
		f.head(e)
	}
}

// adopt replaces the state by a carried one, at the current position in the stream.
func (f *folder) adopt(carried *State) {
	seq, ts, damage := f.Seq, f.TS, f.Damage
	f.State = *carried
	// damage is of the directory, which going back does not repair
	f.Seq, f.TS, f.InvalidTransition, f.Damage = seq, ts, "", damage
}

// end folds run.end. One with the status of a run that waits changes nothing.
func (f *folder) end(e *Event) {
	var p RunEnd
	e.Decode(&p)
	if !p.Status.Known() || p.Status == f.Status && p.Status.Class() == OperatorPause {
		return
	}
	var ended bool
	switch p.Status {
	case Done:
		ended = f.approved() || f.take(MarkRunDone(f.State, p.Reason, e.TS))
	case Halted:
		ended = f.Status == Halted || f.take(MarkRunHalted(f.State, p.Reason, e.TS))
	case Cancelled:
		ended = f.endedAcross(p) || f.take(settle(f.State, Cancelled, p.Reason, e.TS))
	case Failed:
		ended = f.endedAcross(p) || f.take(MarkRunFailed(f.State, p.Reason, p.Type, e.TS))
	case Interrupted:
		ended = f.take(MarkRunInterrupted(f.State, p.Reason, e.TS))
	default:
		ended = f.become(p.Status, p.Reason)
	}
	if ended {
		f.Markers = f.Markers.outcome(p.Outcome)
		f.head(e)
	}
}

// approved reports that an approved review has already ended the run: like a halt, it is its decision and one run.end.
func (s *State) approved() bool { return s.Status == Done && s.Reason == ReasonReviewApproved }

func (f *folder) interrupt(e *Event) {
	var p RunInterrupted
	e.Decode(&p)
	at := p.At
	if at == "" {
		at = e.TS
	}
	if f.take(MarkRunInterrupted(f.State, p.Reason, at)) {
		f.FinishedAt = e.TS
	}
}
