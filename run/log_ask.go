package run

import "strings"

// asked logs the open question.
func (l *Log) asked(e *Entry, _ QuestionRequested) {
	q, open := e.After.Asks()
	if open {
		l.warn("Waiting for a decision: %s (%s)", q.Words(), strings.Join(q.Actions, ", "))
		l.decide(LogDecision{Decision: "ask", Reason: q.Trigger, ID: q.ID})
	}
}

// answered logs an accepted answer.
func (l *Log) answered(e *Entry, p QuestionDecided) {
	d := e.After.Decided
	if d == nil || e.After.InvalidTransition != "" {
		return
	}
	l.info("Decided by %s: %s", p.DecidedBy, strings.TrimSpace(d.Action+" "+d.Feedback))
	l.decide(LogDecision{Decision: "decide-" + d.Action, Reason: d.Feedback, ID: d.ID, By: p.DecidedBy})
}

func (l *Log) reminded(e *Entry, p QuestionReminded) {
	q, open := e.After.Asks()
	switch {
	case !open:
	case p.Expired:
		l.warn("No operator decided in time: %s", q.Words())
		l.decide(LogDecision{Decision: "expire-question", Reason: q.OnExpiry, ID: p.ID})
	default:
		l.warn("Reminder %d: waiting for a decision: %s", p.Number, q.Words())
	}
}

func (l *Log) delivered(_ *Entry, p DeliveryCompleted) {
	if !p.Delivered {
		l.warn("Nothing was delivered: %s", p.Message)
		l.decide(LogDecision{Decision: "no-delivery", Reason: p.Message, ID: p.ID})
		return
	}
	l.info("%s delivered to %s %s", Plural(p.Files, "file"), p.To, strings.TrimSpace(p.Target+" "+p.Commit))
	l.decide(LogDecision{Decision: "deliver", Reason: strings.TrimSpace(p.Action + " " + p.To), ID: p.ID})
}
