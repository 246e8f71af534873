package rundir

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestBoundaries: which states are the last ones before a pass or a round.
func TestBoundaries(t *testing.T) {
	between := run.State{Rounds: 1, Passes: run.PassCount{LastSettled: 4, Total: 4, Invalid: 3}}
	left := between
	left.Passes.Total = 5
	for id, want := range map[string]struct{ between, left bool }{"pass-4": {}, "pass-5": {left: true},
		"round-2": {between: true}, "round-1": {}, "cycle-2": {between: true}} {
		at, is := boundary(id)
		require.True(t, is, id)
		require.Equal(t, want.between, at(between), id)
		require.Equal(t, want.left, at(left), "%s, and a pass is left", id)
	}
	for _, id := range []string{"pass-0", "pass-x", "pass", "step-1"} {
		_, is := boundary(id)
		require.False(t, is, id)
	}
}

// checkpoint is a stored checkpoint.
func (s namedStore) checkpoint(t *testing.T, id string, seq int64) run.Checkpoint {
	t.Helper()
	c := run.Checkpoint{Version: run.CheckpointVersion, RunID: "r", ID: id, Seq: seq,
		State: run.State{Version: run.StateVersion, RunID: "r", Seq: seq}}
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	s.names[checkpointName(c, raw)] = raw
	return c
}

// TestNamesOfCheckpoints: checkpoints are listed in the order of their events, and an unknown name is answered with the
// names that exist.
func TestNamesOfCheckpoints(t *testing.T) {
	s := newNamedStore(&writer{t: t, store: blobStore{}})
	for seq, id := range map[int64]string{5: "cp-5", 10: "cp-v1.2", 12: "cp-12", 20: "cp-S1", 31: "cp-S1", 34: "cp-34"} {
		s.checkpoint(t, id, seq)
	}
	s.names["checkpoints/r/7.x"], s.names["checkpoints/r/other"], s.names["checkpoints/r/x.y.z"] = nil, nil, nil
	s.names["checkpoints/other/000000000001.sum.cp-1"] = nil
	marks, err := Marks(t.Context(), s, "r")
	require.NoError(t, err)
	var ids []string
	for _, m := range marks {
		ids = append(ids, m.ID)
	}
	require.Equal(t, []string{"cp-5", "cp-v1.2", "cp-12", "cp-S1", "cp-S1", "cp-34"}, ids)
	for id, want := range map[string][]string{"cp-11": {"cp-v1.2", "cp-12"}, "cp-1": {"cp-5"}, "cp-4": {"cp-5"},
		"cp-5": {"cp-5", "cp-v1.2"}, "cp-10": {"cp-v1.2", "cp-12"}, "cp-99": {"cp-34"}, "11": nil, "cp-x": nil} {
		require.Equal(t, want, near(marks, id), id)
	}
	for id, want := range map[string]int64{"cp-S1": 31, "cp-20": 20, "cp-v1.2": 10, "cp-5": 5} {
		c, err := LoadCheckpoint(t.Context(), s, "r", id)
		require.NoError(t, err, id)
		require.Equal(t, want, c.Seq, id)
	}
	_, err = LoadCheckpoint(t.Context(), s, "r", "x")
	require.Equal(t, &NoCheckpointError{RunID: "r", ID: "x", Known: []string{"cp-v1.2", "cp-S1"}}, err)
	for want, e := range map[string]NoCheckpointError{"run r has no checkpoint x, and no named one at all": {},
		"run r has no checkpoint x; the nearest one is a":                        {Near: []string{"a"}, Known: []string{"k"}},
		"run r has no checkpoint x; the nearest ones are a and b":                {Near: []string{"a", "b"}},
		"run r has no checkpoint x: there are a (and cp-<seq> after every step)": {Known: []string{"a"}}} {
		e.RunID, e.ID = "r", "x"
		require.EqualError(t, &e, want)
	}
}

// TestRestoredCheckpoints: a checkpoint that the store has lost or has with other bytes is stored again from the
// journal.
func TestRestoredCheckpoints(t *testing.T) {
	w := working(t)
	journal, err := CheckpointsOf(w.lines)
	require.NoError(t, err)
	want, err := FindCheckpoint(t.Context(), journal, "r", "cp-S1")
	require.NoError(t, err)
	require.Equal(t, int64(9), want.Seq)
	raw, err := json.Marshal(want)
	require.NoError(t, err)
	name := checkpointName(want, raw)
	require.Equal(t, "checkpoints/r/000000000009."+disk.Digest(raw)[:16]+".cp-S1", name)
	const again = " the store and was rebuilt from the journal"
	for what, row := range map[string]struct {
		text, warning string
	}{
		"stored":  {string(raw), ""},
		"missing": {"", "checkpoint cp-S1 was missing from" + again},
		"damaged": {"torn", "checkpoint cp-S1 was damaged in" + again},
	} {
		s := newNamedStore(w)
		if row.text != "" {
			s.names[name] = []byte(row.text)
		}
		got, warning, err := RestoreCheckpoint(t.Context(), s, journal, "r", "cp-S1")
		require.NoError(t, err, what)
		require.Equal(t, want.Seq, got.Seq, what)
		require.Equal(t, want.Chain, got.Chain, what)
		require.Equal(t, row.warning, warning, what)
		require.Equal(t, string(raw), string(s.names[name]), what)
	}
	s := newNamedStore(w)
	var none *NoCheckpointError
	_, _, err = RestoreCheckpoint(t.Context(), s, nil, "r", "cp-S1")
	require.ErrorAs(t, err, &none)
	require.Empty(t, none.Known)
	_, _, err = RestoreCheckpoint(t.Context(), s, journal, "r", "x")
	require.ErrorAs(t, err, &none)
	require.Equal(t, []string{"cp-S1"}, none.Known, "the error of the journal, which has more names")
	s.names[name] = []byte("torn")
	_, _, err = RestoreCheckpoint(t.Context(), s, newNamedStore(w), "r", "cp-S1")
	require.ErrorAs(t, err, &none)
	_, _, err = RestoreCheckpoint(t.Context(), brokenNames{s}, journal, "r", "cp-S1")
	require.EqualError(t, err, "store checkpoint cp-S1 again: file already exists")
	d := w.dir(map[string]string{})
	folded, err := Checkpoints(d)
	require.NoError(t, err)
	require.Equal(t, journal, folded)
	others, err := folded.ListNames(t.Context(), checkpointFolder("other"))
	require.NoError(t, err)
	require.Empty(t, others)
}

// brokenNames is a store that replaces nothing.
type brokenNames struct{ namedStore }

func (brokenNames) Replace(context.Context, string, []byte) error { return fs.ErrExist }

// TestCheckpointsOfBatches: a checkpoint comes after what its pass left, and only after the start of a run.
func TestCheckpointsOfBatches(t *testing.T) {
	w := working(t)
	seqs := func(lines []string) (all []int64) {
		require.NoError(t, EachCheckpoint(lines, func(c run.Checkpoint) error {
			all = append(all, c.Seq)
			require.Equal(t, run.Chain("").Over(lines[:c.Seq]), c.Chain)
			return nil
		}))
		return all
	}
	require.Equal(t, []int64{1, 6}, seqs(w.lines[:6]))
	require.Equal(t, []int64{1, 7}, seqs(w.lines[:7]))
	require.Equal(t, []int64{1, 8, 9}, seqs(w.lines))
	require.Empty(t, seqs([]string{w.lines[5], w.lines[6]}), "before the start of a run")
	garbage := slices.Clone(w.lines)
	garbage[1] = "garbage"
	require.Equal(t, []int64{1, 8, 9}, seqs(garbage))
}

// TestCheckpointsDoNotDependOnBatches: a stored checkpoint has the state at its event, whatever comes after it in the
// same batch.
func TestCheckpointsDoNotDependOnBatches(t *testing.T) {
	w := detour(t)
	stored := func(size int64) map[string]string {
		s, d := newNamedStore(w), claimed(t)
		for first := int64(1); first <= w.last(); first += size {
			_, err := d.Project(t.Context(), s, w.batch(first, min(first+size-1, w.last())))
			require.NoError(t, err)
		}
		texts := map[string]string{}
		for name, raw := range s.names {
			texts[name] = string(raw)
		}
		return texts
	}
	together := stored(w.last())
	require.Greater(t, len(together), 4)
	require.Subset(t, stored(1), together)
}

// TestVerifiedContentOfCheckpoints: the store has everything that the state names.
func TestVerifiedContentOfCheckpoints(t *testing.T) {
	store := blobStore{}
	page := store.keep(t, "page")
	c := run.Checkpoint{ID: "cp-S1", State: run.State{Artifact: &page}}
	require.NoError(t, VerifyStored(t.Context(), store, c))
	c.State.Notes = []run.Notes{{File: "log.md", Whole: run.Blob{Digest: "gone"}}}
	err := VerifyStored(t.Context(), store, c)
	require.ErrorIs(t, err, disk.ErrDamaged)
	require.EqualError(t, err, "checkpoint cp-S1 is damaged: notes log.md integrity check failed: file does not exist")
	c.State = run.State{Artifact: blob("gone")}
	require.ErrorContains(t, VerifyStored(t.Context(), store, c), "damaged: artifact integrity check failed: ")
	err = VerifyStored(t.Context(), deniedStore{store}, c)
	require.ErrorIs(t, err, fs.ErrPermission)
	require.NotErrorIs(t, err, disk.ErrDamaged)
}

// deniedStore is a store that this process may not read.
type deniedStore struct{ blobStore }

func (deniedStore) Get(context.Context, string) ([]byte, error)      { return nil, fs.ErrPermission }
func (deniedStore) Manifest(context.Context, string) ([]byte, error) { return nil, fs.ErrPermission }
