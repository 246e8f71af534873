package workflows

import "github.com/passbook-run/passbook/run"

// Note journals a payload as a message does, in a run that has just begun.
func Note(payload any) error {
	e := &engine{execution: &execution{}}
	e.j = &journal{e: e}
	return (&control{e: e}).record(nil, run.KindBudgetRaised, payload)
}

// Verbs are the messages that a run takes.
func Verbs() (all []string) {
	for _, d := range descriptions("") {
		all = append(all, d.verb)
	}
	return all
}
