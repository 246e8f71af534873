package simulation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/testsuite"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// message sends a message at a random moment: what it asks for may be impossible then.
func (w *world) message(r *rand.Rand) {
	verbs := []string{contract.VerbPause, contract.VerbResume, contract.VerbDecide, contract.VerbBudget,
		contract.VerbSteer, contract.VerbRevert, contract.VerbAmend, contract.VerbLook,
		"cancel", "nonsense"}
	m := contract.Message{By: "ada", Now: r.IntN(3) == 0}
	verb := verbs[r.IntN(len(verbs))]
	switch verb {
	case "cancel":
		w.note("cancel")
		w.execution().CancelWorkflow()
		return
	case "nonsense":
		w.note("nonsense")
		w.execution().SignalWorkflow(contract.VerbPause, []int{1})
		return
	case contract.VerbResume:
		m.Force, m.Reason = r.IntN(2) == 0, []string{"", "try"}[r.IntN(2)]
	case contract.VerbDecide:
		m.Action, m.Feedback = []string{"continue", "retry_feedback", "continue_with_waiver", "halt"}[r.IntN(4)], "more"
	case contract.VerbBudget:
		m.USD = float64(r.IntN(10))
	case contract.VerbSteer:
		m.Text, m.Role = "Use fewer words.", []string{"", "builder", "nobody"}[r.IntN(3)]
	case contract.VerbRevert:
		m.To, m.StayPaused = w.boundary(r), r.IntN(3) == 0
	case contract.VerbAmend:
		m.Plan = &w.amended
	}
	if r.IntN(2) == 0 {
		w.send(w.execution(), verb, m)
		return
	}
	w.note(fmt.Sprintf("update %s %s", verb, text(m)))
	w.execution().update(verb, fmt.Sprint("update-", w.picks), m)
}

// execution is what an operator sends messages to.
type execution interface {
	SignalWorkflow(name string, message any)
	CancelWorkflow()
	update(verb, id string, m contract.Message)
}

// environment is the execution in the SDK's test environment.
type environment struct {
	*testsuite.TestWorkflowEnvironment
}

func (e environment) update(verb, id string, m contract.Message) {
	e.UpdateWorkflow(verb, id, &testsuite.TestUpdateCallback{
		OnAccept: func() {}, OnReject: func(error) {}, OnComplete: func(any, error) {}}, m)
}

// execution is the open one.
func (w *world) execution() execution {
	if w.real != nil {
		return w.real
	}
	return environment{w.env}
}

// terminate ends the workflow at once. An operator opens the next epoch, or an earlier execution begins again.
func (w *world) terminate(r *rand.Rand, resetTo int) {
	w.note(fmt.Sprintf("terminate; reset to execution %d", resetTo))
	w.resetTo = resetTo
	w.env.SignalWorkflow(termination, nil)
	stays := r.IntN(2) == 0
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.flights {
		if !stays && !f.local { // its heartbeat gets the answer that there is no such activity
			f.lose(errTerminated)
		}
	}
}

const termination = "terminate"

var errTerminated = errors.New("the workflow was terminated")

// boundary is one of the checkpoints of the run; empty: there is none.
func (w *world) boundary(r *rand.Rand) string {
	now, err := w.dir.Now()
	if err != nil || now.State.Checkpoint == nil {
		return ""
	}
	if r.IntN(2) == 0 {
		return fmt.Sprintf("pass-%d", 1+r.IntN(4))
	}
	return now.State.Checkpoint.ID
}

func (w *world) send(to execution, verb string, m contract.Message) {
	w.note(fmt.Sprintf("message %s %s", verb, text(m)))
	to.SignalWorkflow(verb, m)
}

// text is a message as operators type it.
func text(m contract.Message) string {
	raw, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

const maxQuiets = 300

// attend has the operator check the run every hour of the workflow's clock, which passes at once while the run waits.
// Without any timer, the environment would end the workflow.
func (w *world) attend(env *testsuite.TestWorkflowEnvironment) {
	var look func()
	look = func() {
		w.look(environment{env})
		env.RegisterDelayedCallback(look, time.Hour)
	}
	env.RegisterDelayedCallback(look, time.Hour)
}

// look answers what the run waits for.
func (w *world) look(to execution) {
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
		if w.quiets > 20 && action == run.ActionRetryFeedback && len(q.Actions) > 1 {
			action = q.Actions[1] // of a verdict that stays as it is
		}
		w.send(to, contract.VerbDecide, contract.Message{Action: action, ID: q.ID, Feedback: "more", By: "ada"})
		return
	}
	if now.State.Status != run.Paused {
		return
	}
	if w.reverts {
		w.reverts = false
		w.send(to, contract.VerbRevert, contract.Message{By: "ada", To: "pass-1"})
		return
	}
	if now.State.Reason == run.BudgetThreshold {
		m := contract.Message{By: "ada", USD: now.State.Total() + 1 + now.State.Budget.CapUSD}
		const more = 100
		m.Calls, m.Hours, m.Tokens = more*w.quiets, float64(more*w.quiets), int64(1000*more*w.quiets)
		w.send(to, contract.VerbBudget, m)
	}
	w.send(to, contract.VerbResume, contract.Message{By: "ada", Force: w.quiets > 3, Reason: "try again"})
}
