package workflows_test

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

// refusedAmongLanes has each message and its answer. Lane b asks first, then lane c.
const refusedAmongLanes = `decide map[action:continue]
  continue is not offered here: use one of retry, continue_with_waiver, halt
decide map[action:retry_feedback]
  retry_feedback needs feedback
decide map[action:retry_feedback feedback:more]
  retry_feedback is not offered here: use one of retry, continue_with_waiver, halt
decide map[action:skip]
  skip is not offered here: use one of retry, continue_with_waiver, halt
decide map[action:retry id:gate:3:SEQ:]
  the open question is gate:2:SEQ:, not gate:3:SEQ:; the decision was meant for another round, lane or artifact
revert map[to:cp-1]
  cannot revert a run that is running (allowed: ` + "starter status, starter diagnose, starter pause, " +
	`starter decide, starter cancel, starter replay, starter fork). Pause it first
resume map[]
  the run is running: only a paused run can be resumed
rehome map[dir:/new]
  the run is running: pause it before you move its directory
decide map[action:retry id:gate:2:SEQ:]
  accepted
decide map[action:halt id:gate:2:SEQ:]
  gate:2:SEQ: was already decided with retry: the first decision wins
decide map[action:retry]
  accepted
`

// TestMessagesRefusedAmongLanes sends messages that a run with lanes does not accept, while a lane works and others
// wait for an operator: each is refused with its text and changes nothing.
func TestMessagesRefusedAmongLanes(t *testing.T) {
	w := merging(t, strings.Replace(changingLanes, ", if_failing: continue}", "}", 1))
	w.items = []string{"a", "b", "c"}
	asked, decided := make(chan struct{}), make(chan struct{})
	w.agent.will(laneCall("b", "1"), goes(transient))
	w.agent.will(laneCall("c", "1"), func(contract.PassResult) (contract.PassResult, error) {
		<-asked
		return goes(transient)(contract.PassResult{})
	})
	w.agent.will(laneCall("a", "1"), after(func() { <-decided }))
	var sent []string
	var replies []*reply
	send := func(verb string, m message) {
		r := &reply{}
		w.env.UpdateWorkflow(verb, "", r, w.withGrants(m))
		sent, replies = append(sent, fmt.Sprint(verb, " ", m)), append(replies, r)
	}
	question := ""
	rounds := []func(q run.Question){
		func(q run.Question) {
			question = q.ID
			send("decide", message{"action": "continue"})
			send("decide", message{"action": "retry_feedback"})
			send("decide", message{"action": "retry_feedback", "feedback": "more"})
			send("decide", message{"action": "skip"})
			send("decide", message{"action": "retry", "id": strings.Replace(q.ID, ":2:", ":3:", 1)})
			send("revert", message{"to": "cp-1"})
			send("resume", message{})
			send("rehome", message{"dir": "/new"})
			close(asked)
			send("decide", message{"action": "retry", "id": q.ID})
		},
		func(q run.Question) {
			send("decide", message{"action": "halt", "id": question})
			close(decided)
			send("decide", message{"action": "retry"})
		},
	}
	var next func()
	next = func() {
		w.env.RegisterDelayedCallback(func() {
			q, open := w.status().Asks()
			require.True(t, open)
			f := rounds[0]
			rounds = rounds[1:]
			w.dir.when(run.KindGateRequested, next)
			f(q)
		}, 0)
	}
	w.dir.when(run.KindGateRequested, next)
	w.done()
	var texts []string
	for i, r := range replies {
		text := "accepted"
		if err := cmp.Or(r.refused, r.err); err != nil {
			text, _, _ = strings.Cut(err.Error(), " (type: ")
		}
		texts = append(texts, sent[i]+"\n  "+text)
	}
	ids := regexp.MustCompile(`(gate:\d+:)\d+:`)
	require.Equal(t, refusedAmongLanes, ids.ReplaceAllString(strings.Join(texts, "\n")+"\n", "${1}SEQ:"))
	require.Equal(t, "first tree+a+b+c", w.dir.state(t).Tree.Digest)
	require.Empty(t, w.story(run.KindDecisionRefused))
}
