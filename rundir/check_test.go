package rundir_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestCheckDuringProjectionFindsNothing checks before every step of every write of a run.
func TestCheckDuringProjectionFindsNothing(t *testing.T) {
	s := newStory(t)
	histories()["without a revert"](s)
	d := claimed(t)
	checks, locked := 0, false
	reader := d
	d.Disk = disk.Disk{Hook: func(step disk.Step) error {
		if !locked { // the folder is made before the lock is acquired
			var err error
			locked, err = d.Locked()
			require.NoError(t, err)
		}
		if locked {
			checks++
			require.Empty(t, check(t, reader).Issues, "before %s %s", step.Op, step.Path)
		}
		return nil
	}}
	seq := int64(0)
	for _, b := range s.batches {
		project(t, d, s, b)
		locked = false
		r := check(t, reader)
		require.Empty(t, r.Issues, "between two batches")
		require.Greater(t, r.Snapshot.Seq, seq)
		seq = r.Snapshot.Seq
	}
	require.Greater(t, checks, 200)
}

// TestChecksBesideAWriterFindNothing lets both run at the same time, each as fast as it can.
func TestChecksBesideAWriterFindNothing(t *testing.T) {
	s, d := whole(t), claimed(t)
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
	d := claimed(t)
	last := len(s.batches) - 1
	project(t, d, s, s.batches[:last]...)
	once := sync.OnceFunc(func() { project(t, d, s, s.batches[last]) })
	r, err := rundir.Check(meanwhile{t.Context(), once}, d, rundir.CheckOptions{})
	require.NoError(t, err)
	require.Empty(t, r.Issues)
	require.Empty(t, check(t, d).Issues)
}

// TestEventsAheadOfMetaAreNotDamage replaces meta.json and state.json by those of one batch before, as a crash leaves
// them: the artifact and a checkpoint that the batch has replaced are further, and not wrong.
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
			s.revert(then)
			s.send()
			s.end(about(5), "ok", 1)
			s.checkpoint("cp-S1", 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.twoPasses()
			s.send()
			send(s)
			s.send()
			d := claimed(t)
			last := len(s.batches) - 1
			project(t, d, s, s.batches[:last]...)
			before := look(t, d)
			project(t, d, s, s.batches[last])
			after := look(t, d)
			require.Empty(t, check(t, d).Issues)
			write(t, d, rundir.MetaFile, before[rundir.MetaFile])
			write(t, d, rundir.StateFile, before[rundir.StateFile])
			require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))

			setKey(t, d, "task", `"another"`) // a repair does not build on what was changed
			repair(t, d, s.blobs)
			require.Empty(t, check(t, d).Issues)
			require.Equal(t, after[rundir.MetaFile], read(t, d, rundir.MetaFile))
		})
	}
}

// TestDirectoriesThatCannotBeChecked are errors, not findings. A run that was claimed and has not written is pending.
func TestDirectoriesThatCannotBeChecked(t *testing.T) {
	ctx := t.Context()
	_, err := rundir.Check(ctx, rundir.At(t.TempDir()), rundir.CheckOptions{})
	require.ErrorIs(t, err, rundir.ErrNoRun)

	d, _ := directoryOf(t, "paused")
	claimed := read(t, d, rundir.ClaimFile)
	write(t, d, rundir.ClaimFile, "{")
	_, err = rundir.Check(ctx, d, rundir.CheckOptions{})
	require.ErrorContains(t, err, rundir.ClaimFile)

	remove(t, d, rundir.ClaimFile) // as in a directory of another program
	_, err = rundir.Check(ctx, d, rundir.CheckOptions{})
	require.ErrorIs(t, err, rundir.ErrNoRun)
	require.ErrorContains(t, err, "it has events.jsonl, and no run.json")
	require.ErrorContains(t, err, "starter rebuild RUN-ID --output-dir "+d.Root)
	_, err = rundir.Repair(ctx, d, rundir.RepairOptions{Apply: true})
	require.ErrorIs(t, err, rundir.ErrNoRun)

	write(t, d, rundir.ClaimFile, claimed)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = rundir.Check(ended, d, rundir.CheckOptions{})
	require.ErrorIs(t, err, context.Canceled)

	setKey(t, d, "version", "99")
	_, err = rundir.Check(ctx, d, rundir.CheckOptions{})
	require.ErrorAs(t, err, new(*rundir.NewerError))

	d = rundir.At(t.TempDir())
	require.NoError(t, d.Take(claim()))
	r := check(t, d)
	require.Empty(t, r.Issues)
	require.Equal(t, run.Unknown, r.Snapshot.Status)
	require.Equal(t, run.Pending, r.EffectiveStatus.Status)
}

// TestUnknownVersionIsNotRepaired, also where its form looks like damage.
func TestUnknownVersionIsNotRepaired(t *testing.T) {
	for name, row := range map[string]struct{ file, from, to string }{
		"claim":              {rundir.ClaimFile, `"version": 1`, `"version": 2`},
		"shape of the claim": {rundir.ClaimFile, `"version": 1`, `"version": 2, "host": 7`},
		"meta":               {rundir.MetaFile, `"version": 1`, `"version": 2`},
		"shape of meta":      {rundir.MetaFile, `"version": 1`, `"version": 2, "events": 7`},
		"state":              {rundir.MetaFile, `"version": 2`, `"version": 3`},
		"earlier state":      {rundir.MetaFile, `"version": 2`, `"version": 1`},
	} {
		d, blobs := directoryOf(t, "paused")
		swapped(row.file, row.from, row.to)(t, d)
		before := look(t, d)
		_, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Apply: true, Blobs: blobs})
		var newer *rundir.NewerError
		require.ErrorAs(t, err, &newer, name)
		require.Equal(t, before, look(t, d), name)
	}
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
		d := claimed(t)
		write(t, d, rundir.EventsFile, strings.ReplaceAll(events, " ", "\n")+"\n")
		var messages []string
		for _, i := range check(t, d).Issues {
			if i.Code != rundir.FileDiffers {
				messages = append(messages, i.Message)
			}
		}
		require.Equal(t, []string{want}, messages, events)
	}
}

// FuzzCheck checks directories with any bytes in their files, and repairs them: a second repair changes nothing.
func FuzzCheck(f *testing.F) {
	asked := `{"seq":1,"kind":"run.start","payload":{"task":"t"}}` + "\n" +
		`{"seq":2,"kind":"phase.handoff_requested","payload":{"handoff_id":"h-1","phase":"plan"}}` + "\n"
	f.Add([]byte(`{"status":"done","phase_handoff":{"id":"h-1"}}`), []byte(asked),
		[]byte(`{"phase_handoff_pending":true,"phase_handoff_kind":"cfa"}`),
		[]byte(`{"handoff_id":"h-1","action":"halt"}`))
	f.Add([]byte(`{"version":1,"events":{"seq":2,"size":-1},"derived":[{"file":"traces.jsonl","size":-3}]}`),
		[]byte(asked), []byte(nil), []byte(`{}`))
	f.Add([]byte(`{"phase_handoff":{}} x`), []byte("{}\n\x00\n{\"seq\":\"7\"}\n{\"seq\":1e99}"), []byte(`[]`),
		[]byte(`null`))
	f.Fuzz(func(t *testing.T, meta, events, cross, decided []byte) {
		d := rundir.At(t.TempDir())
		for name, data := range map[string][]byte{
			rundir.MetaFile: meta, rundir.EventsFile: events, rundir.CrossFile: cross,
			"phase_handoff_decisions/1.json": decided, rundir.ClaimFile: []byte(`{"version":1,"run_id":"run-1"}`),
		} {
			if len(data) > 0 {
				write(t, d, name, string(data))
			}
		}
		ctx := context.Background()
		if _, err := rundir.Check(ctx, d, rundir.CheckOptions{}); err != nil {
			return
		}
		o := rundir.RepairOptions{Apply: true, Blobs: fakeBlobs{}}
		if res, err := rundir.Repair(ctx, d, o); err != nil || !res.Applied {
			return
		}
		before := look(t, d)
		res, err := rundir.Repair(ctx, d, o)
		require.NoError(t, err)
		require.False(t, res.Applied, "%+v", res)
		require.Equal(t, before, look(t, d))
	})
}

// TestCheckpointAfterTwoReverts: the first revert sets files aside, which the state of the next checkpoint counts;
// the second goes back to that one. Its directory is what was written, and an edit of its manifest is found as before.
func TestCheckpointAfterTwoReverts(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1)
	first := s.state
	s.pass(2)
	s.checkpoint("cp-S1", 2)
	s.revert(first)
	s.pass(2)
	s.checkpoint("cp-S1", 2)
	second := s.state
	s.pass(3)
	s.revert(second)
	s.pass(3)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	swapped(cpS1+"/manifest.json", `"atPassNumber": 2`, `"atPassNumber": 3`)(t, d)
	require.Equal(t, []rundir.Code{rundir.FileDiffers}, codesOf(check(t, d)))
}

// TestDamageIsReportedUntilItIsRepaired: every reader of the run gets the damage that the journal records, and whether
// it was repaired.
func TestDamageIsReportedUntilItIsRepaired(t *testing.T) {
	d, blobs := directoryOf(t, "damaged and stored")
	now, err := d.Now()
	require.NoError(t, err)
	require.Len(t, now.Damage, 1)
	require.False(t, now.Damage[0].Repaired)
	require.EqualValues(t, 3, now.Damage[0].Line)
	require.Contains(t, read(t, d, rundir.ErrorsLog), "events.jsonl, line 3, is not what was written")
	require.Contains(t, read(t, d, rundir.TextLog), "Journal damaged: events.jsonl, line 3,")

	require.True(t, repair(t, d, blobs).Applied)
	now, err = d.Now()
	require.NoError(t, err)
	require.True(t, now.Damage[0].Repaired)
	r := check(t, d)
	require.Equal(t, []rundir.Code{rundir.DamageRecorded}, codesOf(r))
	require.True(t, r.OK)
}

// TestRepairLeavesHardLinkedFilesAlone: a received directory may have names of files elsewhere.
func TestRepairLeavesHardLinkedFilesAlone(t *testing.T) {
	for _, name := range []string{rundir.LockFile, rundir.EventsFile} {
		d, _ := directoryOf(t, "paused")
		mine := filepath.Join(t.TempDir(), "mine")
		text := []byte("my words\n")
		if name == rundir.EventsFile {
			text = append([]byte(read(t, d, name)), "torn"...)
		}
		require.NoError(t, os.WriteFile(mine, text, 0o600))
		_ = os.Remove(d.Path(name))
		remove(t, d, rundir.MetaFile) // there is something to repair
		require.NoError(t, os.Link(mine, d.Path(name)))
		_, err := rundir.Repair(t.Context(), d, rundir.RepairOptions{Apply: true, Blobs: fakeBlobs{}})
		require.ErrorContains(t, err, d.Path(name)+" is a hard link: its file has another name too; remove it")
		left, err := os.ReadFile(mine)
		require.NoError(t, err)
		require.Equal(t, string(text), string(left), name)
	}
}
