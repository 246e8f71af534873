package run

import (
	"cmp"
	"slices"
	"strings"
)

// Attached is a file that is shown with a question.
type Attached struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Question is an open question, or one that was undecided when a run failed or was interrupted. An answer counts only
// with its ID, which contains the seq of the request and the digest. Times are in TimeFormat.
type Question struct {
	Kind          QuestionKind `json:"kind"`
	ID            string       `json:"id"`
	Text          string       `json:"question,omitempty"` // for display
	Digest        string       `json:"digest"`             // digest of what is judged
	Phase         string       `json:"phase,omitempty"`
	Round         int          `json:"round,omitempty"`
	Trigger       string       `json:"trigger"`
	Actions       []string     `json:"available_actions"`
	Artifacts     []Attached   `json:"artifacts,omitempty"`
	Type          string       `json:"type,omitempty"` // for a hand-off, like the next four
	Verdict       string       `json:"verdict,omitempty"`
	Approved      *bool        `json:"approved,omitempty"` // nil: not judged
	LoopMaxRounds int          `json:"loop_max_rounds,omitempty"`
	LastOutput    string       `json:"last_output,omitempty"` // digest
	Project       *AskedBy     `json:"project,omitempty"`     // whose question a hand-off forwards
	Of            string       `json:"of,omitempty"`          // why its lane waits (Lane…), or ofAcross
	LaneAsks      string       `json:"lane_asks,omitempty"`   // id of the question of that lane
	RequestedAt   string       `json:"requested_at"`
	Deadlines
	Subject
	Reminded int `json:"reminded,omitempty"` // number of reminders
}

// Decided is the last decided question. A repeated equal answer is ignored, a different one is a conflict.
type Decided struct {
	Kind     QuestionKind `json:"kind"`
	ID       string       `json:"id"`
	Type     string       `json:"type,omitempty"` // of a hand-off
	Phase    string       `json:"phase"`
	Round    int          `json:"round"`
	Action   string       `json:"action"`
	Feedback string       `json:"feedback,omitempty"`
	Note     string       `json:"note,omitempty"`
	Digest   string       `json:"digest,omitempty"`    // of what was judged in a hand-off
	Back     *Place       `json:"back,omitempty"`      // where it sent the run back to
	LaneAsks string       `json:"lane_asks,omitempty"` // id of the question of the lane that it is about
}

// Words is the text of the question.
func (q Question) Words() string {
	return cmp.Or(q.Text, q.Phase, q.Kind.Spec().Text)
}

// Line is the text of the question on one line. A question about projects has a line for each.
func (q Question) Line() string {
	text := q.Words()
	if q.Trigger == TriggerBlocked || q.Trigger == TriggerUnprepared {
		text = strings.NewReplacer(":\n- ", ": ", "\n- ", "; ", "\n", "; ").Replace(text)
	}
	return OneLine(text)
}

// inReplay is what the answers to a question of a replay do, where it is not what they do in other runs.
var inReplay = map[QuestionKind]map[string]string{
	QuestionGate: {
		ActionApprove: "make the call again; its answer replaces the recorded one in this replay",
		ActionApply:   "use the recorded answer; no call is made and nothing is paid",
		ActionHalt:    "end the replay as halted; the replayed run stays as it is",
	},
	QuestionDelivery: {
		ActionApprove: "deliver the changes of this replay with a commit, beside the delivery of the replayed run",
		ActionApply:   "put the changes of this replay into the checkout without a commit",
		ActionSkip:    "deliver nothing; the changes stay on the branch of this replay and in its directory",
		ActionHalt:    "end the replay as halted; the replayed run stays as it is",
	},
}

// ofActions is what the approval of a declared external action does in a replay.
var ofActions = map[string]string{
	TriggerAction: "execute it again, with its effect outside the run; its result replaces the recorded one in this " +
		"replay",
	TriggerUnrecorded: "execute it in this replay, with its effect outside the run",
}

// ofProjects is what the answers about the projects of a run do, where it is not what they do in other runs.
var ofProjects = map[string]map[string]string{
	TriggerBlocked:    {ActionRetry: "read the projects again"},
	TriggerAcceptance: {ActionContinue: "deliver the changes of all projects"},
	TriggerUnprepared: {ActionRetry: "check all projects again", ActionHalt: "end the run as failed"},
}

// ofAcross marks a check of a run across projects.
const ofAcross = "projects"

// ofPlaces is what the answers to a question about a lane, or to a check of a run across projects, do.
var ofPlaces = map[string]map[string]string{
	ofAcross:     {ActionHalt: "end the run as cancelled"},
	LaneFailed:   {ActionRetry: "let the lane continue at the step, or do its work again if it has ended", ActionContinueWithWaiver: leftOut},
	LaneConflict: {ActionRetry: "do the work of the lane again, on the merged tree", ActionContinueWithWaiver: leftOut},
	LaneCheck: {
		ActionContinueWithWaiver: "accept the lane as it is; your feedback is recorded and shown to later reviews",
	},
}

const leftOut = "leave the lane out; your feedback is recorded and shown to later reviews"

// placeOf is the key in ofPlaces of a question that is asked now.
func (s *State) placeOf(q QuestionRequested) string {
	if q.Kind != QuestionGate || q.Trigger != TriggerCheckFailed {
		return ""
	}
	if len(s.Projects) > 0 {
		return ofAcross
	}
	return q.Of
}

// Meaning describes what an action does.
func (q Question) Meaning(action string) string {
	if text := cmp.Or(ofProjects[q.Trigger][action], ofPlaces[q.Of][action]); text != "" {
		return text
	}
	inAction := ofActions[q.Trigger]
	if action == ActionApprove && inAction != "" {
		return inAction
	}
	if text := inReplay[q.Kind][action]; text != "" && (q.Trigger == TriggerEffect || inAction != "") {
		return text
	}
	answer, _ := q.Kind.Spec().Answer(action)
	return answer.Meaning
}

// Choice is an action that answers a question.
type Choice struct {
	Action        string `json:"action"`
	Meaning       string `json:"meaning"`
	NeedsFeedback bool   `json:"needs_feedback"`
}

// actionWords are the answers in plain words, as faces for people show them.
var actionWords = map[string]string{
	ActionContinue: "Continue", ActionRetryFeedback: "Change it: say how", ActionContinueWithWaiver: "Continue anyway: say why",
	ActionHalt: "Stop the run",
}

// ActionWords returns an action in plain words; an action without any is its own.
func ActionWords(action string) string {
	if words := actionWords[action]; words != "" {
		return words
	}
	return strings.ReplaceAll(action, "_", " ")
}

// Choices lists the actions that the question offers, in display order.
func (q Question) Choices() []Choice {
	all := []Choice{}
	for _, action := range q.Actions {
		all = append(all, Choice{action, q.Meaning(action), NeedsFeedback(action)})
	}
	return all
}

// Halts is the action that ends the run as halted.
func (q Question) Halts() string {
	for _, action := range q.Actions {
		if answer, _ := q.Kind.Spec().Answer(action); answer.Effect.Has(EndsHalted) {
			return action
		}
	}
	return ActionHalt
}

// Asks returns the question for which the run waits: the newest open or undecided one, if any.
func (s State) Asks() (Question, bool) {
	n := len(s.Questions)
	if n == 0 {
		return Question{}, false
	}
	return s.Questions[n-1], true
}

// Open returns the open or undecided question of a kind, if any.
func (s State) Open(kind QuestionKind) (Question, bool) {
	i := s.index(kind)
	if i < 0 {
		return Question{}, false
	}
	return s.Questions[i], true
}

// Handoff returns the undecided hand-off. The review of a run that only plans is one, too (requirement 000).
func (s State) Handoff() (Question, bool) {
	if q, open := s.Open(QuestionHandoff); open {
		return q, true
	}
	return s.Open(QuestionReview)
}

func (s *State) index(kind QuestionKind) int {
	return slices.IndexFunc(s.Questions, func(q Question) bool { return q.Kind == kind })
}

// acrossProjects reports whether a run coordinates runs of several projects.
func (s *State) acrossProjects() bool { return len(s.RunKind) >= 5 && s.RunKind[:5] == "cross" }
