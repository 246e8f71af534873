package run

import "slices"

// Fold folds a whole stream, both layers, for readers: faster than Apply event by event, because the states in
// between are not kept.
type Fold struct {
	state folder
	event Event // the last one: a separate copy of each would be on the heap
}

// Snapshot is the result of a stream, in one flat object: every key is always there, lists are never null.
type Snapshot struct {
	Status Status `json:"status"`
	Seq    int64  `json:"seq"`
	// done, halted, cancelled or failed; an interrupted run is torn, not ended
	Terminal           bool     `json:"terminal"`
	SeenPhases         []string `json:"seen_phases"`
	CompletedPhases    []string `json:"completed_phases"`
	FailedPhases       []string `json:"failed_phases"`
	ActivePhase        *string  `json:"active_phase"`
	ActiveHandoffID    *string  `json:"active_handoff_id"`
	ActiveHandoffPhase *string  `json:"active_handoff_phase"`
	SeenHandoffIDs     []string `json:"seen_handoff_ids"`
}

// NewFold continues from a state and a history, which it does not change. Both are zero for a stream that is read from
// its beginning.
func NewFold(s State, h History) *Fold {
	return &Fold{state: folder{State: s.Clone(), own: true, recorder: NewRecorder(h)}}
}

// Apply folds one event.
func (f *Fold) Apply(e Event) {
	f.event = e
	f.state.apply(&f.event)
}

// Current is the state after the events so far, as it is folded: the next event changes it.
func (f *Fold) Current() *State { return &f.state.State }

// State is the small state after the events so far. Later events do not change it.
func (f *Fold) State() State { return f.state.State.Clone() }

// History is what only grows. Later events do not change it.
func (f *Fold) History() History { return f.state.recorder.History() }

// Snapshot is the result of the stream so far.
func (f *Fold) Snapshot() Snapshot { return Snapped(f.state.State, f.state.recorder.History()) }

// Snapped puts a state and the history up to the same event into one flat object.
func Snapped(s State, h History) Snapshot {
	shot := Snapshot{
		Status: s.statusOrUnknown(), Seq: s.Seq, Terminal: s.Status.Closed() &&
			s.Status.Class() != Torn, SeenPhases: h.SeenPhases(),
		CompletedPhases: h.CompletedPhases(), FailedPhases: h.FailedPhases(),
		SeenHandoffIDs: append([]string{}, h.Handoffs...),
	}
	if s.PhaseOpen {
		shot.ActivePhase = filled(s.Phase)
	}
	if h, open := s.Open(QuestionHandoff); open {
		shot.ActiveHandoffID, shot.ActiveHandoffPhase = filled(h.ID), filled(h.Phase)
	}
	return shot
}

func filled(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// Clone returns a state that shares no slice with s.
func (s State) Clone() State {
	s.Settled, s.Tries, s.InFlight, s.Notes = slices.Clone(s.Settled), slices.Clone(s.Tries), slices.Clone(s.InFlight),
		slices.Clone(s.Notes)
	s.Replies, s.Values, s.ByRole, s.ByStage = slices.Clone(s.Replies), slices.Clone(s.Values), slices.Clone(s.ByRole),
		slices.Clone(s.ByStage)
	s.DurationsMS, s.Checkpoints, s.Damage = slices.Clone(s.DurationsMS), slices.Clone(s.Checkpoints),
		slices.Clone(s.Damage)
	s.Means, s.Loops, s.Sessions = slices.Clone(s.Means), slices.Clone(s.Loops), slices.Clone(s.Sessions)
	s.Scores, s.Outputs, s.Conditions = slices.Clone(s.Scores), slices.Clone(s.Outputs), slices.Clone(s.Conditions)
	s.Instructions, s.Started = slices.Clone(s.Instructions), slices.Clone(s.Started)
	s.Decisions, s.Files, s.Commands = slices.Clone(s.Decisions), slices.Clone(s.Files), slices.Clone(s.Commands)
	s.Redone, s.Questions, s.Waivers, s.Stages = slices.Clone(s.Redone), slices.Clone(s.Questions),
		slices.Clone(s.Waivers), slices.Clone(s.Stages)
	s.Projects = slices.Clone(s.Projects)
	return s
}
