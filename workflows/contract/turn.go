package contract

import (
	"encoding/json"

	"github.com/passbook-run/passbook/run"
)

// TurnInput is a call with the events that must be on disk before it begins. In JSON, the call lacks what the events
// state: run, store, and those parts of the last event, its start, that are the same.
type TurnInput struct {
	Project ProjectInput `json:"project"`
	Call    PassInput    `json:"call"`
}

// Run returns the run id.
func (in TurnInput) Run() string { return in.Project.RunID }

// Dirs returns the run directory.
func (in TurnInput) Dirs() []string { return in.Project.Dirs() }

// What a turn does not state: the usual heartbeat timeout in milliseconds, and the first epoch.
const (
	usualHeartbeat = 10_000
	firstEpoch     = 1
)

type turnInput TurnInput // with the usual encoding

// MarshalJSON leaves out what the events state.
func (in TurnInput) MarshalJSON() ([]byte, error) {
	start := in.start()
	leave(&in.Call.RunID, in.Project.RunID)
	leave(&in.Call.Store, in.Project.Store)
	leave(&in.Call.Call, start.Call)
	leave(&in.Call.Attempt, start.Attempt)
	leave(&in.Call.Prompt, start.Prompt)
	leave(&in.Call.Heading, start.NoteHeading())
	leave(&in.Call.HeartbeatMS, usualHeartbeat)
	leave(&in.Project.Epoch, firstEpoch)
	leave(&in.Project.First, in.first())
	if a := in.Call.Artifact; a != nil {
		short := *a
		leave(&short.Digest, start.Before)
		in.Call.Artifact = &short
	}
	return json.Marshal(turnInput(in))
}

// UnmarshalJSON decodes the input of any release.
func (in *TurnInput) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*turnInput)(in)); err != nil {
		return err
	}
	start := in.start()
	fill(&in.Call.RunID, in.Project.RunID)
	fill(&in.Call.Store, in.Project.Store)
	fill(&in.Call.Call, start.Call)
	fill(&in.Call.Attempt, start.Attempt)
	fill(&in.Call.Prompt, start.Prompt)
	fill(&in.Call.Heading, start.NoteHeading())
	fill(&in.Call.HeartbeatMS, usualHeartbeat)
	fill(&in.Project.Epoch, firstEpoch)
	fill(&in.Project.First, in.first())
	if in.Call.Artifact != nil {
		fill(&in.Call.Artifact.Digest, start.Before)
	}
	return nil
}

// first returns the number of the first event; 0: there is none, or its line is damaged.
func (in *TurnInput) first() int64 {
	if len(in.Project.Lines) == 0 {
		return 0
	}
	e, err := run.ParseLine(in.Project.Lines[0])
	if err != nil {
		return 0
	}
	return e.Seq
}

// start returns the start of the call, which is the last of the events.
func (in *TurnInput) start() (s run.PassStart) {
	if n := len(in.Project.Lines); n > 0 {
		if e, err := run.ParseLine(in.Project.Lines[n-1]); err == nil && e.Kind == run.KindPassStart {
			e.Decode(&s)
		}
	}
	return s
}

func leave[T comparable](value *T, stated T) {
	if *value == stated {
		*value = *new(T)
	}
}

func fill[T comparable](value *T, stated T) {
	if *value == *new(T) {
		*value = stated
	}
}

// TurnResult is the result of both parts. Without a call, the events were not written. With one, the result of the
// projection lacks its tail, which is that of the batch. In JSON, it also lacks the outcome "written", and an artifact
// that is the reply has no digest.
type TurnResult struct {
	Project ProjectResult `json:"project,omitzero"`
	Pass    *PassResult   `json:"pass,omitempty"`
}

type turnResult TurnResult // with the usual encoding

// MarshalJSON leaves out what follows from the rest.
func (r TurnResult) MarshalJSON() ([]byte, error) {
	if r.Pass == nil {
		return json.Marshal(turnResult(r))
	}
	leave(&r.Project.Outcome, run.ProjectionWritten)
	if p := *r.Pass; p.Artifact != nil && p.Reply != nil {
		short := *p.Artifact
		leave(&short, *p.Reply)
		p.Artifact, r.Pass = &short, &p
	}
	return json.Marshal(turnResult(r))
}

// UnmarshalJSON decodes the result of any release.
func (r *TurnResult) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, (*turnResult)(r)); err != nil || r.Pass == nil {
		return err
	}
	fill(&r.Project.Outcome, run.ProjectionWritten)
	if p := r.Pass; p.Artifact != nil && p.Reply != nil {
		fill(p.Artifact, *p.Reply)
	}
	return nil
}
