package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
)

// running is the step that is under way: messages may end its calls.
type running struct {
	*execution
	step  bool    // prompts are composed, and the step has not settled
	calls []*call // of the step
	begun []begunCall
}

// begunCall is a call that an operator can interrupt.
type begunCall struct {
	*call
	cancel workflow.CancelFunc
}

// idle reports whether no call has begun.
func (rn *running) idle() bool { return len(rn.begun) == 0 }

// inStep reports whether a step has not settled.
func (rn *running) inStep() bool { return rn.step }

// enter begins a step; its calls follow when the budget and the limits are known.
func (rn *running) enter() { rn.step = true }

func (rn *running) will(all []*call) { rn.calls = all }

func (rn *running) begin(c *call, cancel workflow.CancelFunc) {
	rn.begun = append(rn.begun, begunCall{c, cancel})
}

// leave ends a step.
func (rn *running) leave() { rn.step, rn.calls, rn.begun = false, nil, nil }

// cancel cancels the calls for which a test holds.
func (rn *running) cancel(which func(*call) bool) {
	for _, c := range rn.begun {
		if which(c.call) {
			c.cancel()
		}
	}
}

// interrupts reports whether an instruction for a role finds a call that it interrupts: one that runs, also on a full
// disk, or that begins next.
func (rn *running) interrupts(role string) bool {
	interrupted := func(c *call) bool { return c.interruptible(role) }
	return slices.ContainsFunc(rn.begun, func(c begunCall) bool { return interrupted(c.call) }) ||
		rn.state().Status == run.Running && slices.ContainsFunc(rn.calls, interrupted)
}
