package run

import (
	"encoding/json"
	"time"
)

// QuestionRequested asks an operator. It is the payload of all events that ask (see [QuestionSpec.Requested]); the kind
// is that of the event. The ID contains the seq of this event and the digest that is judged.
type QuestionRequested struct {
	Kind          QuestionKind `json:"-"`
	ID            string       `json:"handoff_id"` // id, where the question is not a hand-off
	Phase         string       `json:"phase"`
	Question      string       `json:"question,omitempty"` // text for people
	Type          string       `json:"handoff_type"`       // of a hand-off: one of the Handoff… types
	Trigger       string       `json:"trigger"`
	Round         int          `json:"round"`
	Actions       []string     `json:"available_actions"`
	Verdict       string       `json:"verdict,omitempty"`
	Approved      *bool        `json:"approved,omitempty"`
	LoopMaxRounds int          `json:"loop_max_rounds,omitempty"`
	Artifacts     []Attached   `json:"artifacts,omitempty"`
	LastOutput    string       `json:"last_output,omitempty"` // digest: texts stay out of events and of meta.json
	Digest        string       `json:"digest,omitempty"`      // what is judged
	Project       *AskedBy     `json:"project,omitempty"`     // whose question a hand-off forwards
	Of            string       `json:"of,omitempty"`          // why a lane waits (Lane…)
	LaneAsks      string       `json:"lane_asks,omitempty"`   // id of the question of that lane
	Deadlines
	Subject
	Beside bool `json:"beside,omitempty"` // the run works beside it, until [QuestionAwaited]
}

// handoffRequested has the members of a hand-off's event, in their order on disk.
type handoffRequested QuestionRequested

// otherRequested has the members of every other question's event, in their order on disk.
type otherRequested struct {
	ID        string     `json:"id"`
	Question  string     `json:"question,omitempty"`
	Digest    string     `json:"digest"`
	Phase     string     `json:"phase,omitempty"`
	Round     int        `json:"round,omitempty"`
	Trigger   string     `json:"trigger"`
	Actions   []string   `json:"available_actions"`
	Artifacts []Attached `json:"artifacts,omitempty"`
	Deadlines
	Subject
	Beside   bool   `json:"beside,omitempty"`
	Of       string `json:"of,omitempty"`
	LaneAsks string `json:"lane_asks,omitempty"`
}

// MarshalJSON writes the payload as the kind's events have it.
func (q QuestionRequested) MarshalJSON() ([]byte, error) {
	if q.Kind == QuestionHandoff {
		return encode(handoffRequested(q))
	}
	return encode(otherRequested{
		q.ID, q.Question, q.Digest, q.Phase, q.Round, q.Trigger, q.Actions, q.Artifacts, q.Deadlines,
		q.Subject, q.Beside, q.Of, q.LaneAsks,
	})
}

// requestedMembers are the members of all kinds.
type requestedMembers struct {
	handoffRequested
	Other string `json:"id"`
}

func (m requestedMembers) as(kind QuestionKind) QuestionRequested {
	q := QuestionRequested(m.handoffRequested)
	if q.Kind = kind; kind != QuestionHandoff {
		q.ID = m.Other
	}
	return q
}

// UnmarshalJSON reads the payload of any kind. The kind is that of the event (see [Event.Question]): here, what has no
// handoff_id has no kind.
func (q *QuestionRequested) UnmarshalJSON(raw []byte) error {
	var m requestedMembers
	err := json.Unmarshal(raw, &m)
	*q = m.as(kindByID(m.ID))
	return err
}

func kindByID(handoff string) QuestionKind {
	if handoff != "" {
		return QuestionHandoff
	}
	return ""
}

// Question reads an event that asks; false: it is another event.
func (e Event) Question() (QuestionRequested, bool) {
	spec, ok := e.Kind.Asks()
	if !ok {
		return QuestionRequested{}, false
	}
	return decoded[requestedMembers](&e).as(spec.Kind), true
}

// requested reads what the fold needs.
func requested(e *Event, kind QuestionKind) QuestionRequested {
	return decoded[requestedMembers](e).as(kind)
}

// QuestionAwaited records that nothing is left to do beside an open question: the run waits for its answer.
type QuestionAwaited struct {
	ID string `json:"id"`
}

// QuestionDecided is an operator's answer: the payload of all events that answer (see [QuestionSpec.Decided]).
type QuestionDecided struct {
	Kind       QuestionKind `json:"-"`
	ID         string       `json:"handoff_id"` // id, where the question is not a hand-off
	Action     string       `json:"action"`
	Feedback   string       `json:"feedback"`
	Note       string       `json:"note"`
	DecidedBy  string       `json:"decided_by"`
	DecisionID string       `json:"decision_id"`
	DecidedAt  string       `json:"decided_at"`
	Implicit   bool         `json:"implicit,omitempty"` // the operator named no question: it was the only one open
	Next       *Place       `json:"next,omitempty"`     // where the run continues; nil: where it is
	Redo       string       `json:"redo,omitempty"`     // what is done again from there: step or round; empty: nothing
}

// handoffDecided has the members of the event that decides a hand-off, otherDecided those of the rest: they differ in
// the name of the id.
type handoffDecided QuestionDecided

type otherDecided struct {
	Kind       QuestionKind `json:"-"`
	ID         string       `json:"id"`
	Action     string       `json:"action"`
	Feedback   string       `json:"feedback"`
	Note       string       `json:"note"`
	DecidedBy  string       `json:"decided_by"`
	DecisionID string       `json:"decision_id"`
	DecidedAt  string       `json:"decided_at"`
	Implicit   bool         `json:"implicit,omitempty"`
	Next       *Place       `json:"next,omitempty"`
	Redo       string       `json:"redo,omitempty"`
}

// MarshalJSON writes the payload as the kind's events have it.
func (d QuestionDecided) MarshalJSON() ([]byte, error) {
	if d.Kind == QuestionHandoff {
		return encode(handoffDecided(d))
	}
	return encode(otherDecided(d))
}

// decidedMembers are the members of all kinds.
type decidedMembers struct {
	handoffDecided
	Other string `json:"id"`
}

func (m decidedMembers) as(kind QuestionKind) QuestionDecided {
	d := QuestionDecided(m.handoffDecided)
	if d.Kind = kind; kind != QuestionHandoff {
		d.ID = m.Other
	}
	return d
}

// UnmarshalJSON reads the payload of any kind. The kind is that of the event (see [Event.Decision]): here, what has no
// handoff_id has no kind.
func (d *QuestionDecided) UnmarshalJSON(raw []byte) error {
	var m decidedMembers
	err := json.Unmarshal(raw, &m)
	*d = m.as(kindByID(m.ID))
	return err
}

// Decision reads an event that answers a question; false: it is another event.
func (e Event) Decision() (QuestionDecided, bool) {
	spec, ok := e.Kind.Answers()
	if !ok {
		return QuestionDecided{}, false
	}
	return decoded[decidedMembers](&e).as(spec.Kind), true
}

// decision reads what the fold needs.
func decision(e *Event, kind QuestionKind) QuestionDecided {
	return decoded[decidedMembers](e).as(kind)
}

// QuestionReminded records that a question is not answered yet.
type QuestionReminded struct {
	ID      string `json:"id"`
	Number  int    `json:"number"`            // 1-based
	Expired bool   `json:"expired,omitempty"` // the time to answer has passed
}

// Waits say how long the questions of a run wait. Zero: for ever, without reminders.
type Waits struct {
	RemindMS  int64  `json:"remind_ms,omitempty"`
	ExpiresMS int64  `json:"expires_ms,omitempty"`
	OnExpiry  string `json:"on_expiry,omitempty"` // halt, continue or remind

	Unattended bool `json:"unattended,omitempty"` // the questions of the definition are not asked
}

// From returns the deadlines of a question that is asked at a moment.
func (w Waits) From(asked time.Time) Deadlines {
	p := Deadlines{RemindMS: w.RemindMS}
	if w.ExpiresMS > 0 {
		p.ExpiresAt, p.OnExpiry = Time(asked.Add(time.Duration(w.ExpiresMS)*time.Millisecond)), w.OnExpiry
	}
	return p
}

// Deadlines say how long a question waits. Times are absolute, in TimeFormat.
type Deadlines struct {
	RemindMS  int64  `json:"remind_ms,omitempty"`  // between reminders
	ExpiresAt string `json:"expires_at,omitempty"` // then the question expires
	OnExpiry  string `json:"on_expiry,omitempty"`  // halt, continue or remind

	Unattended bool `json:"unattended,omitempty"` // it is not asked: the answer follows at once
}

// Unattended is who decides what an unattended run does not ask.
const Unattended = "unattended"

// What a decision makes a run do again.
const (
	RedoStep  = "step"  // the step that it continues with, and all that follows
	RedoRound = "round" // it continues with a new round of a loop; what follows the loop is done again
)
