package rundir

import (
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// The shapes of requirements 000 and 001: contradictions of questions, decisions and statuses that have a name.

func (c *check) judgeShapes() {
	if c.good() {
		c.judgeHandoff()
		c.judgeHalt()
		if c.cross != nil {
			c.judgeCross()
		}
	}
	c.judgeLiveness()
}

// handoff returns the open question in meta.json. There is one if phase_handoff is an object.
func (c *check) handoff() (id string, there bool) {
	if h := c.meta.PhaseHandoff; h != nil {
		return h.ID, true
	}
	return "", false
}

func (c *check) status() run.Status { return run.Status(c.meta.Status) }

// answer returns the answer to a question, or nil.
func (c *check) answer(id string) *Decision {
	for i := range c.answers {
		if c.answers[i].HandoffID == id {
			return &c.answers[i]
		}
	}
	return nil
}

// asks returns the question that the events leave open and that no decision on disk answers.
func (c *check) asks() (run.Question, bool) {
	q, open := c.seen.state.Asks()
	return q, open && c.answer(q.ID) == nil
}

// judgeHandoff checks the open question in meta.json.
func (c *check) judgeHandoff() {
	id, there := c.handoff()
	if !there {
		return
	}
	status, folded := c.status(), c.seen.state.Status
	decided := c.answer(id) != nil
	if status == run.Interrupted || folded == run.Interrupted {
		stands := "not decided"
		if decided {
			stands = "decided, and not acted on"
		}
		c.find(InterruptedWithActiveHandoff, "", fmt.Sprintf("the run was interrupted, and hand-off %s is %s", id, stands))
	}
	ended, code := status.Settled(), TerminalWithStaleHandoff
	if c.cross != nil {
		ended, code = Terminal(status), CrossTerminalWithStaleHandoff
	}
	if ended {
		c.find(code, MetaFile, fmt.Sprintf("the run has ended, and %s still contains hand-off %s", MetaFile, id))
	}
	if !decided {
		c.find(ActiveHandoffWithoutDecision, "", fmt.Sprintf("no decision on hand-off %s is on disk", id))
	}
	asked := c.seen.history.Handoffs
	if h, open := c.seen.state.Handoff(); open {
		asked = append(slices.Clip(asked), h.ID) // a review is not in the history
	}
	if !slices.Contains(asked, id) {
		c.find(MetaHandoffWithoutEvent, MetaFile, fmt.Sprintf("hand-off %s was never requested in %s", id,
			EventsFile))
	}
}

// judgeHalt looks for a decision to halt that is in force: the run may have been resumed after it.
func (c *check) judgeHalt() {
	var last *Decision
	for i, a := range c.answers {
		if a.Halts() && (last == nil || a.At().After(last.At())) {
			last = &c.answers[i]
		}
	}
	if last == nil || c.status() == run.Halted {
		return
	}
	h, open := c.seen.state.Open(run.QuestionHandoff)
	if c.seen.state.Status == run.Halted || open && h.ID == last.HandoffID {
		c.find(HaltDecisionWithoutHaltedMeta, MetaFile, fmt.Sprintf("a halt was decided, and the status in %s is %q",
			MetaFile, c.status()))
	}
}

// judgeLiveness reports a run that is open in its events and that no workflow continues. An undecided question requires
// an operator, even if no epoch has recorded the interruption yet.
func (c *check) judgeLiveness() {
	if c.effective.Status != run.Interrupted || c.effective.Recorded == run.Interrupted {
		return
	}
	q, open := c.asks()
	lag := func(code Code, message string) {
		i := c.issue(code, "", message)
		if open {
			i.Hint = "starter decide " + shell.Quote(c.dir.Root)
		}
		c.lag = append(c.lag, i)
	}
	lag(RunningWithoutLiveWorkflow, fmt.Sprintf("the run is recorded as %s, and its workflow is %s", c.effective.Recorded,
		c.effective.Liveness))
	if !open {
		return
	}
	lag(InterruptedWithActiveHandoff, fmt.Sprintf("the run was interrupted, and the question %s is not decided", q.ID))
	if h, _ := c.seen.state.Handoff(); h.ID != q.ID { // that of a hand-off is in meta.json, and named there
		lag(ActiveHandoffWithoutDecision, fmt.Sprintf("no decision on the question %s is in the journal", q.ID))
	}
}

// onlyOperator returns why an operator must decide before anything is repaired, or "".
func (c *check) onlyOperator() string {
	id, there := c.handoff()
	q, open := c.asks()
	switch f := c.seen.state.Status; {
	case c.has(InterruptedWithActiveHandoff) && open:
		return fmt.Sprintf("the interrupted run waits for a decision on %s: decide it (starter decide %s), which "+
			"continues the run", q.ID, shell.Quote(c.dir.Root))
	case c.has(InterruptedWithActiveHandoff) && there && c.answer(id) == nil:
		return fmt.Sprintf("the interrupted run waits for a decision on hand-off %s: decide it, then resume", id)
	case c.has(HaltDecisionWithoutHaltedMeta) && f != run.Halted:
		return "a halt was decided, and the events do not record it: send the decision to the run (starter decide " +
			shell.Quote(c.dir.Root) + " --action halt)"
	}
	return ""
}
