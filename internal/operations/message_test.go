package operations

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestUnansweredMessageMayTakeEffect: a worker that is frozen answers later, so the message is not reported as lost.
func TestUnansweredMessageMayTakeEffect(t *testing.T) {
	err := refusalOf("r1", "decide", client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded))
	require.EqualError(t, err, "decide run r1: its worker did not answer in time, and may still act on the message; see "+
		"starter status r1 before you send it again")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestMessageToARunThatCloses(t *testing.T) {
	for name, answer := range map[string]error{
		"closed":           alreadyClosed,
		"closed in answer": temporal.NewApplicationError("the workflow completed", "AcceptedUpdateCompletedWorkflow"),
	} {
		t.Run(name, func(t *testing.T) {
			o, _, f := terminal(t)
			d := journaled(t, o, "run-2", run.Cancelled)
			f.described = map[string]enumspb.WorkflowExecutionStatus{"run-2": isOpen}
			f.update = func(id string) error {
				f.described[id] = completed
				return answer
			}
			_, err := o.SendUpdate(t.Context(), d, contract.VerbPause, contract.Message{})
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.True(t, refused.Closed)
			var conflict *run.ConflictError
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, run.Cancelled, conflict.From)
			require.Contains(t, conflict.Allowed, run.Resume)
			require.EqualError(t, err, "pause refused: "+conflict.Error())
		})
	}
}

// TestSupersededMessageIsSentAgain: the directory is newer than the workflow, so the next execution handles the message.
func TestSupersededMessageIsSentAgain(t *testing.T) {
	superseded := temporal.NewNonRetryableApplicationError("the directory is newer", contract.Superseded, nil)
	o, _, f, sent := openRun(t, pausedEntry())
	f.update = func(string) error {
		if *sent++; *sent == 1 {
			return superseded
		}
		return nil
	}
	must(o.Send(t.Context(), "r1", contract.VerbPause, contract.Message{}))(t)
	require.Equal(t, 2, *sent)
	require.Equal(t, f.updated[0], f.updated[1], "the same message")

	ctx, cancel := context.WithCancel(t.Context())
	f.update = func(string) error { cancel(); return superseded }
	_, err := o.Send(ctx, "r1", contract.VerbPause, contract.Message{})
	require.EqualError(t, err, "pause refused: the directory is newer")
	require.Len(t, f.updated, 3)
}

// TestBinaryMessageIsRefused sends bytes that are not text.
func TestBinaryMessageIsRefused(t *testing.T) {
	for _, text := range []string{"\xff", "a\x00b"} {
		var refused *RefusedError
		_, err := Operator{}.Send(t.Context(), "run", contract.VerbSteer, contract.Message{Text: text})
		require.ErrorAs(t, err, &refused)
		require.Contains(t, refused.Why, "not UTF-8 text")
	}
}

// TestDecisionOnDamagedDirectory: a question in a line that the directory has lost cannot be answered there.
func TestDecisionOnDamagedDirectory(t *testing.T) {
	o, d, f := terminal(t)
	f.described = map[string]enumspb.WorkflowExecutionStatus{"run-1": isOpen}
	_, err := o.Decide(t.Context(), d, contract.Message{Action: run.ActionContinue})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.NotContains(t, err.Error(), "damaged")
	require.NoError(t, os.Truncate(d.Path(rundir.EventsFile), must(d.Meta())(t).Events.Size-20))
	_, err = o.Decide(t.Context(), d, contract.Message{Action: run.ActionContinue})
	require.ErrorContains(t, err, "But its directory is damaged: "+d.Path(rundir.EventsFile)+" is not the file that "+
		"meta.json has seen (1 events, ")
}
