package operations

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

// closedServer has one workflow, which has ended, and its history with these lines.
type closedServer struct {
	emptyServer
	claim run.Claim
	url   string
	lines []string
}

func (s closedServer) DescribeWorkflow(context.Context, string, string) (*client.WorkflowExecutionDescription, error) {
	d := &client.WorkflowExecutionDescription{}
	d.Status = enumspb.WORKFLOW_EXECUTION_STATUS_FAILED
	return d, nil
}

func (s closedServer) GetWorkflowHistory(context.Context, string, string, bool,
	enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	of := func(v any) *commonpb.Payloads {
		p, err := converter.GetDefaultDataConverter().ToPayloads(v)
		if err != nil {
			panic(err)
		}
		return p
	}
	in := workflows.Input{Target: contract.Target{RunID: s.claim.RunID, Store: s.url}, Claim: s.claim}
	return &recordedHistory{events: []*historypb.HistoryEvent{
		{EventId: 1, Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: of(in)},
		}},
		{EventId: 2, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: contract.Project},
				Input:        of(contract.ProjectInput{Epoch: 1, First: 1, Lines: s.lines}),
			},
		}},
		{EventId: 3, Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 2,
				Result: of(contract.ProjectResult{Outcome: run.ProjectionWritten})},
		}},
	}}
}

// recordedHistory is the events of a history, in order.
type recordedHistory struct{ events []*historypb.HistoryEvent }

func (h *recordedHistory) HasNext() bool { return len(h.events) > 0 }

func (h *recordedHistory) Next() (*historypb.HistoryEvent, error) {
	e := h.events[0]
	h.events = h.events[1:]
	return e, nil
}

// closing is a run with this end, which stands in its directory and in the store, and an operator to whom its workflow
// is lost.
func closing(t *testing.T, end run.Status) (Operator, projector.Dir, *[]workflows.Input) {
	t.Helper()
	s, root := testStore(t), t.TempDir()
	redact, err := secrets.New(config.Settings{}, nil)
	require.NoError(t, err)
	var started []workflows.Input
	o := Operator{
		Client: emptyServer{started: &started}, Host: "here", Redact: redact,
		Settings: config.Settings{StateDir: filepath.Join(root, "state"), Store: s.URL(), TaskQueue: "passbook"},
	}
	stored := func(v any) string {
		raw, err := json.Marshal(v)
		require.NoError(t, err)
		return blobOf(t, s, string(raw)).Digest
	}
	start := run.RunStart{
		RunID: "r1", ThreadID: "r1", Epoch: 1, Pipeline: "page", Plan: stored(small),
		Definition: blobOf(t, s, "stages: []").Digest,
		Policy:     stored(Policy{Version: 1, Agents: []pipeline.Agent{{Name: "a", Run: []string{"mine"}}}}),
		Stages:     []run.StageRef{{Name: "write"}},
		Artifact:   &run.ArtifactRef{File: "page.html", Seed: blobOf(t, s, "seed")},
	}
	d := directoryOf(t, s, "r1", entry{run.KindRunStart, start},
		entry{run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1}},
		entry{run.KindRunEnd, run.RunEnd{Status: end}})
	return o, d, &started
}

// linesOf are the events of a directory as they are written.
func linesOf(t *testing.T, d projector.Dir) []string {
	t.Helper()
	return strings.Split(strings.TrimSuffix(string(must(os.ReadFile(d.Path(layout.EventsFile)))(t)), "\n"), "\n")
}

// stampsOf gives when each file and folder of a directory was changed last.
func stampsOf(t *testing.T, d projector.Dir) map[string]time.Time {
	t.Helper()
	all := map[string]time.Time{}
	require.NoError(t, filepath.Walk(d.Root, func(path string, fi os.FileInfo, err error) error {
		if err == nil {
			all[path] = fi.ModTime()
		}
		return err
	}))
	return all
}

// TestResumeComparesTheJournalFirst, once Temporal has lost the history: what the store has is written again, anything
// else is refused with the code of the finding, and no workflow starts.
func TestResumeComparesTheJournalFirst(t *testing.T) {
	cut := func(lines []string) []string { return lines[:len(lines)-1] }
	edit := func(lines []string) []string {
		return append([]string{strings.Replace(lines[0], "page", "pace", 1)}, lines[1:]...)
	}
	for name, row := range map[string]struct {
		end      run.Status
		hurt     func([]string) []string
		unsealed bool // meta.json names no segment
		refused  string
	}{
		"a whole directory":                 {end: run.Failed},
		"a changed line that the store has": {end: run.Failed, hurt: edit},
		"a cut line that the store has":     {end: run.Failed, hurt: cut},
		"a changed line that the store has not": {end: run.Failed, hurt: edit, unsealed: true,
			refused: "chain_mismatch"},
		"a cut line that the store has not":   {end: run.Failed, hurt: cut, unsealed: true, refused: "chain_mismatch"},
		"done, and the last line is cut":      {end: run.Done, hurt: cut, refused: "done is final"},
		"done, cut, and the store has it not": {end: run.Done, hurt: cut, unsealed: true, refused: "chain_mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, started := closing(t, row.end)
			lines := linesOf(t, d)
			if row.hurt != nil {
				require.NoError(t, os.WriteFile(d.Path(layout.EventsFile),
					[]byte(strings.Join(row.hurt(lines), "\n")+"\n"), 0o600))
			}
			if row.unsealed {
				m, err := d.Meta()
				require.NoError(t, err)
				raw := must(os.ReadFile(d.Path(layout.MetaFile)))(t)
				require.NoError(t, os.WriteFile(d.Path(layout.MetaFile),
					[]byte(strings.Replace(string(raw), m.SegmentHead, "", 1)), 0o600))
			}
			files, times := laid(t, d.Root), stampsOf(t, d)
			re, err := o.Resume(t.Context(), d, Reopening{})
			if row.refused != "" {
				require.ErrorContains(t, err, row.refused)
				require.Equal(t, files, laid(t, d.Root))
				require.Equal(t, times, stampsOf(t, d))
				require.Empty(t, *started)
				return
			}
			require.NoError(t, err)
			require.Equal(t, 2, re.Epoch)
			require.Len(t, *started, 1)
			in := (*started)[0]
			require.Equal(t, lines, linesOf(t, d), "the journal as it was written")
			require.EqualValues(t, len(lines), in.Snapshot.Tail.Seq)
			require.Equal(t, run.Chain("").Over(lines), in.Snapshot.Tail.Chain)
			require.Equal(t, run.Failed, in.Snapshot.State.Status)
			require.Equal(t, row.hurt == nil, len(in.Reopen.Repaired) == 0)
		})
	}
}

// TestResumeOfAHaltKnowsWhetherItEnded: the decision halts the run, also if its end was not written.
func TestResumeOfAHaltKnowsWhetherItEnded(t *testing.T) {
	for name, ended := range map[string]bool{"ended": true, "terminated before its end": false} {
		t.Run(name, func(t *testing.T) {
			o, _, started := closing(t, run.Failed)
			s, err := store.Open(t.Context(), o.Settings.Store)
			require.NoError(t, err)
			defer s.Close()
			entries := []entry{
				{run.KindRunStart, run.RunStart{RunID: "r2", ThreadID: "r2", Epoch: 1, Pipeline: "page",
					Plan: string(must(s.PutJSON(t.Context(), small))(t)), Definition: blobOf(t, s, "stages: []").Digest,
					Policy: string(must(s.PutJSON(t.Context(), Policy{Version: 1}))(t)),
					Stages: []run.StageRef{{Name: "write"}}}},
				{run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1}},
				{run.KindHandoffRequested, run.QuestionRequested{Kind: run.QuestionHandoff, ID: "q1", Phase: "write",
					Round: 1, Actions: []string{run.ActionContinue, run.ActionHalt}}},
				{run.KindHandoffDecided, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "q1", Action: run.ActionHalt}},
			}
			if ended {
				entries = append(entries, entry{run.KindRunEnd, run.RunEnd{Status: run.Halted}})
			}
			d := directoryOf(t, s, "r2", entries...)
			_, err = o.Resume(t.Context(), d, Reopening{Force: true, Reason: "all the same"})
			require.NoError(t, err)
			require.Len(t, *started, 1)
			re := (*started)[0].Reopen
			require.Equal(t, run.Halted, re.From)
			require.Equal(t, !ended, re.Unended)
			require.Empty(t, re.Interruption)
		})
	}
}

// TestResumeEndsAnApprovedRun: its workflow was terminated between the review and the end.
func TestResumeEndsAnApprovedRun(t *testing.T) {
	for name, ended := range map[string]bool{"ended": true, "terminated before its end": false} {
		t.Run(name, func(t *testing.T) {
			o, _, started := closing(t, run.Failed)
			s, err := store.Open(t.Context(), o.Settings.Store)
			require.NoError(t, err)
			defer s.Close()
			entries := []entry{
				{run.KindRunStart, run.RunStart{RunID: "r2", ThreadID: "r2", Epoch: 1, Pipeline: "page", Kind: "plan",
					Plan: string(must(s.PutJSON(t.Context(), small))(t)), Definition: blobOf(t, s, "stages: []").Digest,
					Policy: string(must(s.PutJSON(t.Context(), Policy{Version: 1}))(t)),
					Stages: []run.StageRef{{Name: "write"}}}},
				{run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1}},
				{run.KindReviewRequested, run.QuestionRequested{Kind: run.QuestionReview, ID: "q1", Phase: "write",
					Round: 1, Trigger: run.TriggerPlanReady, Actions: []string{run.ActionApprove, run.ActionHalt}}},
				{run.KindReviewDecided, run.QuestionDecided{Kind: run.QuestionReview, ID: "q1", Action: run.ActionApprove}},
			}
			if ended {
				entries = append(entries, entry{run.KindRunEnd, run.RunEnd{Status: run.Done}})
			}
			d := directoryOf(t, s, "r2", entries...)
			_, err = o.Resume(t.Context(), d, Reopening{})
			if ended {
				require.ErrorContains(t, err, "done is final")
				require.Empty(t, *started)
				return
			}
			require.NoError(t, err)
			require.Len(t, *started, 1)
			re := (*started)[0].Reopen
			require.Equal(t, run.Done, re.From)
			require.Equal(t, 2, re.Epoch)
			require.Empty(t, re.Interruption)
		})
	}
}

// TestResumeAfterAnEpochWithoutEvents: its workflow was terminated after it had acquired the directory.
func TestResumeAfterAnEpochWithoutEvents(t *testing.T) {
	o, d, started := closing(t, run.Failed)
	now, err := d.Now()
	require.NoError(t, err)
	require.NoError(t, fsck.TakeOver(t.Context(), d, rundir.Owner{Epoch: 2, RunID: "r1", Execution: "terminated"},
		now.Tail))
	r, err := fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
	require.NoError(t, err)
	require.True(t, r.OK, r.Issues)
	re, err := o.Resume(t.Context(), d, Reopening{})
	require.NoError(t, err)
	require.Equal(t, 3, re.Epoch)
	in := (*started)[0]
	next := rundir.Owner{Epoch: in.Reopen.Epoch, RunID: "r1", Execution: "next"}
	require.NoError(t, fsck.TakeOver(t.Context(), d, next, in.Snapshot.Tail))
	r, err = fsck.Check(t.Context(), d.Dir, fsck.CheckOptions{})
	require.NoError(t, err)
	require.True(t, r.OK, r.Issues)
}

// TestRefusedVerbsChangeNothing in the directory of a run that has closed: no file, and no time of a change.
func TestRefusedVerbsChangeNothing(t *testing.T) {
	for name, row := range map[string]struct {
		end     run.Status
		ask     func(context.Context, Operator, projector.Dir) error
		message string
	}{
		"resume of a done run": {run.Done, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Resume(ctx, d, Reopening{})
			return err
		}, "done is final"},
		"resume of a halted run": {run.Halted, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Resume(ctx, d, Reopening{})
			return err
		}, "--force --reason"},
		"resume by force, without a reason": {run.Failed, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Resume(ctx, d, Reopening{Force: true})
			return err
		}, "needs --reason"},
		"revert of a done run": {run.Done, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Revert(ctx, d, Reverting{To: "cp-1"})
			return err
		}, "cannot revert"},
		"revert by force, without a reason": {run.Failed, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Revert(ctx, d, Reverting{To: "cp-1", Force: true})
			return err
		}, "needs --reason"},
		"revert to no checkpoint": {run.Failed, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Revert(ctx, d, Reverting{To: "cp-none"})
			return err
		}, "no checkpoint cp-none"},
		"cancel of a failed run": {run.Failed,
			func(ctx context.Context, o Operator, d projector.Dir) error { return o.Cancel(ctx, d) }, "cannot cancel"},
		"decide where nothing is asked": {run.Failed, func(ctx context.Context, o Operator, d projector.Dir) error {
			_, err := o.Decide(ctx, d, workflows.Message{Action: run.ActionContinue})
			return err
		}, "decide refused"},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, started := closing(t, row.end)
			claim, err := d.Claim()
			require.NoError(t, err)
			o.Client = closedServer{emptyServer: emptyServer{started: started}, claim: claim, url: o.Settings.Store,
				lines: linesOf(t, d)}
			files, times := laid(t, d.Root), stampsOf(t, d)
			require.ErrorContains(t, row.ask(t.Context(), o, d), row.message)
			require.Equal(t, files, laid(t, d.Root))
			require.Equal(t, times, stampsOf(t, d))
			require.Empty(t, *started)
		})
	}
}

// TestForceOverrulesThePolicyAndRecordsIt: the policy is evaluated whether or not a resume is forced.
func TestForceOverrulesThePolicyAndRecordsIt(t *testing.T) {
	o, d, started := closing(t, run.Failed)
	forced := Reopening{Force: true, Reason: "this once"}
	re, err := o.Resume(t.Context(), d, forced)
	require.NoError(t, err)
	require.Empty(t, re.Overruled)
	o.Settings.Policy.Agents = []string{"other"}
	_, err = o.Resume(t.Context(), d, Reopening{})
	var policy *PolicyError
	require.ErrorAs(t, err, &policy)
	require.ErrorContains(t, err, "--force --reason TEXT")
	re, err = o.Resume(t.Context(), d, forced)
	require.NoError(t, err)
	require.Equal(t, policy.Differences, re.Overruled)
	r := (*started)[1].Reopen
	require.True(t, r.Force)
	require.Equal(t, "this once", r.Reason)
	require.Equal(t, policy.Differences, r.Overruled)
	o.Settings.Policy.Forbid = []string{"force"}
	_, err = o.Resume(t.Context(), d, forced)
	require.ErrorContains(t, err, "policy.forbid has force")
	require.Len(t, *started, 2)
}

// TestRevertRebuildsACheckpoint that the store has with other bytes, and warns.
func TestRevertRebuildsACheckpoint(t *testing.T) {
	o, d, started := closing(t, run.Failed)
	s, err := store.Open(t.Context(), o.Settings.Store)
	require.NoError(t, err)
	defer s.Close()
	names, err := s.List(t.Context(), "checkpoints/r1/")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	require.NoError(t, s.Replace(t.Context(), names[0], []byte("{}")))
	back, err := o.Revert(t.Context(), d, Reverting{To: "cp-1"})
	require.NoError(t, err)
	require.Equal(t, "checkpoint cp-1 was damaged in the store and was rebuilt from the journal", back.Warning)
	require.Len(t, *started, 1)
	_, err = projector.LoadCheckpoint(t.Context(), blobs.Of(s), "r1", "cp-1")
	require.NoError(t, err)
}
