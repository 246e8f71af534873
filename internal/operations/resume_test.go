package operations

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestMayReopen lists which closed run resumes, and on which terms.
func TestMayReopen(t *testing.T) {
	forced, blank := Reopening{Force: true, Reason: "the operator wants it"}, Reopening{Force: true, Reason: " \n"}
	for _, tt := range []struct {
		name     string
		recorded run.Status
		live     run.Liveness
		how      Reopening
		state    func(*run.State)
		refused  string // empty: it resumes
	}{
		{name: "failed", recorded: run.Failed, live: run.LiveClosed,
			refused: "the run failed: a cause. Inspect it first: starter diagnose"},
		{name: "failed, forced", recorded: run.Failed, live: run.LiveClosed, how: forced},
		{name: "failed, after a yes", recorded: run.Failed, live: run.LiveClosed, how: Reopening{Yes: true}},
		{name: "failed, with another definition", recorded: run.Failed, live: run.LiveClosed,
			how: Reopening{Amend: &contract.Message{}}},
		{name: "failed, and its question is decided", recorded: run.Failed, live: run.LiveClosed,
			how: Reopening{Decision: &contract.Message{Action: "halt"}},
			state: func(s *run.State) {
				s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h-7", Actions: []string{"halt"}}}
			}},
		{name: "halted, after a yes", recorded: run.Halted, live: run.LiveClosed, how: Reopening{Yes: true},
			refused: "was halted"},
		{name: "no server, after a yes", recorded: run.Failed, live: run.LiveUnknown, how: Reopening{Yes: true},
			refused: "whether the run is alive is unknown"},
		{name: "cancelled", recorded: run.Cancelled, live: run.LiveClosed},
		{name: "interrupted, as an epoch recorded it", recorded: run.Interrupted, live: run.LiveClosed},
		{name: "running, and its workflow has ended", recorded: run.Running, live: run.LiveClosed},
		{name: "running, and its workflow is lost", recorded: run.Running, live: run.LiveGone},
		{name: "paused, and its workflow is lost", recorded: run.Paused, live: run.LiveGone},
		{name: "replaying, and its workflow is lost", recorded: run.Replaying, live: run.LiveGone},
		{name: "failed, and Temporal no longer has it", recorded: run.Failed, live: run.LiveGone,
			refused: "Inspect it first"},
		{name: "running", recorded: run.Running, live: run.LiveOpen, refused: "its workflow is open"},
		{name: "paused", recorded: run.Paused, live: run.LiveOpen, refused: "its workflow is open"},
		{name: "no server", recorded: run.Running, live: run.LiveUnknown,
			refused: "whether the run is alive is unknown"},
		{name: "no server, forced", recorded: run.Running, live: run.LiveUnknown, how: forced},
		{name: "failed on another server, forced", recorded: run.Failed, live: run.LiveUnknown, how: forced},
		{name: "failed, forced without a reason", recorded: run.Failed, live: run.LiveClosed, how: blank,
			refused: "needs --reason"},
		{name: "interrupted, forced without a reason", recorded: run.Running, live: run.LiveGone, how: blank,
			refused: "needs --reason"},
		{name: "done, forced without a reason", recorded: run.Done, live: run.LiveClosed, how: blank,
			refused: "done is final"},
		{name: "done", recorded: run.Done, live: run.LiveClosed, refused: "done is final"},
		{name: "done, forced", recorded: run.Done, live: run.LiveGone, how: forced, refused: "done is final"},
		{name: "halted", recorded: run.Halted, live: run.LiveClosed, refused: "was halted"},
		{name: "halted, forced", recorded: run.Halted, live: run.LiveClosed, how: forced},
		{name: "halted, forced without a reason", recorded: run.Halted, live: run.LiveClosed, how: blank,
			refused: "needs --reason"},
		{name: "without an event", recorded: "", live: run.LiveGone, refused: "has not begun"},
		{name: "a question is open", recorded: run.Failed, live: run.LiveClosed,
			state:   func(s *run.State) { s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h-7"}} },
			refused: "h-7 is not decided"},
		{name: "a question is open, forced", recorded: run.AwaitingPhaseHandoff, live: run.LiveUnknown, how: forced,
			state: func(s *run.State) { s.Questions = []run.Question{{Kind: run.QuestionHandoff, ID: "h-7"}} }},
		{name: "no checkpoint", recorded: run.Failed, live: run.LiveClosed,
			state: func(s *run.State) { s.Checkpoint = nil }, refused: "no checkpoint"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := run.State{Status: tt.recorded, Reason: "a cause.", Checkpoint: &run.CheckpointRef{ID: "cp-1"}}
			if tt.state != nil {
				tt.state(&s)
			}
			err := mayReopen(rundir.At("/run"), s,
				insisted(run.NewEffectiveStatus(tt.recorded, tt.live, "for a reason"), tt.how), tt.how)
			if tt.refused == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.refused)
		})
	}
}

// TestCauseGone lists the pauses that `run` ends without a resume.
func TestCauseGone(t *testing.T) {
	spent := func(limit float64) run.State {
		return run.State{Status: run.Paused, Reason: run.BudgetThreshold, Budget: run.Budget{CapUSD: limit},
			Spent: run.Totals{USD: 5}}
	}
	require.True(t, causeGone(spent(6)))
	require.True(t, causeGone(spent(0)))
	require.False(t, causeGone(spent(5)))
	require.True(t, causeGone(run.State{Status: run.Paused, Reason: run.DiskFull}))
	for _, reason := range []string{run.UserRequested, run.UserReview, run.QualityGate, run.PassFailed,
		run.ConsecutiveFailures} {
		require.False(t, causeGone(run.State{Status: run.Paused, Reason: reason}), reason)
	}
	require.False(t, causeGone(run.State{Status: run.Running}))
}

// TestResumeComparesTheJournalFirst, once Temporal has lost the history: what the store has is rebuilt, anything else
// is refused with the code of the finding, and no workflow starts.
func TestResumeComparesTheJournalFirst(t *testing.T) {
	cut := func(lines []string) []string { return lines[:len(lines)-1] }
	edit := func(lines []string) []string {
		return append([]string{strings.Replace(lines[0], "page", "pace", 1)}, lines[1:]...)
	}
	for name, row := range map[string]struct {
		end      run.Status
		damage   func([]string) []string
		unsealed bool        // meta.json names no segment
		code     rundir.Code // of the damage that refuses it
		final    bool        // refused because the run is done
	}{
		"a whole directory":                     {end: run.Failed},
		"a changed line that the store has":     {end: run.Failed, damage: edit},
		"a cut line that the store has":         {end: run.Failed, damage: cut},
		"a changed line that the store has not": {end: run.Failed, damage: edit, unsealed: true, code: rundir.JournalDamaged},
		"a cut line that the store has not":     {end: run.Failed, damage: cut, unsealed: true, code: rundir.JournalDamaged},
		"done, and the last line is cut":        {end: run.Done, damage: cut, final: true},
		"done, cut, and the store has it not":   {end: run.Done, damage: cut, unsealed: true, code: rundir.JournalDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, f := closedRun(t, "", runEnded(row.end))
			lines := linesOf(t, d)
			if row.damage != nil {
				write(t, d.Root, map[string]string{rundir.EventsFile: strings.Join(row.damage(lines), "\n") + "\n"})
			}
			if row.unsealed {
				raw := must(os.ReadFile(d.Path(rundir.MetaFile)))(t)
				write(t, d.Root, map[string]string{
					rundir.MetaFile: strings.Replace(string(raw), must(d.Meta())(t).SegmentHead, "", 1)})
			}
			same := unchanged(t, d.Root)
			re, err := o.Resume(t.Context(), d, Reopening{Yes: true})
			if row.code != "" || row.final {
				if row.final {
					var conflict *run.ConflictError
					require.ErrorAs(t, err, &conflict)
					require.Equal(t, run.Done, conflict.From)
				} else {
					var damaged *rundir.DamagedError
					require.ErrorAs(t, err, &damaged)
					require.Equal(t, row.code, damaged.Code)
				}
				same()
				require.Empty(t, f.started)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 2, re.Epoch)
			require.Len(t, f.started, 1)
			in := f.started[0]
			require.Equal(t, lines, linesOf(t, d), "the journal as it was written")
			require.EqualValues(t, len(lines), in.Snapshot.Tail.Seq)
			require.Equal(t, run.Chain("").Over(lines), in.Snapshot.Tail.Chain)
			require.Equal(t, run.Failed, in.Snapshot.State.Status)
			require.Equal(t, row.damage == nil, len(in.Reopen.Repaired) == 0)
		})
	}
}

// decided is a question of the stage, and its answer.
func decided(asked, answered run.Kind, kind run.QuestionKind, trigger, action string) []entry {
	return []entry{
		{asked, run.QuestionRequested{Kind: kind, ID: "q1", Phase: "write", Round: 1, Trigger: trigger,
			Actions: []string{action, "other"}}},
		{answered, run.QuestionDecided{Kind: kind, ID: "q1", Action: action}},
	}
}

// TestResumeOfAHaltKnowsWhetherItEnded: the decision halts the run, also if its end was not written.
func TestResumeOfAHaltKnowsWhetherItEnded(t *testing.T) {
	halt := decided(run.KindHandoffRequested, run.KindHandoffDecided, run.QuestionHandoff, "", run.ActionHalt)
	for name, events := range map[string][]entry{
		"ended": append(halt, runEnded(run.Halted)), "terminated before its end": halt} {
		t.Run(name, func(t *testing.T) {
			o, d, f := closedRun(t, "", events...)
			must(o.Resume(t.Context(), d, Reopening{Force: true, Reason: "all the same"}))(t)
			require.Len(t, f.started, 1)
			re := f.started[0].Reopen
			require.Equal(t, run.Halted, re.From)
			require.Equal(t, name != "ended", re.Unended)
			require.Empty(t, re.Interruption)
		})
	}
}

// TestResumeEndsAnApprovedRun: its workflow was terminated between the review and the end.
func TestResumeEndsAnApprovedRun(t *testing.T) {
	o, d, f := closedRun(t, "plan", decided(run.KindReviewRequested, run.KindReviewDecided, run.QuestionReview,
		run.TriggerPlanReady, run.ActionApprove)...)
	must(o.Resume(t.Context(), d, Reopening{}))(t)
	require.Len(t, f.started, 1)
	re := f.started[0].Reopen
	require.Equal(t, run.Done, re.From)
	require.Equal(t, 2, re.Epoch)
	require.Empty(t, re.Interruption)
}

// TestResumeAfterAnEpochWithoutEvents: its workflow was terminated after it had acquired the directory.
func TestResumeAfterAnEpochWithoutEvents(t *testing.T) {
	o, d, f := closedRun(t, "", runEnded(run.Failed))
	acquire := func(owner rundir.Owner, tail run.Tail) {
		t.Helper()
		require.NoError(t, rundir.TakeOver(t.Context(), d, owner, tail))
		r := must(rundir.Check(t.Context(), d, rundir.CheckOptions{}))(t)
		require.True(t, r.OK, r.Issues)
	}
	acquire(rundir.Owner{Epoch: 2, RunID: "r1", Execution: "terminated"}, must(d.Now())(t).Tail)
	require.Equal(t, 3, must(o.Resume(t.Context(), d, Reopening{Yes: true}))(t).Epoch)
	in := f.started[0]
	acquire(rundir.Owner{Epoch: in.Reopen.Epoch, RunID: "r1", Execution: "next"}, in.Snapshot.Tail)
}

// historyOf is the history of a workflow that projected these lines.
func historyOf(t *testing.T, in contract.Input, lines []string) []*historypb.HistoryEvent {
	t.Helper()
	of := func(v any) *commonpb.Payloads {
		return must(converter.GetDefaultDataConverter().ToPayloads(v))(t)
	}
	return []*historypb.HistoryEvent{
		{EventId: 1, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: of(in)},
		}},
		{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: contract.Project},
				Input:        of(contract.ProjectInput{Target: contract.Target{Epoch: 1}, First: 1, Lines: lines}),
			},
		}},
		{EventId: 3, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 2,
				Result: of(contract.ProjectResult{Outcome: run.ProjectionWritten})},
		}},
	}
}

// TestRefusedCommandsChangeNothing in the directory of a run that has closed: no file, and no time of a change.
func TestRefusedCommandsChangeNothing(t *testing.T) {
	type command = func(t *testing.T, o Operator, d rundir.Dir) error
	resume := func(how Reopening) command {
		return func(t *testing.T, o Operator, d rundir.Dir) error {
			_, err := o.Resume(t.Context(), d, how)
			return err
		}
	}
	revert := func(how Reverting) command {
		return func(t *testing.T, o Operator, d rundir.Dir) error {
			_, err := o.Revert(t.Context(), d, how)
			return err
		}
	}
	for name, row := range map[string]struct {
		end     run.Status
		command command
		message string
	}{
		"resume of a done run":              {run.Done, resume(Reopening{}), "done is final"},
		"resume of a halted run":            {run.Halted, resume(Reopening{}), "--force --reason"},
		"resume by force, without a reason": {run.Failed, resume(Reopening{Force: true}), "needs --reason"},
		"revert of a done run":              {run.Done, revert(Reverting{To: "cp-1"}), "cannot revert"},
		"revert by force, without a reason": {run.Failed, revert(Reverting{To: "cp-1", Force: true}), "needs --reason"},
		"revert to no checkpoint":           {run.Failed, revert(Reverting{To: "cp-none"}), "no checkpoint cp-none"},
		"cancel of a failed run": {run.Failed,
			func(t *testing.T, o Operator, d rundir.Dir) error { return o.Cancel(t.Context(), d) }, "cannot cancel"},
		"decide where nothing is asked": {run.Failed, func(t *testing.T, o Operator, d rundir.Dir) error {
			_, err := o.Decide(t.Context(), d, contract.Message{Action: run.ActionContinue})
			return err
		}, "decide refused"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, f := closedRun(t, "", runEnded(row.end))
			f.described = map[string]enumspb.WorkflowExecutionStatus{"r1": enumspb.WORKFLOW_EXECUTION_STATUS_FAILED}
			f.history = historyOf(t, contract.Input{Target: contract.Target{RunID: "r1", Store: o.Settings.Store},
				Claim: must(d.Claim())(t)}, linesOf(t, d))
			same := unchanged(t, d.Root)
			require.ErrorContains(t, row.command(t, o, d), row.message)
			same()
			require.Empty(t, f.started)
		})
	}
}

// TestQuestionOfLostServer: the server on which the run was started is another one. A resume by force continues the run
// and asks again; the others name it.
func TestQuestionOfLostServer(t *testing.T) {
	o, d, f := closedRun(t, "", decided(run.KindHandoffRequested, "", run.QuestionHandoff, run.TriggerAsked,
		run.ActionContinue)[0])
	claim := must(d.Claim())(t)
	claim.Cluster = "another"
	write(t, d.Root, map[string]string{rundir.ClaimFile: string(must(json.Marshal(claim))(t))})
	f.update = func(string) error { return errors.New("a message was sent") }
	const lost = " refused: whether the run is alive is unknown (this Temporal server (cluster this) does not know it; it " +
		"was started on another one (cluster another)). If that server is gone for good"
	resume := ": starter resume " + d.Root + " --force --reason TEXT"
	_, err := o.Decide(t.Context(), d, contract.Message{Action: run.ActionContinue})
	require.EqualError(t, err, "decide"+lost+resume)
	_, err = o.SendUpdate(t.Context(), d, contract.VerbPause, contract.Message{})
	require.EqualError(t, err, "pause"+lost+resume)
	_, err = o.Resume(t.Context(), d, Reopening{})
	require.EqualError(t, err, "resume"+lost+resume)
	require.EqualError(t, o.Cancel(t.Context(), d), "cancel"+lost+resume)
	_, err = o.Revert(t.Context(), d, Reverting{To: "cp-1"})
	require.EqualError(t, err, "revert"+lost+resume)
	require.Empty(t, f.started)
	re := must(o.Resume(t.Context(), d, Reopening{Force: true, Reason: "it is gone"}))(t)
	require.Equal(t, 2, re.Epoch)
	require.Len(t, f.started, 1)
	require.Nil(t, f.started[0].Reopen.Decision)
}

// TestForceOverrulesThePolicyAndRecordsIt: the policy is evaluated whether or not a resume is forced.
func TestForceOverrulesThePolicyAndRecordsIt(t *testing.T) {
	o, d, f := closedRun(t, "", runEnded(run.Failed))
	forced := Reopening{Force: true, Reason: "this once"}
	re := must(o.Resume(t.Context(), d, forced))(t)
	require.Empty(t, re.Overruled)
	o.Settings.Policy.Agents = []string{"other"}
	_, err := o.Resume(t.Context(), d, Reopening{Yes: true})
	var policy *PolicyError
	require.ErrorAs(t, err, &policy)
	require.ErrorContains(t, err, "--force --reason TEXT")
	re = must(o.Resume(t.Context(), d, forced))(t)
	require.Equal(t, policy.Differences, re.Overruled)
	r := f.started[1].Reopen
	require.True(t, r.Force)
	require.Equal(t, "this once", r.Reason)
	require.Equal(t, policy.Differences, r.Overruled)
	o.Settings.Policy.Forbid = []string{"force"}
	_, err = o.Resume(t.Context(), d, forced)
	require.ErrorContains(t, err, "policy.forbid has force")
	require.Len(t, f.started, 2)
}

// TestPausedRunIsNotResumedAgainstThePolicy of today without force.
func TestPausedRunIsNotResumedAgainstThePolicy(t *testing.T) {
	o, d, f := closedRun(t, "", entry{run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}})
	f.described = map[string]enumspb.WorkflowExecutionStatus{"r1": isOpen}
	sent := errors.New("the message was sent")
	f.update = func(string) error { return sent }
	_, err := o.Resume(t.Context(), d, Reopening{})
	require.ErrorIs(t, err, sent)
	o.Settings.Policy.Agents = []string{"other"}
	_, err = o.Resume(t.Context(), d, Reopening{})
	require.ErrorAs(t, err, new(*PolicyError))
	_, err = o.Resume(t.Context(), d, Reopening{Force: true, Reason: "this once"})
	require.ErrorIs(t, err, sent)
	o.Settings.Policy.Forbid = []string{"force"}
	_, err = o.Resume(t.Context(), d, Reopening{Force: true, Reason: "this once"})
	require.ErrorAs(t, err, new(*PolicyError))
}

// TestRevertRebuildsACheckpoint that the store has with other bytes, and warns.
func TestRevertRebuildsACheckpoint(t *testing.T) {
	o, d, f := closedRun(t, "", runEnded(run.Failed))
	s := must(store.Open(t.Context(), o.Settings.Store))(t)
	names := must(s.List(t.Context(), "checkpoints/r1/"))(t)
	require.NotEmpty(t, names)
	require.NoError(t, s.Replace(t.Context(), names[0], []byte("{}")))
	back := must(o.Revert(t.Context(), d, Reverting{To: "cp-1"}))(t)
	require.Equal(t, "checkpoint cp-1 was damaged in the store and was rebuilt from the journal", back.Warning)
	require.Len(t, f.started, 1)
	must(rundir.LoadCheckpoint(t.Context(), blobs.Of(s), "r1", "cp-1"))(t)
}

// closesOn is a run whose end is on disk, and whose workflow is open until it answers a message with this error.
func closesOn(t *testing.T, end run.Status, answer error) (o Operator, d rundir.Dir, f *fakeTemporal, sent *int) {
	t.Helper()
	o, d, f = closedRun(t, "", runEnded(end))
	f.described = map[string]enumspb.WorkflowExecutionStatus{"r1": isOpen}
	sent = new(int)
	f.update = func(string) error {
		*sent++
		if _, refused := answer.(*temporal.ApplicationError); !refused {
			delete(f.described, "r1")
		}
		return answer
	}
	return o, d, f, sent
}

var alreadyClosed = serviceerror.NewNotFound("workflow execution already completed")

// TestRevertOfARunThatCloses: its workflow closes before it handles the message.
func TestRevertOfARunThatCloses(t *testing.T) {
	o, d, f, sent := closesOn(t, run.Failed, alreadyClosed)
	back := must(o.Revert(t.Context(), d, Reverting{To: "cp-1"}))(t)
	require.Equal(t, 1, *sent)
	require.Equal(t, 2, back.Epoch)
	require.Equal(t, "cp-1", back.Checkpoint)
	require.Len(t, f.started, 1)
	require.Equal(t, "cp-1", f.started[0].Reopen.Revert.To)
}

// TestResumeOfARunThatCloses: its workflow closes before the message, or while it refuses it.
func TestResumeOfARunThatCloses(t *testing.T) {
	refusal := func(status run.Status) error {
		return temporal.NewApplicationErrorWithOptions("it accepts no more messages", "Refused",
			temporal.ApplicationErrorOptions{NonRetryable: true,
				Details: []any{*run.Conflict(status, run.Resume, run.Terms{})}})
	}
	for name, row := range map[string]struct {
		looked  bool // the workflow closes once it was found open
		answer  error
		sent    int
		awaited int
		resumed bool
	}{
		"before the message":                {true, alreadyClosed, 0, 0, true},
		"after it refused the message":      {false, refusal(run.Cancelled), 1, 1, true},
		"not when it refuses while it runs": {false, refusal(run.Running), 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, f, sent := closesOn(t, run.Cancelled, row.answer)
			awaited := 0
			f.await = func() { awaited++; delete(f.described, "r1") }
			if row.looked {
				f.afterDescribe = func() { delete(f.described, "r1") }
			}
			back, err := o.Resume(t.Context(), d, Reopening{})
			require.Equal(t, row.sent, *sent)
			require.Equal(t, row.awaited, awaited)
			if !row.resumed {
				require.ErrorContains(t, err, "it accepts no more messages")
				require.Empty(t, f.started)
				return
			}
			require.NoError(t, err)
			require.Len(t, f.started, 1)
			require.Equal(t, 2, back.Epoch)
		})
	}
}
