package run

import "strings"

// Apply folds one event into a state. It is pure and total, takes the same time for every event, and never changes s: slices that change are
// copied, so states taken earlier stay as they were.
func Apply(s State, e Event) State {
	s.Seq, s.Illegal = e.Seq, ""
	if e.TS > s.TS {
		s.TS = e.TS
	}
	switch e.Kind {
	case KindRunStart, KindRunStarted:
		return s.start(e)
	case KindRunPaused:
		return s.pause(e)
	case KindRunResumed:
		return s.resume(e)
	case KindRunReverted:
		return s.revert(e)
	case KindRunReplaying:
		return s.become(Replaying, "")
	case KindRunEnd:
		return s.end(e)
	case KindRunHalted:
		return s.close(Halted, "", e.TS)
	case KindRunInterrupted:
		return s.interrupt(e)
	case KindPhaseStart:
		return s.startPhase(e)
	case KindPhaseEnd:
		return s.endPhase(e)
	case KindHandoffRequested:
		return s.requestHandoff(e)
	case KindHandoffDecided:
		return s.decideHandoff(e)
	case KindGateRequested, KindDeliveryRequested:
		return s.become(AwaitingGateDecision, "")
	case KindReviewRequested:
		return s.become(AwaitingHumanReview, "")
	case KindGateDecided, KindDeliveryDecided, KindReviewDecided:
		return s.decideWait(e)
	}
	return s.applyWork(e)
}

// applyWork folds the events of the work itself; they leave the status alone.
func (s State) applyWork(e Event) State {
	switch e.Kind {
	case KindPassStart:
		return s.startPass(e)
	case KindPassAttempt:
		return s.attemptPass(e)
	case KindPassEnd:
		return s.endPass(e)
	case KindArtifactUpdated:
		var p ArtifactUpdated
		e.Decode(&p)
		s.Artifact = &p.Artifact
	case KindNoteAppended:
		return s.appendNote(e)
	case KindScreenshots:
		return s.takePictures(e)
	case KindScoreRecorded:
		return s.recordScore(e)
	case KindCheckpointCreated:
		return s.checkpoint(e)
	case KindBudgetWarning:
		s.Warned = true
	case KindBudgetRaised:
		var p BudgetEvent
		e.Decode(&p)
		s.Budget, s.Warned = p.Budget, p.WarnUSD > 0 && s.Total() >= p.WarnUSD
	}
	return s
}

// become changes the status if the table allows it. What it does not allow is named and changes nothing; a closed run changes only through
// the events that open an epoch.
func (s State) become(to Status, reason string) State {
	if err := Transition(s.Status, to); err != nil || s.Status.Closed() {
		return s.refuse(to)
	}
	s.Status, s.Reason = to, reason
	return s
}

// refuse names an event that would make an illegal transition.
func (s State) refuse(to Status) State {
	s.Illegal = (&TransitionError{From: s.Status, To: to, Allowed: allowed(s.Status)}).Error()
	return s
}

func (s State) start(e Event) State {
	var p RunStart
	e.Decode(&p)
	if !s.mayStart(p.Epoch) {
		return s.refuse(Running)
	}
	s.Version, s.Status, s.Reason = StateVersion, Running, ""
	s.RunID, s.ThreadID, s.Pipeline, s.Task = p.RunID, p.ThreadID, p.Pipeline, p.Task
	s.Epoch, s.CreatedAt, s.FinishedAt = p.Epoch, p.CreatedAt, ""
	s.Starts++
	if s.StartedAt == "" {
		s.StartedAt = e.TS
	}
	s.Next, s.Budget = Place{Round: 1}, p.Budget
	s.Passes = PassCount{Total: p.TotalPasses}
	if p.Artifact != nil {
		seed := p.Artifact.Seed
		s.Artifact = &seed
	}
	s.Notes = nil
	for _, n := range p.Notes {
		s.Notes = append(s.Notes, Notes{Name: n.Name, File: n.File})
	}
	return s.head(e)
}

// mayStart says whether run.start may open an epoch here. Streams of other programs number no epochs: there a start follows every end that
// does not settle the run.
func (s State) mayStart(epoch int) bool {
	from := s.Status
	if from == "" {
		from = Unknown
	}
	if Transition(from, Running) != nil {
		return false
	}
	foreign := epoch == 0 && s.Epoch == 0 && !from.Settled()
	return !from.Closed() || epoch > s.Epoch || foreign
}

func (s State) pause(e Event) State {
	var p RunPaused
	e.Decode(&p)
	if s = s.become(Paused, p.Reason); s.Illegal != "" {
		return s
	}
	s.InFlight = nil
	if p.Failed != nil {
		s.Failure = s.failedAgain(p)
	}
	return s.head(e)
}

// failedAgain counts the starts in which the same pass failed.
func (s State) failedAgain(p RunPaused) *Failure {
	f := Failure{FailedPass: *p.Failed, Message: p.Detail, Starts: 1}
	if s.Failure != nil && s.Failure.Same(f.FailedPass) {
		f.Starts += s.Failure.Starts
	}
	return &f
}

// resume goes on in place, or opens an epoch, from the state that it carries.
func (s State) resume(e Event) State {
	var p RunResumed
	e.Decode(&p)
	if p.State == nil && !s.Status.Closed() {
		if s = s.become(Running, ""); s.Illegal == "" {
			s.Starts++
		}
		if p.Force {
			s.Failure = nil
		}
		return s
	}
	if s.Status == Done || p.Epoch <= s.Epoch {
		return s.refuse(Running)
	}
	next := s
	if p.State != nil {
		next = p.State.at(s)
	}
	next.Status, next.Reason, next.Epoch, next.FinishedAt = Running, "", p.Epoch, ""
	next.Starts++
	return next
}

func (s State) revert(e Event) State {
	var p RunReverted
	e.Decode(&p)
	if p.State == nil {
		return s
	}
	return p.State.at(s)
}

// at takes over a carried state at the place in the stream where now stands.
func (s State) at(now State) State {
	s.Seq, s.TS, s.Illegal = now.Seq, now.TS, ""
	return s
}

func (s State) end(e Event) State {
	var p RunEnd
	e.Decode(&p)
	if !p.Status.Known() {
		return s
	}
	if s = s.close(p.Status, p.Reason, e.TS); s.Illegal != "" {
		return s
	}
	return s.head(e)
}

// close ends a run. A settled one carries no open question; a failed one keeps it. A halt is its decision and one run.end, so halted may be
// said twice.
func (s State) close(to Status, reason, ts string) State {
	if s.Status == Halted && to == Halted {
		return s
	}
	if s = s.become(to, reason); s.Illegal != "" {
		return s
	}
	s.FinishedAt, s.InFlight, s.Set = ts, nil, ""
	if to.Settled() {
		s.Handoff = nil
	}
	return s
}

func (s State) interrupt(e Event) State {
	if s = s.become(Interrupted, ""); s.Illegal != "" {
		return s
	}
	s.InFlight, s.FinishedAt = nil, e.TS
	return s
}

func (s State) requestHandoff(e Event) State {
	if s = s.become(AwaitingPhaseHandoff, ""); s.Illegal != "" {
		return s
	}
	var p struct {
		ID string `json:"handoff_id"`
		Handoff
		Type string `json:"handoff_type"`
	}
	e.Decode(&p)
	p.Handoff.ID, p.Handoff.Type = p.ID, p.Type
	s.Handoff = &p.Handoff
	return s.head(e)
}

func (s State) decideHandoff(e Event) State {
	if isHalt(e) {
		return s.close(Halted, "phase_handoff_halt", e.TS)
	}
	if s = s.become(Running, ""); s.Illegal == "" {
		s.Handoff = nil
	}
	return s
}

func (s State) decideWait(e Event) State {
	if isHalt(e) {
		return s.close(Halted, string(e.Kind), e.TS)
	}
	return s.become(Running, "")
}

func isHalt(e Event) bool {
	var p struct {
		Action string `json:"action"`
	}
	e.Decode(&p)
	return strings.EqualFold(strings.TrimSpace(p.Action), "halt")
}
