package run

import (
	"cmp"
	"slices"
	"strings"
)

// ask opens a question. A hand-off replaces one that an earlier epoch left undecided.
func (f *folder) ask(e *Event, spec QuestionSpec) {
	q := requested(e, spec.Kind)
	f.count(q)
	if q.Beside && f.Status == Running || f.become(spec.Status, "") {
		f.open(e, q)
	}
}

// await makes a run wait for the answer to an open question.
func (f *folder) await(e *Event) {
	p := decoded[QuestionAwaited](e)
	if q, open := f.Asks(); open && q.ID == p.ID && f.become(q.Kind.Spec().Status, "") {
		f.head(e)
	}
}

// count keeps the hand-offs that were ever requested.
func (f *folder) count(q QuestionRequested) {
	if q.Kind == QuestionHandoff {
		f.recorder.request(q.ID)
	}
}

// open adds an open question. It replaces earlier ones; only a hand-off stays undecided beside a question of another
// kind.
func (f *folder) open(e *Event, p QuestionRequested) {
	if p.Kind == QuestionHandoff && p.Phase == "" {
		p.Phase = phaseName(e)
	}
	q := Question{
		Kind: p.Kind, ID: p.ID, Text: p.Question, Digest: p.Digest, Phase: p.Phase, Round: p.Round, Trigger: p.Trigger,
		Actions: filledList(p.Actions), Artifacts: p.Artifacts, Type: p.Type, Verdict: p.Verdict, Approved: p.Approved,
		LoopMaxRounds: p.LoopMaxRounds, LastOutput: p.LastOutput,
		Project: p.Project, Of: f.placeOf(p), LaneAsks: p.LaneAsks,
		RequestedAt: e.TS, Deadlines: p.Deadlines, Subject: p.Subject,
	}
	var open []Question
	if i := f.index(QuestionHandoff); i >= 0 && q.Kind != QuestionHandoff {
		open = append(open, f.Questions[i])
	}
	f.Questions, f.Feedback, f.About, f.Gate = append(open, q), "", nil, nil
	f.head(e)
}

// remind counts a reminder of an open question.
func (f *folder) remind(e *Event) {
	var p QuestionReminded
	e.Decode(&p)
	if i := slices.IndexFunc(f.Questions, func(q Question) bool { return q.ID == p.ID }); i >= 0 {
		f.Questions = list(f, f.Questions)
		f.Questions[i].Reminded = p.Number
	}
}

// decide folds an answer. One to another question than the open one is stale, and an action without a meaning decides
// nothing.
func (f *folder) decide(e *Event, spec QuestionSpec) {
	d := decision(e, spec.Kind)
	d.DecidedAt = cmp.Or(d.DecidedAt, e.TS)
	asked, _ := f.Open(spec.Kind)
	waiver := f.Markers.Waiver
	if !f.take(AnswerQuestion(f.State, d, e.TS)) {
		return
	}
	if f.Markers.Waiver != waiver {
		f.waive(waiver)
	}
	if asked.Kind != "" || spec.Kind == QuestionHandoff {
		f.remember(d, asked)
	}
	if f.LoopProgress != nil { // an operator has said more: the next rounds count anew
		p := *f.LoopProgress
		p.Still, p.Ended, p.Why = 0, 0, ""
		f.LoopProgress = &p
	}
	f.sendBack(d.Redo, d.Next)
	f.move(d.Next)
}

// remember keeps a decision that counts.
func (f *folder) remember(d QuestionDecided, asked Question) {
	f.Decided = &Decided{Kind: d.Kind, ID: d.ID, Action: word(d.Action), Feedback: d.Feedback, Note: d.Note}
	if answer, _ := d.Kind.Spec().Answer(word(d.Action)); answer.Effect.Has(RepeatsSubject) {
		f.Decided.Back = d.Next
	}
	if asked.Kind != "" {
		f.Decided.ID, f.Decided.Type, f.Decided.Phase, f.Decided.Round = asked.ID, asked.Type, asked.Phase, asked.Round
		f.Decided.LaneAsks = asked.LaneAsks
	}
	f.past(d, asked)
	f.answerPull(d, asked)
	if asked.Kind == QuestionHandoff {
		f.Decided.Digest = asked.Digest
		if asked.Phase == PhaseAcceptance && f.Decided.Action == ActionContinue {
			f.Accepted = asked.Digest
		}
	}
}

// waive keeps a waiver that a newer one replaced.
func (f *folder) waive(w *Waiver) {
	const most, words = 8, 1000
	if w == nil {
		return
	}
	older := *w
	if r := []rune(older.Feedback); len(r) > words {
		older.Feedback = string(r[:words]) + " …"
	}
	older.Note = ""
	f.Waivers = newest(append(list(f, f.Waivers), older), most)
}

// deliver folds what became of the delivery.
func (f *folder) deliver(e *Event) {
	var p DeliveryCompleted
	e.Decode(&p)
	f.Delivery = &Delivered{Delivered: p.Delivered, To: p.To, Target: p.Target, Commit: p.Commit, Files: p.Files,
		Message: p.Message, Pull: p.Pull}
	f.pushed(&p, e.TS)
}

// filledList keeps null out of JSON lists.
func filledList[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func word(s string) string { return strings.ToLower(strings.TrimSpace(s)) }
