// Package run holds what a run is: its events, the state they fold into, its statuses and costs.
//
// It is pure: no IO, no clock, no Temporal. The workflow, the projection and the offline tools fold with the same code, so there is
// no second opinion about what happened (requirements 000 and 003). The fold is total: any JSON object can be applied, and none stops it.
package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Kind names what an event says. Kinds outlive releases: one is never renamed or given another meaning.
type Kind string

// Kinds of events. Unknown kinds change nothing but the sequence number.
const (
	KindRunStart          Kind = "run.start"
	KindRunStarted        Kind = "run.started" // read, never written
	KindRunEnd            Kind = "run.end"
	KindRunHalted         Kind = "run.halted" // read, never written
	KindRunInterrupted    Kind = "run.interrupted"
	KindRunReplaying      Kind = "run.replaying"
	KindRunPaused         Kind = "run.paused"
	KindRunResumed        Kind = "run.resumed"
	KindRunReverted       Kind = "run.reverted"
	KindRunRehomed        Kind = "run.rehomed"
	KindPhaseStart        Kind = "phase.start"
	KindPhaseEnd          Kind = "phase.end"
	KindHandoffRequested  Kind = "phase.handoff_requested"
	KindHandoffDecided    Kind = "phase_handoff.decided"
	KindGateRequested     Kind = "gate.requested"
	KindGateDecided       Kind = "gate.decided"
	KindReviewRequested   Kind = "review.requested"
	KindReviewDecided     Kind = "review.decided"
	KindDeliveryRequested Kind = "delivery.requested"
	KindDeliveryDecided   Kind = "delivery.decided"
	KindDeliveryCompleted Kind = "delivery.completed"
	KindQuestionReminded  Kind = "question.reminded"
	KindPassStart         Kind = "pass.start"
	KindPassAttempt       Kind = "pass.attempt"
	KindPassEnd           Kind = "pass.end"
	KindStepSkipped       Kind = "step.skipped"
	KindArtifactUpdated   Kind = "artifact.updated"
	KindWorkspaceUpdated  Kind = "workspace.updated"
	KindNoteAppended      Kind = "note.appended"
	KindSnapshotCreated   Kind = "snapshot.created"
	KindCheckpointCreated Kind = "checkpoint.created"
	KindScreenshots       Kind = "screenshots.captured"
	KindShotsAttempt      Kind = "screenshots.attempt"
	KindScoreRecorded     Kind = "score.recorded"
	KindBudgetWarning     Kind = "budget.warning"
	KindBudgetExceeded    Kind = "budget.exceeded"
	KindBudgetRaised      Kind = "budget.raised"
	KindEffectReused      Kind = "effect.reused"
	KindEffectBlocked     Kind = "effect.blocked"
	KindDecisionRefused   Kind = "decision.refused"
	KindErrorNoted        Kind = "error.noted"
	KindJournalDamaged    Kind = "journal.damaged"
)

// TimeFormat is how every time is written: UTC with milliseconds.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// Time writes t in TimeFormat.
func Time(t time.Time) string { return t.UTC().Format(TimeFormat) }

// Event is one line of events.jsonl.
type Event struct {
	Seq     int64           `json:"seq"`
	TS      string          `json:"ts"`
	Kind    Kind            `json:"kind"`
	Phase   *string         `json:"phase"` // the stage's name, or null
	Payload json.RawMessage `json:"payload"`

	spans []span // where the payload's members are, in a fold of a whole stream; nil elsewhere
}

// Line encodes e as one line without its line feed. HTML characters are kept as they are; U+2028 and U+2029 are escaped, so only a line feed
// ends a line.
func (e Event) Line() (string, error) {
	raw, err := encode(e)
	if err != nil {
		return "", fmt.Errorf("encode event %d (%s): %w", e.Seq, e.Kind, err)
	}
	return string(raw), nil
}

// Payload encodes a payload of payload.go.
func Payload(v any) (json.RawMessage, error) {
	raw, err := encode(v)
	if err != nil {
		return nil, fmt.Errorf("encode payload %T: %w", v, err)
	}
	return raw, nil
}

// Decode reads the payload into v, which points to one of payload.go's structs. It is tolerant: what does not fit stays empty.
func (e Event) Decode(v any) { loose(e.Payload, v) }

// loose decodes what fits and leaves the rest: readers must survive lines that another program wrote.
func loose(raw json.RawMessage, v any) {
	if len(raw) == 0 {
		return
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return // encoding/json has filled in every field that fits
	}
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
