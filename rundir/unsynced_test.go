package rundir

import (
	"context"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// namedStore is a store in memory that has names too.
type namedStore struct {
	blobStore
	names map[string][]byte
}

func newNamedStore(w *writer) namedStore {
	return namedStore{w.store, map[string][]byte{}}
}

func (s namedStore) Name(ctx context.Context, name string, data []byte) error {
	return s.Replace(ctx, name, data)
}

func (s namedStore) Replace(_ context.Context, name string, data []byte) error {
	s.names[name] = data
	return nil
}

func (s namedStore) ReadName(_ context.Context, name string) ([]byte, error) {
	if raw, ok := s.names[name]; ok {
		return raw, nil
	}
	return nil, os.ErrNotExist
}

func (s namedStore) ListNames(_ context.Context, prefix string) (out []string, err error) {
	for name := range s.names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	slices.Reverse(out) // in another order
	return out, nil
}

// watched notes the operations on files by name.
func watched(d Dir, ops map[disk.Op][]string) Dir {
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		name, _, _ := strings.Cut(path.Base(s.Path), ".tmp.")
		ops[s.Op] = append(ops[s.Op], name)
		return nil
	}}
	return d
}

// TestUnsyncedFiles: evidence and logs of a run that works are synced when it pauses, and the first export of the next
// process makes again what a power failure has taken.
func TestUnsyncedFiles(t *testing.T) {
	w := working(t)
	store := newNamedStore(w)
	project := func(d Dir, first, last int64) Projected {
		p, err := d.Project(t.Context(), store, w.batch(first, last))
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
		w.consistent(d, last)
		return p
	}
	evidence := []string{"prompt.md", "artifact-backup.html", "raw-output.txt", "cost.jsonl", "state-snapshot.json"}
	ops := map[disk.Op][]string{}
	d := watched(claimed(t), ops)
	d.Folds = new(Folds)
	project(d, 1, 9)
	for _, name := range evidence[:4] {
		require.Contains(t, ops[disk.OpWrite], name)
		require.NotContains(t, ops[disk.OpSync], name)
	}
	for _, name := range []string{"page.html", "log.md", "events.jsonl", "state.json", "meta.json", "plan.json"} {
		require.Contains(t, ops[disk.OpSync], name)
	}
	clear(ops)
	require.Empty(t, project(d, 10, 10).Healed)
	require.NotContains(t, ops, disk.OpSyncSystem)

	// the machine loses evidence, an operator edits a file, and the store loses the blob of another
	const pass1 = PassesDir + "/pass-001"
	for _, name := range []string{pass1 + "/prompt.md", pass1 + "/raw-output.txt", CostLog} {
		require.NoError(t, os.Remove(d.Path(name)))
	}
	write(t, d, "page.html", "an edit")
	delete(w.store, disk.Digest([]byte("reply of 001 at 5")))
	clear(ops)
	next := w.last() + 1
	w.settle(numbered(2, "report"), "")
	d.Folds = new(Folds)
	p := project(d, next, next)
	require.Equal(t, []string{pass1 + "/prompt.md is missing: made again from the events",
		pass1 + "/raw-output.txt is missing: made again from the events",
		CostLog + " is shorter than what was written: made again from the events"}, p.Healed)
	for _, name := range evidence[:1] {
		require.NotContains(t, ops[disk.OpSync], name)
	}
	got := contents(t, d)
	require.Equal(t, "prompt of 001", got[pass1+"/prompt.md"])
	require.Equal(t, "an edit", got["page.html"])
	require.NotContains(t, got, pass1+"/raw-output.txt")

	clear(ops)
	w.begin(numbered(3, "report"), "page 1")
	require.Empty(t, project(d, next+1, next+1).Healed)
	require.NotContains(t, ops, disk.OpSyncSystem)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Empty(t, project(d, next+2, next+2).Healed)
	require.Equal(t, []string{path.Base(d.Root)}, ops[disk.OpSyncSystem])
	clear(ops)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Empty(t, project(d, next+3, next+3).Healed)
	require.NotContains(t, ops, disk.OpSyncSystem, "everything is on disk")
}

// TestFilesOfOperatorsAfterRestart: the first export of a process leaves a file that an operator has edited, and writes
// those of events that no batch has committed.
func TestFilesOfOperatorsAfterRestart(t *testing.T) {
	w := working(t)
	for last, want := range map[int64]string{8: "an edit", 6: "page 1"} {
		d := claimed(t)
		_, err := d.Project(t.Context(), w.store, w.batch(1, last))
		require.NoError(t, err)
		write(t, d, "page.html", "an edit")
		write(t, d, EventsFile, strings.Join(w.lines[:9], "\n")+"\n")
		w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		ops := map[disk.Op][]string{}
		_, err = watched(d, ops).Project(t.Context(), w.store, w.batch(10, w.last()))
		require.NoError(t, err)
		require.Equal(t, want, contents(t, d)["page.html"], "from event %d", last)
		require.Len(t, ops[disk.OpSyncSystem], 1)
		w.lines = w.lines[:10]
	}
}

// TestSyncedFiles: a batch of a run that does not work syncs every file, and opens only the logs that it adds to.
func TestSyncedFiles(t *testing.T) {
	w := working(t)
	d, ops := claimed(t), map[disk.Op][]string{}
	d.Folds = new(Folds)
	w.project(watched(d, ops), 1)
	require.Contains(t, ops[disk.OpWrite], "orchestrator.log")
	require.Contains(t, ops[disk.OpMkdir], "logs")
	for last := int64(2); last <= 3; last++ {
		clear(ops)
		w.project(watched(d, ops), last)
		require.Contains(t, ops[disk.OpWrite], "orchestrator.log")
		require.NotContains(t, ops[disk.OpCreate], "cost.jsonl")
		require.NotContains(t, ops[disk.OpMkdir], "logs")
	}
	tries := 0
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpWrite && path.Base(s.Path) == "orchestrator.log" {
			tries++
			return os.ErrPermission
		}
		return nil
	}}
	_, err := d.Project(t.Context(), w.store, w.batch(4, 4))
	require.ErrorIs(t, err, os.ErrPermission)
	require.Equal(t, 1, tries, "only a log with other contents is tried again")
}

// TestStoreIsFull: a checkpoint that cannot be stored is an error.
func TestStoreIsFull(t *testing.T) {
	w := &exporter{ctx: t.Context(), blobs: failingNames{newNamedStore(&writer{t: t})},
		marks: []run.Checkpoint{{RunID: "r", ID: "cp-S1", Seq: 3}}}
	require.EqualError(t, w.keepCheckpoints(), "store checkpoint cp-S1: the store is full")
}

// failingNames is a store that is full.
type failingNames struct{ namedStore }

func (failingNames) Name(context.Context, string, []byte) error {
	return errors.New("the store is full")
}

// TestDiskThatCannotBeSynced: a pause whose files may be lost is not committed.
func TestDiskThatCannotBeSynced(t *testing.T) {
	w := working(t)
	d := w.projected(9)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	d.Disk.Hook = func(s disk.Step) error {
		if s.Op == disk.OpSyncSystem {
			return os.ErrPermission
		}
		return nil
	}
	before := contents(t, d)[MetaFile]
	_, err := d.Project(t.Context(), w.store, w.batch(10, w.last()))
	require.ErrorIs(t, err, os.ErrPermission)
	require.Equal(t, before, contents(t, d)[MetaFile])
}
