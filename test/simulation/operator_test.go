package simulation_test

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// message sends a message at a random moment: what it asks for may be impossible then.
func (w *world) message() {
	m := workflows.Message{By: "ada"}
	verb := []string{workflows.VerbPause, workflows.VerbResume, workflows.VerbDecide, workflows.VerbBudget,
		workflows.VerbSteer, workflows.VerbRevert, "cancel"}[w.choose(7)]
	switch verb {
	case "cancel":
		w.note("cancel")
		w.env.CancelWorkflow()
		return
	case workflows.VerbDecide:
		m.Action, m.Feedback = []string{"continue", "retry_feedback", "continue_with_waiver"}[w.choose(3)], "more"
	case workflows.VerbBudget:
		m.USD = float64(w.choose(10))
	case workflows.VerbSteer:
		m.Text, m.Role = "Use fewer words.", []string{"", "builder", "nobody"}[w.choose(3)]
	case workflows.VerbRevert:
		m.To = w.boundary()
	}
	w.send(w.env, verb, m)
}

// boundary is one of the checkpoints of the run; empty: there is none.
func (w *world) boundary() string {
	now, err := w.dir.Now()
	if err != nil || now.State.Checkpoint == nil {
		return ""
	}
	if w.chance(2) {
		return fmt.Sprintf("pass-%d", 1+w.choose(4))
	}
	return now.State.Checkpoint.ID
}

func (w *world) send(env *testsuite.TestWorkflowEnvironment, verb string, m workflows.Message) {
	w.note(fmt.Sprintf("message %s %+v", verb, m))
	env.SignalWorkflow(verb, m)
}

const maxQuiets = 300

// attend has the operator look at the run every hour of the workflow's clock, which passes at once while the run waits.
// Without any timer, the environment would end the workflow.
func (w *world) attend(env *testsuite.TestWorkflowEnvironment) {
	var look func()
	look = func() {
		w.look(env)
		env.RegisterDelayedCallback(look, time.Hour)
	}
	env.RegisterDelayedCallback(look, time.Hour)
}

// look answers what the run waits for.
func (w *world) look(env *testsuite.TestWorkflowEnvironment) {
	if w.quiets++; w.quiets > maxQuiets {
		w.stop(fmt.Errorf("the run waits for ever"))
	}
	now, err := w.dir.Now()
	if err != nil {
		w.check(err)
		return
	}
	if q, ok := now.State.Asks(); ok {
		action := q.Actions[w.answers.IntN(len(q.Actions))]
		if w.quiets > 5 {
			action = q.Actions[0]
		}
		w.send(env, workflows.VerbDecide, workflows.Message{Action: action, ID: q.ID, Feedback: "more", By: "ada"})
		return
	}
	if now.State.Status != run.Paused {
		return
	}
	if now.State.Reason == run.BudgetThreshold {
		w.send(env, workflows.VerbBudget, workflows.Message{USD: now.State.Total() + 1 + now.State.Budget.CapUSD, By: "ada"})
	}
	w.send(env, workflows.VerbResume, workflows.Message{By: "ada", Force: w.quiets > 3, Reason: "try again"})
}
