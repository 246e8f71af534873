package fsck_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func second() rundir.Owner {
	return rundir.Owner{Epoch: 2, RunID: "run-1", Execution: "e2", Host: "h", OpenedAt: moment(99)}
}

// failed is a run of two passes that an epoch may continue.
func failed(t *testing.T) *story {
	s := newStory(t)
	s.twoPasses()
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Failed})
	s.send()
	return s
}

// TestTakeOver: the start that finds the directory where it thinks it is gets it; whoever comes later, or from an
// earlier epoch, is refused.
func TestTakeOver(t *testing.T) {
	ctx := context.Background()
	s := failed(t)
	d := written(t, s)
	end := run.Tail{Seq: int64(len(s.lines)), Chain: run.Chain("").Over(s.lines)}
	before := look(t, d)
	var stale *fsck.StaleError
	elsewhere := run.Tail{Seq: end.Seq - 1, Chain: run.Chain("").Over(s.lines[:end.Seq-1])}
	require.ErrorAs(t, fsck.TakeOver(ctx, d, second(), elsewhere), &stale)
	require.ErrorContains(t, stale, d.Root+" is not this start's: it ends at event ")
	require.ErrorContains(t, stale, "not at event")
	require.ErrorAs(t, fsck.TakeOver(ctx, d, second(), run.Tail{Seq: end.Seq, Chain: "another"}), &stale)
	require.Equal(t, before, look(t, d), "who is refused writes nothing")

	require.NoError(t, fsck.TakeOver(ctx, d, second(), end))
	require.NoError(t, fsck.TakeOver(ctx, d, second(), elsewhere),
		"the owner may ask again, wherever it ends: it was reset")
	rival := second()
	rival.Execution = "e3"
	require.ErrorAs(t, fsck.TakeOver(ctx, d, rival, end), &stale)
	require.ErrorContains(t, stale, "epoch 2 is that of execution e2")
	require.ErrorContains(t, stale, d.Root+" is not this start's: epoch 2 ")
	require.False(t, stale.Done)
	earlier := second()
	earlier.Epoch = 1
	require.ErrorAs(t, fsck.TakeOver(ctx, d, earlier, end), &stale)
	require.ErrorContains(t, stale, "epoch 2 is that of execution e2")

	claimed := claim()
	claimed.Cluster, claimed.Embedded = "c1", true
	require.Equal(t, claimed, d.CurrentClaim(claimed), "an owner of an earlier version does not say where it is")
	moved := second()
	moved.Epoch, moved.Host, moved.Cluster = 3, "h2", "c2"
	require.NoError(t, fsck.TakeOver(ctx, d, moved, end))
	seat := claimed
	seat.Host, seat.Cluster, seat.Embedded = "h2", "c2", false
	require.Equal(t, seat, d.CurrentClaim(claimed))

	late := projector.Batch{Epoch: 1, First: end.Seq + 1, Prev: end.Chain, Lines: []string{`{"seq":1}`}}
	got, err := d.Project(ctx, s.blobs, late)
	require.NoError(t, err)
	require.Equal(t, projector.Projected{Outcome: run.ProjectionStale, Tail: end}, got,
		"whoever is left of the epoch before can write nothing more")
}

// TestCompletedRunRefusesNewEpoch: completed is final from the disk too.
func TestCompletedRunRefusesNewEpoch(t *testing.T) {
	s := whole(t)
	d := written(t, s)
	before := look(t, d)
	var stale *fsck.StaleError
	require.ErrorAs(t, fsck.TakeOver(t.Context(), d, second(), tailAt(s.lines, len(s.lines))), &stale)
	require.EqualError(t, stale, d.Root+" is not this start's: its run is done, and done is final: fork it or follow it "+
		"up. Run: starter status "+d.Root)
	require.True(t, stale.Done)
	require.Equal(t, before, look(t, d))
}

// TestOwnerOfNewEpochIsNotDamage: owner.json is written before the first event of its epoch. Afterwards it does not
// change.
func TestOwnerOfNewEpochIsNotDamage(t *testing.T) {
	s := failed(t)
	d := written(t, s)
	require.NoError(t, fsck.TakeOver(t.Context(), d, second(), tailAt(s.lines, len(s.lines))))
	require.Empty(t, check(t, d).Issues)

	s.add(run.KindRunResumed, run.RunResumed{Epoch: 2, From: run.Failed})
	b := batch(s.lines, len(s.lines), len(s.lines))
	b.Epoch = 2
	project(t, d, s, b)
	require.Empty(t, check(t, d).Issues)
	const changed = "owner.json was changed: its sha-256 is "
	for _, row := range []struct{ text, message string }{
		{`{"epoch": 1}`, changed}, {`{"epoch": 2}`, changed}, {"{", changed}, {"", "owner.json is missing"},
	} {
		if write(t, d, layout.OwnerFile, row.text); row.text == "" {
			remove(t, d, layout.OwnerFile)
		}
		found := check(t, d).Issues
		require.Len(t, found, 1, row.text)
		require.Equal(t, fsck.ClaimDamaged, found[0].Code)
		require.Contains(t, found[0].Message, row.message)
	}
}

// TestMetaNamesALostClaim: a directory without run.json is one of Passbook if its meta.json has what no other program
// writes.
func TestMetaNamesALostClaim(t *testing.T) {
	for meta, lost := range map[string]bool{
		`{"status": "running", "version": 1, "run_id": "r-1", "events": {"chain": "x"}}`:                     true,
		`{"status": "running", "version": 1, "run_id": "r-1", "thread_id": "r-2", "events": {"chain": "x"}}`: true,
		`{"status": "running", "version": 1, "run_id": "r-1", "events": {}}`:                                 false,
		`{"status": "running", "version": 1, "thread_id": "r-1", "events": {"chain": "x"}}`:                  false,
		`{"status": "running", "epoch": 1, "run_id": "r-1", "events": {"chain": "x"}}`:                       false,
		`{"status": "running", "version": "1", "run_id": "r-1", "events": {"chain": "x"}}`:                   false,
	} {
		d, _ := madeUp(linesOf(evStart), meta)(t)
		if found := check(t, d).Issues; lost {
			require.Len(t, found, 1, meta)
			require.Equal(t, fsck.ClaimDamaged, found[0].Code)
			require.Equal(t, "run.json of run r-1 is missing, or is not one of Passbook's", found[0].Message)
			require.Contains(t, found[0].Hint, "starter rebuild RUN-ID ")
		} else {
			require.Empty(t, found, meta)
		}
	}
}

// TestImport takes the store away: the directory alone gives the run what it needs to go on.
func TestImport(t *testing.T) {
	ctx := context.Background()
	s := whole(t)
	d := written(t, s)
	start, err := d.First()
	require.NoError(t, err)
	n, err := projector.Import(ctx, d.Dir, s.blobs, start, s.state)
	require.NoError(t, err)
	require.Zero(t, n, "nothing was missing")

	empty := fakeBlobs{}
	n, err = projector.Import(ctx, d.Dir, empty, start, s.state)
	require.NoError(t, err)
	require.Positive(t, n)
	for _, digest := range []string{start.Plan, start.Inputs, s.state.Notes[0].Whole.Digest,
		s.state.Replies[0].Reply.Digest} {
		require.Equal(t, s.blobs[digest], empty[digest])
	}

	one := maps.Clone(s.blobs)
	delete(one, start.Plan)
	require.NoError(t, os.Remove(d.Path(layout.PlanFile)))
	_, err = projector.Import(ctx, d.Dir, one, start, s.state)
	var missing *projector.MissingError
	require.ErrorAs(t, err, &missing)
	require.Len(t, missing.Blobs, 1)
	require.Contains(t, missing.Blobs[0], "the plan")
}

// TestNow reads where the run stands at every moment of its life, whatever meta.json has seen of it.
func TestNow(t *testing.T) {
	s := whole(t)
	for n := 0; n < len(s.lines); n += 9 {
		d := projector.At(t.TempDir())
		require.NoError(t, d.Take(claim()))
		project(t, d, s, batch(s.lines, 1, n+1))
		all := strings.Join(s.lines, "\n") + "\n"
		require.NoError(t, os.WriteFile(d.Path(layout.EventsFile), []byte(all), 0o600))
		now, err := d.Now()
		require.NoError(t, err)
		require.Equal(t, s.state, now.State, "meta.json stands at %d", n+1)
		require.EqualValues(t, len(s.lines)-n-1, now.Lag)
		require.Equal(t, run.Tail{Seq: int64(len(s.lines)), Chain: run.Chain("").Over(s.lines)}, now.Tail)
		require.NoError(t, now.Why)
	}
	d := written(t, s)
	require.NoError(t, os.WriteFile(d.Path(layout.MetaFile), []byte("{"), 0o600))
	now, err := d.Now()
	require.NoError(t, err)
	require.Equal(t, s.state, now.State)
	require.ErrorIs(t, now.Why, layout.ErrDamaged)

	now, err = projector.At(t.TempDir()).Now()
	require.NoError(t, err)
	require.Zero(t, now.Tail)
	require.NoError(t, now.Why)
}

// TestSummary counts what the records list, at every batch, whether or not state.json is written with it.
func TestSummary(t *testing.T) {
	for name, full := range map[string]int{"every batch": 0, "checkpoints only": 1} {
		t.Run(name, func(t *testing.T) {
			s := whole(t)
			d := projector.At(t.TempDir())
			d.FullRecords = full
			for _, b := range s.batches {
				project(t, d, s, b)
				m, err := d.Meta()
				require.NoError(t, err)
				book, err := records.State(d.Dir)
				require.NoError(t, err)
				require.Equal(t, counts(book), m.Summary, "event %d", m.Events.Seq)
			}
		})
	}
}

// counts is what the summary must say of the records.
func counts(b rundir.PipelineState) rundir.Summary {
	s := rundir.Summary{CurrentPhase: b.CurrentPhase, PhaseReason: b.PhaseReason, Threshold: b.PAScoreThreshold,
		MaxCycles: b.MaxPACycles}
	for _, e := range b.ErrorHistory {
		if e.Recovered {
			s.Recovered++
		} else {
			s.Unrecovered++
		}
	}
	if s.Checkpoints = len(b.Checkpoints); s.Checkpoints > 0 {
		s.FirstCheckpoint, s.LastCheckpoint = &b.Checkpoints[0].ID, &b.Checkpoints[s.Checkpoints-1].ID
	}
	for _, r := range b.PassRecords {
		s.LastPasses = append(s.LastPasses, r)
	}
	slices.SortFunc(s.LastPasses, func(x, y rundir.PassRecord) int { return x.GlobalPassNumber - y.GlobalPassNumber })
	s.LastPasses = s.LastPasses[max(0, len(s.LastPasses)-3):]
	return s
}
