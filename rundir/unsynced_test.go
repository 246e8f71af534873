package rundir

import (
	"context"
	"encoding/json"
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

// namedStore is a store in memory that has names too, and notes how they are written.
type namedStore struct {
	blobStore
	names map[string][]byte
	calls *[]string
}

func newNamedStore(w *writer) namedStore {
	return namedStore{w.store, map[string][]byte{}, &[]string{}}
}

func (s namedStore) write(how, name string, data []byte) error {
	*s.calls = append(*s.calls, how)
	s.names[name] = data
	return nil
}

func (s namedStore) Name(_ context.Context, name string, data []byte) error {
	return s.write("name", name, data)
}
func (s namedStore) NameUnsynced(_ context.Context, name string, data []byte) error {
	return s.write("unsynced", name, data)
}

func (s namedStore) Replace(_ context.Context, name string, data []byte) error {
	return s.write("replace", name, data)
}

func (s namedStore) Sync() error {
	*s.calls = append(*s.calls, "sync")
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

// taken are the calls since the last time.
func (s namedStore) taken() []string {
	all := slices.Compact(*s.calls)
	*s.calls = nil
	return all
}

// booted sets the boot of the machine, and notes the operations on files by name.
func booted(d Dir, boot string, ops map[disk.Op][]string) Dir {
	d.Boot = func() string { return boot }
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		name, _, _ := strings.Cut(path.Base(s.Path), ".tmp.")
		ops[s.Op] = append(ops[s.Op], name)
		return nil
	}}
	return d
}

// TestUnsyncedFiles: evidence and logs of a run that works are synced when it pauses, and are made again if the machine
// was started again before.
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
	unsynced := func(d Dir) string {
		var mark exportMark
		if err := d.ReadJSON(ExportFile, &mark); !errors.Is(err, os.ErrNotExist) {
			require.NoError(t, err)
		}
		return mark.Boot
	}
	evidence := []string{"prompt.md", "artifact-backup.html", "raw-output.txt", "cost.jsonl", "state-snapshot.json"}
	d, ops := claimed(t), map[disk.Op][]string{}
	project(booted(d, "one", ops), 1, 9)
	require.Equal(t, "one", unsynced(d))
	require.Less(t, slices.Index(ops[disk.OpWrite], path.Base(ExportFile)),
		slices.Index(ops[disk.OpWrite], "prompt.md"), "the boot is named first")
	for _, name := range evidence[:4] {
		require.Contains(t, ops[disk.OpWrite], name)
		require.NotContains(t, ops[disk.OpSync], name)
	}
	for _, name := range []string{"page.html", "log.md", "events.jsonl", "state.json", "meta.json", "plan.json"} {
		require.Contains(t, ops[disk.OpSync], name)
	}
	require.Equal(t, []string{"unsynced"}, store.taken())
	clear(ops)
	require.Empty(t, project(booted(d, "one", ops), 10, 10).Healed)
	require.NotContains(t, ops[disk.OpWrite], path.Base(ExportFile), "it names this boot already")
	require.NotContains(t, ops, disk.OpSyncSystem)
	store.taken()

	// the machine loses evidence, an operator edits a file, and the store loses the blob of another
	const pass1 = PassesDir + "/pass-001"
	for _, name := range []string{pass1 + "/prompt.md", pass1 + "/raw-output.txt", CostLog} {
		require.NoError(t, os.Remove(d.Path(name)))
	}
	write(t, d, "page.html", "an edit")
	delete(w.store, disk.Digest([]byte("reply of 001 at 5")))
	lost := w.marks(store)[0]
	delete(store.names, lost)
	clear(ops)
	next := w.last() + 1
	w.settle(numbered(2, "report"), "")
	p := project(booted(d, "two", ops), next, next)
	require.Equal(t, "the machine was started again before all files were on disk: made again from events.jsonl",
		strings.Join(p.Healed, ", "))
	require.Empty(t, unsynced(d))
	require.Contains(t, ops[disk.OpSyncSystem], path.Base(d.Root))
	for _, name := range evidence[:1] {
		require.NotContains(t, ops[disk.OpSync], name)
	}
	got := contents(t, d)
	require.Equal(t, "prompt of 001", got[pass1+"/prompt.md"])
	require.Equal(t, "an edit", got["page.html"])
	require.NotContains(t, got, pass1+"/raw-output.txt")
	require.Contains(t, store.names, lost)
	require.Equal(t, []string{"replace", "sync"}, store.taken())

	clear(ops)
	w.begin(numbered(3, "report"), "page 1")
	require.Empty(t, project(booted(d, "two", ops), next+1, next+1).Healed)
	require.Equal(t, "two", unsynced(d))
	require.NotContains(t, ops, disk.OpSyncSystem)
	clear(ops)
	w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
	require.Empty(t, project(booted(d, "two", ops), next+2, next+2).Healed)
	require.Empty(t, unsynced(d))
	require.Contains(t, ops[disk.OpSyncSystem], path.Base(d.Root))
	require.Equal(t, []string{"unsynced", "sync"}, store.taken())
	clear(ops)
	w.add(run.KindRunResumed, run.RunResumed{Epoch: 1})
	require.Empty(t, project(booted(d, "three", ops), next+3, next+3).Healed, "everything was on disk")
	require.Equal(t, "three", unsynced(d))
}

// TestFilesOfOperatorsAfterRestart: every batch syncs files that an operator edits, so that only those of events
// that no batch has committed are written.
func TestFilesOfOperatorsAfterRestart(t *testing.T) {
	w := working(t)
	for last, want := range map[int64]map[string]string{
		8: {Orchestrator + "/log.md": "an edit", "page.html": "an edit"},
		6: {Orchestrator + "/log.md": "entry", "page.html": "page 1"},
	} {
		d := booted(claimed(t), "one", map[disk.Op][]string{})
		_, err := d.Project(t.Context(), w.store, w.batch(1, last))
		require.NoError(t, err)
		for name := range want {
			write(t, d, name, "an edit")
		}
		write(t, d, EventsFile, strings.Join(w.lines[:9], "\n")+"\n")
		w.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
		ops := map[disk.Op][]string{}
		_, err = booted(d, "two", ops).Project(t.Context(), w.store, w.batch(10, w.last()))
		require.NoError(t, err)
		got := contents(t, d)
		for name, text := range want {
			require.Equal(t, text, got[name], "%s, from event %d", name, last)
		}
		require.Len(t, ops[disk.OpSyncSystem], 1, "there is nothing else to sync")
		w.lines = w.lines[:10]
	}
}

// TestSyncedFiles: without a boot ID every file is synced, and a batch opens and syncs only the logs that it adds to.
func TestSyncedFiles(t *testing.T) {
	w := working(t)
	store, d, ops := newNamedStore(w), claimed(t), map[disk.Op][]string{}
	_, err := booted(claimed(t), "", ops).Project(t.Context(), store, w.batch(1, 9))
	require.NoError(t, err)
	require.Contains(t, ops[disk.OpSync], "prompt.md")
	require.NotContains(t, ops, disk.OpSyncSystem)
	require.Equal(t, []string{"name"}, store.taken())
	clear(ops)
	_, err = booted(d, "", ops).Project(t.Context(), w.store, w.batch(1, 1))
	require.NoError(t, err)
	require.NoFileExists(t, d.Path(ExportFile))
	require.Contains(t, ops[disk.OpSync], "cost.jsonl", "it is created")
	require.Contains(t, ops[disk.OpMkdir], "logs")
	for last := int64(2); last <= 3; last++ {
		clear(ops)
		_, err := booted(d, "", ops).Project(t.Context(), w.store, w.batch(last, last))
		require.NoError(t, err)
		require.Contains(t, ops[disk.OpSync], "orchestrator.log")
		require.NotContains(t, ops[disk.OpSync], "cost.jsonl")
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
	_, err = d.Project(t.Context(), w.store, w.batch(4, 4))
	require.ErrorIs(t, err, os.ErrPermission)
	require.Equal(t, 1, tries, "only a log with other contents is tried again")
}

// marks are the names of the checkpoints in a store, oldest first.
func (w *writer) marks(s namedStore) (names []string) {
	w.t.Helper()
	marks, err := Marks(w.t.Context(), s, "r")
	require.NoError(w.t, err)
	for _, m := range marks {
		names = append(names, m.Name)
	}
	return names
}

// TestCheckpointsAfterRestart: after another boot, a checkpoint that the store has with other bytes is replaced.
func TestCheckpointsAfterRestart(t *testing.T) {
	c := run.Checkpoint{RunID: "r", ID: "cp-S1", Seq: 3}
	raw, err := json.Marshal(c)
	require.NoError(t, err)
	name := checkpointName(c, raw)
	for was, want := range map[string][]string{"": {"replace"}, "torn": {"replace"}, string(raw): {}} {
		store := newNamedStore(&writer{t: t})
		if was != "" {
			store.names[name] = []byte(was)
		}
		require.NoError(t, (&exporter{ctx: t.Context(), blobs: store, whole: true}).keepCheckpoints([]run.Checkpoint{c}))
		require.Equal(t, want, store.taken())
		require.Equal(t, string(raw), string(store.names[name]))
	}
	broken := failingNames{newNamedStore(&writer{t: t})}
	err = (&exporter{ctx: t.Context(), blobs: broken}).keepCheckpoints([]run.Checkpoint{c})
	require.EqualError(t, err, "store checkpoint cp-S1: the store is full")
}

// failingNames is a store that is full.
type failingNames struct{ namedStore }

func (failingNames) Name(context.Context, string, []byte) error {
	return errors.New("the store is full")
}

// TestFilesThatCannotBeMadeAgain: a directory whose files cannot be made again after a restart is not continued.
func TestFilesThatCannotBeMadeAgain(t *testing.T) {
	w := working(t)
	d := claimed(t)
	_, err := booted(d, "one", map[disk.Op][]string{}).Project(t.Context(), w.store, w.batch(1, 9))
	require.NoError(t, err)
	d = booted(d, "two", map[disk.Op][]string{})
	d.Disk.Hook = func(s disk.Step) error {
		if s.Op == disk.OpSyncSystem {
			return os.ErrPermission
		}
		return nil
	}
	_, err = d.Project(t.Context(), w.store, w.batch(10, 9))
	require.ErrorIs(t, err, os.ErrPermission)
	var mark exportMark
	require.NoError(t, d.ReadJSON(ExportFile, &mark))
	require.Equal(t, "one", mark.Boot)
}
