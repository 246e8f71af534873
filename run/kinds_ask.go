package run

import (
	"cmp"
	"slices"
)

// Kinds of other events about questions and the delivery. Those that ask and answer are beside the table of question
// kinds.
const (
	KindDeliveryCompleted Kind = "delivery.completed"
	KindQuestionReminded  Kind = "question.reminded"
	KindQuestionAwaited   Kind = "question.awaited"
)

const answered = "running, the question cleared; `halt`: halted; `approve` of a review: done"

func unaskedHeadline(_ *Entry, q QuestionRequested) string {
	if !q.Unattended {
		return ""
	}
	return "Not asked: " + q.Question
}

// askKinds are the rows of questions, answers and deliveries. Questions and answers are those of the table of question
// kinds.
func askKinds() []kindRow {
	var asked, decided []kindRow
	for _, q := range questionKinds {
		row := kindRow{
			kind: q.Requested, effect: cmp.Or(q.effect, string(q.Status)), traits: traits{started: true},
			occasion: always("question"), fold: func(f *folder, e *Event) { f.ask(e, q) },
			texts: about((*Log).asked, unaskedHeadline, noStory),
		}
		if q.Kind == QuestionHandoff {
			row.record = (*Recorder).handoffRequested
		}
		asked = append(asked, row)
		decided = append(decided, kindRow{
			kind: q.Decided, effect: answered, traits: traits{started: true},
			fold:  func(f *folder, e *Event) { f.decide(e, q) },
			texts: about((*Log).answered, noHeadline, answerStory),
		})
	}
	return slices.Concat(asked, decided, []kindRow{
		{
			kind: KindQuestionReminded, fold: (*folder).remind, occasion: always("question"),
			texts: about((*Log).reminded, noHeadline, noStory),
		},
		{
			kind: KindQuestionAwaited, fold: (*folder).await, traits: traits{started: true},
			effect: "that of the question: nothing else is left to do",
			texts:  about[QuestionAwaited](noLog, noHeadline, noStory),
		},
		{kind: KindDeliveryCompleted, fold: (*folder).deliver, texts: about((*Log).delivered, noHeadline, noStory)},
	})
}
