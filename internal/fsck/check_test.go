package fsck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestCheckDuringProjectionFindsNothing checks before every single step of every write of a run: that is all
// that a check beside a live writer can come upon.
func TestCheckDuringProjectionFindsNothing(t *testing.T) {
	s := whole(t)
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(claim()))
	checks, locked := 0, false
	reader := d
	d.Disk = durable.Disk{Hook: func(step durable.Step) error {
		if !locked { // the folder is made before the lock is taken
			locked = durableHeld(t, d)
		}
		if locked {
			checks++
			require.Empty(t, check(t, reader).Issues, "before %s %s", step.Op, step.Path)
		}
		return nil
	}}
	for _, b := range s.batches {
		project(t, d, s, b)
		locked = false
		require.Empty(t, check(t, reader).Issues, "between two batches")
	}
	require.Greater(t, checks, 500)
}

func durableHeld(t *testing.T, d projector.Dir) bool {
	held, err := d.Locked()
	require.NoError(t, err)
	return held
}

// TestChecksBesideAWriterFindNothing lets both run at the same time, each as fast as it can.
func TestChecksBesideAWriterFindNothing(t *testing.T) {
	s := whole(t)
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(claim()))
	var writer sync.WaitGroup
	defer writer.Wait()
	over := make(chan struct{})
	writer.Go(func() {
		defer close(over)
		for _, b := range s.batches {
			p, err := d.Project(context.Background(), s.blobs, b)
			if err != nil || p.Outcome != run.ProjectionWritten {
				t.Errorf("projection: %s, %v", p.Outcome, err)
			}
		}
	})
	var seq int64
	for done := false; !done; {
		select {
		case <-over:
			done = true
		default:
		}
		r := check(t, d)
		require.Empty(t, r.Issues)
		if r.MetaStatus == "" {
			continue // there is no meta.json yet: all lines count
		}
		require.GreaterOrEqual(t, r.Snapshot.Seq, seq, "a later check sees no less")
		seq = r.Snapshot.Seq
	}
	require.EqualValues(t, len(s.lines), seq)
}

// meanwhile is a context that does something when it is first asked for its error: a check asks between two events.
type meanwhile struct {
	context.Context
	do func()
}

func (m meanwhile) Err() error {
	m.do()
	return m.Context.Err()
}

// TestProjectionEndingDuringCheckIsNotAFinding lets a whole projection happen after a check has read meta.json: no
// process holds the lock when the check asks, and what it read is not a contradiction, since meta.json has changed.
func TestProjectionEndingDuringCheckIsNotAFinding(t *testing.T) {
	s := newStory(t)
	s.twoPasses()
	s.begin(about(3), 1)
	s.end(about(3), "ok", 1)
	s.send()
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, d.Take(claim()))
	last := len(s.batches) - 1
	project(t, d, s, s.batches[:last]...)
	project := sync.OnceFunc(func() {
		p, err := d.Project(t.Context(), s.blobs, s.batches[last])
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
	})
	r, err := fsck.Check(meanwhile{t.Context(), project}, d.Dir, fsck.CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, r.Issues)
	require.Empty(t, check(t, d).Issues)
}

// TestEventsAheadOfMetaAreNotDamage takes meta.json and state.json back by one batch, as a crash leaves them: the
// artifact and a checkpoint that the batch has written again are further, and not wrong.
func TestEventsAheadOfMetaAreNotDamage(t *testing.T) {
	for name, send := range map[string]func(*story){
		"an artifact": func(s *story) {
			s.begin(about(3), 1)
			s.end(about(3), "ok", 1)
		},
		"a checkpoint, made again after a revert": func(s *story) {
			then := s.state
			s.begin(about(3), 1)
			s.end(about(3), "ok", 1)
			s.send()
			s.add(run.KindRunReverted, run.RunReverted{To: then.Seq, Cause: "revert",
				Abandoned: run.Range{First: then.Seq + 1, Last: s.state.Seq}, State: &then})
			s.send()
			s.end(about(5), "ok", 1)
			s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 5})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.twoPasses()
			s.send()
			send(s)
			s.send()
			d := projector.At(filepath.Join(t.TempDir(), "run"))
			require.NoError(t, d.Take(claim()))
			last := len(s.batches) - 1
			project(t, d, s, s.batches[:last]...)
			before := look(t, d)
			project(t, d, s, s.batches[last])
			after := look(t, d)
			require.Empty(t, check(t, d).Issues)
			write(t, d, layout.MetaFile, before[layout.MetaFile])
			write(t, d, layout.StateFile, before[layout.StateFile])
			require.Equal(t, []fsck.Code{fsck.DerivedFileBehind}, codesOf(check(t, d)))

			setKey(t, d, "task", `"another"`) // what is behind is not gone on from before it is right
			_, err := fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Blobs: s.blobs, Now: noon})
			require.NoError(t, err)
			require.Empty(t, check(t, d).Issues)
			require.Equal(t, after[layout.MetaFile], look(t, d)[layout.MetaFile])
		})
	}
}

// TestInterruptedProjectionIsReportedAndRepaired stops a projection before some of its steps, as a crash does. What it
// leaves is a finding once no process holds the lock, and a repair ends it; the next projections give the directory
// of an undisturbed run.
func TestInterruptedProjectionIsReportedAndRepaired(t *testing.T) {
	s := whole(t)
	cut := len(s.batches) - 2
	want := look(t, written(t, s))
	expected := map[fsck.Code]bool{
		fsck.DerivedFileBehind: true, fsck.StreamTornTail: true, fsck.CheckpointDamaged: true,
	}
	named, last := 0, false
	for k := 0; !last; k += 7 {
		d := projector.At(filepath.Join(t.TempDir(), "run"))
		require.NoError(t, d.Take(claim()))
		project(t, d, s, s.batches[:cut]...)
		n := -1
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if n++; n >= k {
				return errStop
			}
			return nil
		}}
		_, err := d.Project(context.Background(), s.blobs, s.batches[cut])
		last = err == nil
		d.Disk = durable.Disk{}
		r := check(t, d)
		for _, i := range r.Issues {
			require.True(t, expected[i.Code], "stopped before step %d: %+v", k, i)
			named++
		}
		_, err = fsck.Repair(context.Background(), d, fsck.RepairOptions{Apply: true, Blobs: s.blobs, Now: noon})
		require.NoError(t, err)
		require.Empty(t, check(t, d).Issues, "stopped before step %d", k)
		project(t, d, s, s.batches[cut:]...)
		got := look(t, d)
		for name := range got {
			if strings.HasPrefix(name, "run_state_repairs") || strings.HasPrefix(name, "_orchestrator/torn") {
				delete(got, name)
			}
		}
		same(t, want, got, fmt.Sprintf("stopped before step %d", k))
	}
	require.Positive(t, named)
}

// TestReferenceRuns folds two runs that another program has recorded.
func TestReferenceRuns(t *testing.T) {
	none := []string{}
	for name, want := range map[string]run.Snapshot{
		"feature_done": {
			Status: run.Done, Seq: 34, Terminal: true, FailedPhases: none, SeenHandoffIDs: none,
			SeenPhases: []string{"plan", "validate_plan", "implement", "review_changes", "repair_changes",
				"final_acceptance", "Pipeline complete"},
			CompletedPhases: []string{"plan", "validate_plan", "implement", "review_changes", "repair_changes",
				"final_acceptance"},
		},
		"planning_retry_then_continue": {
			Status: run.Done, Seq: 28, Terminal: true, FailedPhases: none,
			SeenPhases:      []string{"plan", "validate_plan", "Pipeline complete"},
			CompletedPhases: []string{"plan", "validate_plan"},
			SeenHandoffIDs:  []string{"validate_plan:plan_round:1", "validate_plan:plan_round:2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := projector.At(filepath.Join("..", "..", "rundir", "testdata", "reference", name))
			require.True(t, d.Foreign())
			r := check(t, d)
			require.Equal(t, want, r.Snapshot)
			require.True(t, r.OK)
			require.Empty(t, r.Issues)
			require.Equal(t, "done", r.MetaStatus)
			require.Equal(t, run.EffectiveStatus{Status: run.Done, Recorded: run.Done, Liveness: run.LiveUnknown},
				r.EffectiveStatus)

			now, err := d.Now()
			require.NoError(t, err)
			require.Equal(t, want, now.Snapshot, "what status says")
		})
	}
}

// TestReferenceRunHalfWay folds the beginnings of a run that another program recorded; its meta.json is made to say the
// same.
func TestReferenceRunHalfWay(t *testing.T) {
	raw, err := os.ReadFile("../../rundir/testdata/reference/planning_retry_then_continue/events.jsonl")
	require.NoError(t, err)
	lines := strings.SplitAfter(string(raw), "\n")
	first, plan := "validate_plan:plan_round:1", "validate_plan"
	for _, row := range []struct {
		lines  int
		meta   string
		status run.Status
		active *string
		codes  []fsck.Code
	}{
		{1, `{"status": "running"}`, run.Running, nil, nil},
		{10, `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "` + first + `"}}`, run.AwaitingPhaseHandoff,
			&first,
			[]fsck.Code{fsck.ActiveHandoffWithoutDecision}},
		{12, `{"status": "interrupted", "phase_handoff": {"id": "` + first + `"}}`, run.Interrupted, &first,
			[]fsck.Code{fsck.InterruptedWithActiveHandoff, fsck.ActiveHandoffWithoutDecision}},
	} {
		t.Run(fmt.Sprint(row.lines, " lines"), func(t *testing.T) {
			d, _ := madeUp(strings.Join(lines[:row.lines], ""), row.meta)(t)
			r := check(t, d)
			require.Equal(t, row.status, r.Snapshot.Status)
			require.Equal(t, row.active, r.Snapshot.ActiveHandoffID)
			if row.active != nil {
				require.Equal(t, &plan, r.Snapshot.ActiveHandoffPhase)
			}
			require.Equal(t, row.codes, codesOf(r))
		})
	}
}

// TestCheckWithoutWorkflow looks at the one injury that is not on the disk.
func TestCheckWithoutWorkflow(t *testing.T) {
	for _, row := range []struct {
		body  string
		live  run.Liveness
		shown run.Status
		away  bool
	}{
		{"running", run.LiveOpen, run.Running, false},
		{"running", run.LiveClosed, run.Interrupted, true},
		{"running", run.LiveGone, run.Interrupted, true},
		{"running", run.LiveUnknown, run.Running, false},
		{"running", "", run.Running, false},
		{"paused", run.LiveGone, run.Interrupted, true},
		{"done", run.LiveClosed, run.Done, false},
		{"done", run.LiveGone, run.Done, false},
	} {
		t.Run(fmt.Sprintf("%s, %s", row.body, row.live), func(t *testing.T) {
			d, blobs := bodyOf(t, row.body)
			stands := run.EffectiveStatus{Liveness: row.live, Detail: "so it is"}
			r, err := fsck.Check(context.Background(), d.Dir, fsck.CheckOptions{EffectiveStatus: stands})
			require.NoError(t, err)
			require.Equal(t, row.shown, r.EffectiveStatus.Status)
			require.Equal(t, "so it is", r.EffectiveStatus.Detail)
			require.Equal(t, !row.away, r.OK)
			if !row.away {
				require.Empty(t, r.Issues)
				return
			}
			require.Equal(t, []fsck.Code{fsck.RunningWithoutLiveWorkflow}, codesOf(r))
			require.Equal(t, fmt.Sprintf("the run is recorded as %s, and its workflow is %s", row.body, row.live),
				r.Issues[0].Message)
			require.Equal(t, "starter resume "+d.Root, r.Issues[0].Hint)
			before := look(t, d)
			res, err := fsck.Repair(context.Background(), d,
				fsck.RepairOptions{Apply: true, EffectiveStatus: stands, Blobs: blobs, Now: noon})
			require.NoError(t, err)
			require.False(t, res.Applied, "only the next epoch may say that it was interrupted")
			require.Equal(t, before, look(t, d))
		})
	}
}

func bodyOf(t *testing.T, name string) (projector.Dir, fakeBlobs) {
	t.Helper()
	for _, b := range bodies() {
		if b.name == name {
			return b.write(t)
		}
	}
	require.Fail(t, "no such body", name)
	return projector.Dir{}, nil
}

// TestCheckOfEmptyDirectory is an error, not a finding.
func TestCheckOfEmptyDirectory(t *testing.T) {
	_, err := fsck.Check(context.Background(), projector.At(t.TempDir()).Dir, fsck.CheckOptions{})
	require.ErrorIs(t, err, rundir.ErrNoRun)

	d, _ := bodyOf(t, "paused")
	write(t, d, layout.ClaimFile, "{")
	_, err = fsck.Check(context.Background(), d.Dir, fsck.CheckOptions{})
	require.ErrorContains(t, err, layout.ClaimFile)

	d, _ = bodyOf(t, "paused")
	setKey(t, d, "version", "99")
	_, err = fsck.Check(context.Background(), d.Dir, fsck.CheckOptions{})
	require.ErrorContains(t, err, "version 99")

	d, _ = bodyOf(t, "paused")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = fsck.Check(ctx, d.Dir, fsck.CheckOptions{})
	require.ErrorIs(t, err, context.Canceled)

	fresh := projector.At(t.TempDir())
	require.NoError(t, fresh.Take(claim()))
	r := check(t, fresh)
	require.Empty(t, r.Issues, "a run that was claimed and has not written yet")
	require.Equal(t, run.Unknown, r.Snapshot.Status)
	require.Equal(t, run.Pending, r.EffectiveStatus.Status)
}

// TestHintsCanBeFollowed: what no repair mends is not sent to one, and commands name the directory.
func TestHintsCanBeFollowed(t *testing.T) {
	d, _ := bodyOf(t, "paused")
	remove(t, d, layout.MetaFile)
	require.Equal(t, "starter repair-state "+d.Root+" --apply", check(t, d).Issues[0].Hint)

	spaced := d.Root + " x"
	require.NoError(t, os.Rename(d.Root, spaced))
	require.Equal(t, "starter repair-state '"+spaced+"' --apply", check(t, projector.At(spaced)).Issues[0].Hint)

	d, _ = bodyOf(t, "reference, done")
	setKey(t, d, "status", `"running"`)
	require.Equal(t, "starter repair-state "+d.Root+" --apply", check(t, d).Issues[0].Hint)

	d, _ = bodyOf(t, "reference, asking")
	setKey(t, d, "status", `"paused"`)
	r := check(t, d)
	require.Equal(t, fsck.StatusMismatch, r.Issues[0].Code)
	require.Contains(t, r.Issues[0].Hint, "the program that wrote the directory")
}

// TestWrongNumbersAreShown names each line once, and checks the numbering of the lines after it.
func TestWrongNumbersAreShown(t *testing.T) {
	for events, want := range map[string]string{
		`{"seq":1} {"seq":2} {"seq":5} {"seq":6}`: "numbers are missing before, or " +
			"in: line 3 of events.jsonl",
		`{"seq":1} {"seq":2} {"no":3} {"seq":4}`: "numbers are missing before, or " +
			"in: line 3 of events.jsonl",
		`{"seq":1} {"seq":2} {"seq":1} {"seq":2} {"seq":3}`: "the number was there before: line " +
			"3, 4 of events.jsonl",
		`{"seq":1} x x {"seq":4}`: "not a JSON object: line 2, 3 of events.jsonl",
		`{"seq":1} {"seq":1} {"seq":1} {"seq":1} {"seq":1} {"seq":1} {"seq":2}`: "the number was there before: line " +
			"2, 3, 4 and 2 more of events.jsonl",
	} {
		d, _ := madeUp(strings.ReplaceAll(events, " ", "\n")+"\n", `{"status":"unknown"}`)(t)
		r := check(t, d)
		require.Len(t, r.Issues, 1, events)
		require.Equal(t, want, r.Issues[0].Message)
	}
}

// FuzzCheck gives any bytes for the files of a directory: a check says something, or what it could not read, and a
// repair is done once.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"status":"done","phase_handoff":{"id":"h-1"}}`), []byte(askedLines),
		[]byte(`{"phase_handoff_pending":true,"phase_handoff_kind":"cfa"}`),
		[]byte(`{"handoff_id":"h-1","action":"halt"}`), false)
	f.Add([]byte(`{"version":1,"events":{"seq":2,"size":-1},"derived":[{"file":"traces.jsonl","size":-3}]}`),
		[]byte(askedLines), []byte(nil), []byte(`{}`), true)
	f.Add([]byte(`{"phase_handoff":{}} x`), []byte("{}\n\x00\n{\"seq\":\"7\"}\n{\"seq\":1e99}"), []byte(`[]`),
		[]byte(`null`), true)
	f.Fuzz(func(t *testing.T, meta, events, cross, decided []byte, own bool) {
		d := projector.At(t.TempDir())
		require.NoError(t, os.Mkdir(d.Path("phase_handoff_decisions"), 0o755))
		for name, data := range map[string][]byte{
			layout.MetaFile: meta, layout.EventsFile: events, "cross_checkpoint.json": cross,
			"phase_handoff_decisions/1.json": decided,
		} {
			if len(data) > 0 {
				require.NoError(t, os.WriteFile(d.Path(name), data, 0o600))
			}
		}
		if own {
			require.NoError(t, os.WriteFile(d.Path(layout.ClaimFile), []byte("{}"), 0o600))
		}
		ctx := context.Background()
		if _, err := fsck.Check(ctx, d.Dir, fsck.CheckOptions{}); err != nil {
			return
		}
		o := fsck.RepairOptions{Apply: true, Blobs: fakeBlobs{}, Now: noon}
		if res, err := fsck.Repair(ctx, d, o); err != nil || !res.Applied {
			return
		}
		before := look(t, d)
		res, err := fsck.Repair(ctx, d, o)
		require.NoError(t, err)
		require.False(t, res.Applied, "%+v", res)
		require.Equal(t, before, look(t, d))
	})
}

// BenchmarkCheck checks a run of a hundred thousand events.
func BenchmarkCheck(b *testing.B) {
	s := newStory(b)
	s.start()
	for i := 1; len(s.lines) < 100_000; i++ { // nothing that leaves files of its own: a check does not read those
		s.add(run.KindPhaseEnd, run.PhaseEnd{Key: "write", Title: "Write", Outcome: "ok", Round: i,
			Next: &run.Place{Round: i + 1}})
		s.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: i + 1})
		s.add(run.KindDecisionRefused, run.DecisionRefused{Verb: "pause",
			Reason: strings.Repeat("the run rests already; ", 10), By: "somebody"})
	}
	s.send()
	d := projector.At(b.TempDir())
	require.NoError(b, d.Take(claim()))
	project(b, d, s, batch(s.lines, 1, len(s.lines)))
	size, err := os.Stat(d.Path(layout.EventsFile))
	require.NoError(b, err)
	b.SetBytes(size.Size())
	b.ResetTimer()
	for b.Loop() {
		r, err := fsck.Check(context.Background(), d.Dir, fsck.CheckOptions{})
		require.NoError(b, err)
		require.True(b, r.OK, "%+v", r.Issues)
	}
	b.ReportMetric(float64(len(s.lines))*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// TestCheckpointAfterTwoReverts: the first revert sets files aside, which the state of the next checkpoint counts;
// the second goes back to that one. Its directory is what was written, and an edit of its manifest is found as before.
func TestCheckpointAfterTwoReverts(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1)
	first := s.state
	s.pass(2)
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2})
	s.revert(first)
	s.pass(2)
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 2})
	second := s.state
	s.pass(3)
	s.revert(second)
	s.pass(3)
	s.send()
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	manifest := "_orchestrator/checkpoints/cp-S1/manifest.json"
	write(t, d, manifest, strings.Replace(look(t, d)[manifest], `"atPassNumber": 2`, `"atPassNumber": 3`, 1))
	require.Equal(t, []fsck.Code{fsck.CheckpointDamaged}, codesOf(check(t, d)))
}
