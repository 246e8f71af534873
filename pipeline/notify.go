package pipeline

import "net/url"

// Occasions on which a message about a run is sent.
const (
	OnQuestion = "question" // it asks a question, or reminds of one
	OnPause    = "pause"
	OnBudget   = "budget" // most of the budget is spent
	OnLimit    = "limit"  // it waits for a usage limit, or for long
	OnFailure  = "failure"
	OnEnd      = "end" // in any other state: done, halted, cancelled
)

// Who names a receiver without the parts of its address that may be secret.
func (n Notify) Who() string {
	switch {
	case len(n.Run) > 0:
		return n.Run[0]
	case n.WebhookEnv != "":
		return "$" + n.WebhookEnv
	}
	if u, err := url.Parse(n.Webhook); err == nil {
		return u.Host
	}
	return "webhook"
}
