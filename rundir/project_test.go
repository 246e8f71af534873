package rundir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// working writes the journal of a run with everything that leaves files: a failed attempt, an artifact, a note, a named
// checkpoint, and a call in flight at its end. The store has every blob.
func working(t *testing.T) *writer {
	t.Helper()
	w := &writer{t: t, store: blobStore{}}
	w.add(run.KindRunStart, run.RunStart{RunID: "r", ThreadID: "thread", Pipeline: "p", Epoch: 1, TotalPasses: 3,
		CreatedAt: "2026-01-02T03:04:00.000Z", Wording: run.WordingStages,
		Definition: w.store.keep(t, "stages: []\n").Digest, Plan: w.store.keep(t, "{}").Digest,
		Artifact: &run.ArtifactRef{File: "page.html", Seed: w.store.keep(t, "seed")},
		Notes:    []run.NoteRef{{Name: "log", File: "log.md"}}, Budget: run.Budget{CapUSD: 9},
		Stages: []run.StageRef{{Name: "write", Kind: "each"}}})
	w.phase = "write"
	w.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	w.begin(numbered(1, "artifact"), "seed")
	w.fail(numbered(1, "artifact"))
	w.begin(numbered(1, "artifact"), "seed")
	w.settle(numbered(1, "artifact"), "page 1")
	w.add(run.KindNoteAppended, run.NoteAppended{Note: "log", File: "log.md", Step: "001",
		Entry: w.store.keep(t, "entry"), Whole: w.store.keep(t, "entry")})
	w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S1", AtPass: 1, USD: 1})
	w.begin(numbered(2, "report"), "page 1")
	return w
}

func numbered(n int, gives string) run.Pass {
	return run.Pass{Step: fmt.Sprintf("%03d", n), Number: n, Round: 1, Role: "writer", Gives: gives, Title: "pass"}
}

// last is the number of the last event.
func (w *writer) last() int64 { return int64(len(w.lines)) }

func (w *writer) begin(p run.Pass, before string) {
	w.add(run.KindPassStart, run.PassStart{Pass: p, Call: fmt.Sprintf("%s at %d", p.Step, w.last()), Attempt: 1,
		Attempts: 3, Prompt: w.store.keep(w.t, "prompt of "+p.Step), Before: w.store.keep(w.t, before).Digest})
}

func (w *writer) fail(p run.Pass) {
	out := w.store.keep(w.t, fmt.Sprintf("half of %s at %d", p.Step, w.last()))
	w.add(run.KindPassAttempt, run.PassAttempt{Pass: p, Attempt: 1, Category: run.CategoryOutputTruncated, Message: "half",
		Output: &out, Judged: true, RetryInMS: 1, Spend: &run.Spend{USD: 0.5, Known: run.CostExact}})
}

// settle ends a pass, with a new artifact unless page is empty.
func (w *writer) settle(p run.Pass, page string) {
	reply := w.store.keep(w.t, fmt.Sprintf("reply of %s at %d", p.Step, w.last()))
	end := run.PassEnd{Pass: p, Outcome: run.CategoryOK, Attempts: 1, Reply: &reply,
		Validation: run.Validation{Passed: true}, Spend: run.Spend{USD: 1, Known: run.CostExact},
		Next: &run.Place{Round: 1, Step: p.Number}}
	if page != "" {
		a := w.store.keep(w.t, page)
		end.Artifact, end.Modified = &a, true
	}
	w.add(run.KindPassEnd, end)
	if page != "" {
		w.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: p.Step, Artifact: *end.Artifact})
	}
}

// batch is the part of the journal from one event to another, both included.
func (w *writer) batch(first, last int64) Batch {
	return Batch{Epoch: 1, First: first, Prev: run.Chain("").Over(w.lines[:first-1]), Lines: w.lines[first-1 : last]}
}

func (w *writer) tail(last int64) run.Tail {
	return run.Tail{Seq: last, Chain: run.Chain("").Over(w.lines[:last])}
}

// claimed is an empty directory with the claim of the run.
func claimed(t *testing.T) Dir {
	t.Helper()
	d := At(t.TempDir() + "/run")
	require.NoError(t, d.Take(run.Claim{Version: run.ClaimVersion, RunID: "r", Pipeline: "p"}))
	return d
}

// project writes events up to last, from the end of the directory on.
func (w *writer) project(d Dir, last int64) Projected {
	w.t.Helper()
	tail, err := d.Tail()
	require.NoError(w.t, err)
	p, err := d.Project(w.t.Context(), w.store, w.batch(tail.Seq+1, last))
	require.NoError(w.t, err)
	require.Equal(w.t, run.ProjectionWritten, p.Outcome)
	require.Equal(w.t, w.tail(last), p.Tail)
	w.consistent(d, last)
	return p
}

// projected is a directory with the events up to last, which one batch has written.
func (w *writer) projected(last int64) Dir {
	w.t.Helper()
	d := claimed(w.t)
	w.project(d, last)
	return d
}

// consistent checks what is true of a directory after every batch.
func (w *writer) consistent(d Dir, last int64) {
	t := w.t
	t.Helper()
	read := func(name string) string {
		raw, err := d.ReadFile(name)
		require.NoError(t, err)
		return string(raw)
	}
	events := strings.Join(w.lines[:last], "\n") + "\n"
	require.Equal(t, events, read(EventsFile))
	meta, err := d.Meta()
	require.NoError(t, err)
	require.Equal(t, EventsMark{Seq: last, Chain: w.tail(last).Chain, Size: int64(len(events))}, meta.Events)
	require.Equal(t, last, meta.State.Seq)
	require.Equal(t, "r", meta.RunID)
	require.Equal(t, 1, meta.Epoch)
	require.Equal(t, string(meta.State.Status), meta.Status)
	link, err := os.Readlink(d.Path(SpendFile))
	require.NoError(t, err)
	require.Equal(t, CostLog, link)
	state, err := d.State()
	require.NoError(t, err)
	require.Equal(t, last, state.LastSeq)
	require.NoError(t, d.Walk(".", func(name string, e fs.DirEntry, err error) error {
		info, ierr := e.Info()
		require.NoError(t, errors.Join(err, ierr))
		if want := map[fs.FileMode]fs.FileMode{0: FilePerm, fs.ModeDir: DirPerm}[e.Type()]; want != 0 {
			require.Equal(t, want, info.Mode().Perm(), name)
		}
		return nil
	}))
}

// contents are all files of a directory by name.
func contents(t *testing.T, d Dir) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, d.Walk(".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || name == LockFile {
			return err
		}
		raw, err := os.ReadFile(d.Path(name))
		if e.Type() == fs.ModeSymlink && err != nil {
			return nil // its target is missing
		}
		files[name] = string(raw)
		return err
	}))
	return files
}

func write(t *testing.T, d Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(path.Dir(d.Path(name)), 0o700))
	require.NoError(t, os.WriteFile(d.Path(name), []byte(text), 0o600))
}

// TestBatchesLeaveTheSameDirectory however the journal is divided, and the directory has what follows from its events.
func TestBatchesLeaveTheSameDirectory(t *testing.T) {
	w := working(t)
	want := contents(t, w.projected(w.last()))
	const pass1 = PassesDir + "/pass-001"
	for name, text := range map[string]string{
		DefinitionFile: "stages: []\n", PlanFile: "{}", "page.html": "page 1",
		Orchestrator + "/log.md": "entry", pass1 + "/prompt.md": "prompt of 001",
		pass1 + "/artifact-backup.html": "seed", pass1 + "/raw-output-FAILED.txt": "half of 001 at 3",
		pass1 + "/raw-output.txt": "reply of 001 at 5", PassesDir + "/pass-002/prompt.md": "prompt of 002",
		CheckpointDir("cp-S1") + "/artifact.html": "page 1", CheckpointDir("cp-S1") + "/log.md": "entry",
	} {
		require.Equal(t, text, want[name], name)
	}
	for name, folds := range map[string]*Folds{"folded again": nil, "in memory": new(Folds)} {
		d := claimed(t)
		d.Folds = folds
		for last := int64(1); last <= w.last(); last++ {
			p := w.project(d, last)
			require.Equal(t, Projected{Outcome: run.ProjectionWritten, Tail: w.tail(last), Added: 1, Pipeline: "p"}, p)
		}
		require.Equal(t, want, contents(t, d), name)
	}
}

// TestAnswersToBatches: what a projection answers to each batch, and that it writes nothing else.
func TestAnswersToBatches(t *testing.T) {
	w := working(t)
	other := &writer{t: t, lines: slices.Clone(w.lines)}
	other.lines[4] = `{"seq":5,"kind":"other"}`
	epoch := func(b Batch, n int) Batch { b.Epoch = n; return b }
	prev := func(b Batch, c run.Chain) Batch { b.Prev = c; return b }
	for name, row := range map[string]struct {
		disk  int64
		batch Batch
		want  run.Projection
		last  int64
		added int
	}{
		"the next lines":              {6, w.batch(7, 9), run.ProjectionWritten, 9, 3},
		"lines that are there":        {6, w.batch(4, 6), run.ProjectionWritten, 6, 0},
		"lines of which some are new": {6, w.batch(4, 8), run.ProjectionWritten, 8, 2},
		"the last line again":         {6, w.batch(6, 8), run.ProjectionWritten, 8, 2},
		"the first line again":        {6, w.batch(1, 7), run.ProjectionWritten, 7, 1},
		"no lines":                    {6, w.batch(7, 6), run.ProjectionWritten, 6, 0},
		"lines after a gap":           {6, w.batch(8, 9), run.ProjectionBehind, 6, 0},
		"another line":                {6, other.batch(5, 7), run.ProjectionNewer, 6, 0},
		"another line before":         {6, other.batch(7, 8), run.ProjectionNewer, 6, 0},
		"another line before, partly": {6, other.batch(6, 8), run.ProjectionNewer, 6, 0},
		"fewer lines than are there":  {6, w.batch(4, 5), run.ProjectionNewer, 6, 0},
		"another chain before":        {6, prev(w.batch(7, 8), "x"), run.ProjectionNewer, 6, 0},
		"an earlier epoch":            {6, epoch(w.batch(7, 8), 0), run.ProjectionNewer, 6, 0},
		"a later epoch":               {6, epoch(w.batch(7, 8), 2), run.ProjectionWritten, 8, 2},
	} {
		d := w.projected(row.disk)
		before := contents(t, d)
		got, err := d.Project(t.Context(), w.store, row.batch)
		require.NoError(t, err, name)
		require.Equal(t, row.want, got.Outcome, name)
		require.Equal(t, w.tail(row.last), got.Tail, name)
		require.Equal(t, row.added, got.Added, name)
		if row.want != run.ProjectionWritten {
			require.Equal(t, before, contents(t, d), name)
		}
		w.consistent(d, row.last)
	}
	d := At(t.TempDir() + "/a/new")
	_, err := d.Project(t.Context(), w.store, w.batch(1, 6))
	require.NoError(t, err)
	require.FileExists(t, d.Path(MetaFile))
	d = w.projected(6)
	_, err = d.Project(t.Context(), w.store, Batch{Epoch: 1})
	require.EqualError(t, err, "project events from 0 on: the first event of a run is 1")
	write(t, d, OwnerFile, `{"run_id":"r","epoch":2}`)
	got, err := d.Project(t.Context(), w.store, w.batch(7, 8))
	require.NoError(t, err)
	require.Equal(t, Projected{Outcome: run.ProjectionNewer, Tail: w.tail(6)}, got)
	b := epoch(w.batch(7, 8), 2)
	b.Head = "newest"
	_, err = d.Project(t.Context(), w.store, b)
	require.NoError(t, err)
	meta, err := d.Meta()
	require.NoError(t, err)
	require.Equal(t, "newest", meta.SegmentHead)
	require.NoError(t, os.Remove(d.Path(OwnerFile)))
	w.project(d, 9)
	meta, err = d.Meta()
	require.NoError(t, err)
	require.Equal(t, "newest", meta.SegmentHead, "a batch without a segment keeps the newest one")
}

// TestBatchesOfDamagedJournals: a damaged earlier line is not searched for, and other lines are found.
func TestBatchesOfDamagedJournals(t *testing.T) {
	w := working(t)
	d := w.projected(6)
	lines := w.hurt(d, 2, 6)
	p, err := d.Project(t.Context(), w.store, w.batch(5, 8))
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	require.Equal(t, w.tail(8), p.Tail)
	d = w.projected(6)
	w.hurt(d, 2, 6)
	b := w.batch(7, 8)
	b.Prev = run.Chain("").Over(lines)
	p, err = d.Project(t.Context(), w.store, b)
	require.NoError(t, err)
	require.Equal(t, run.ProjectionNewer, p.Outcome, "only the damaged lines have that chain")
	for first := int64(1); first <= 6; first++ {
		d := w.projected(6)
		write(t, d, EventsFile, strings.Repeat("x", len(strings.Join(w.lines[:6], "\n")))+"\n")
		p, err = d.Project(t.Context(), w.store, w.batch(first, 8))
		require.NoError(t, err)
		require.Equal(t, run.ProjectionBehind, p.Outcome, "the file has one line of that size")
	}
}

// TestChangedJournalMakesNoFiles: nothing is made again from lines that were changed. The lines as they were written count
// if history has them; otherwise meta.json, state.json and the logs are continued as they are, and no file is compared.
func TestChangedJournalMakesNoFiles(t *testing.T) {
	w := working(t)
	want := contents(t, w.projected(10))
	const prompt = PassesDir + "/pass-001/prompt.md"
	for name, change := range map[string]func(lines []string){
		"another kind":   func(l []string) { l[1] = strings.Replace(l[1], `"kind":"p`, `"kind":"q`, 1) },
		"a longer line":  func(l []string) { l[1] = strings.Replace(l[1], `"title":"`, `"title":"Other `, 1) },
		"two lines more": func(l []string) { l[3] += "\n" + l[3] + "\nx" },
	} {
		for _, known := range []bool{true, false} {
			d := w.projected(6)
			lines := slices.Clone(w.lines[:6])
			change(lines)
			require.NotEqual(t, w.lines[:6], lines, name)
			write(t, d, EventsFile, strings.Join(lines, "\n")+"\n")
			write(t, d, prompt, "mine")
			for _, b := range []Batch{w.batch(7, 9), w.batch(10, 10)} { // each in another process
				if b.Verified = true; known {
					b.Truth = func(context.Context) ([]string, error) { return w.lines, nil }
				}
				p, err := d.Project(t.Context(), w.store, b)
				require.NoError(t, err, name)
				require.Equal(t, run.ProjectionWritten, p.Outcome, name)
				require.Equal(t, known && b.First == 7, len(p.Healed) == 1, "%s: %v", name, p.Healed)
			}
			got := contents(t, d)
			require.Equal(t, strings.Join(lines, "\n")+"\n"+strings.Join(w.lines[6:10], "\n")+"\n", got[EventsFile], name)
			delete(got, EventsFile)
			if known {
				for file := range got {
					if file != TornDir+"/_orchestrator-passes-pass-001-prompt-damaged-"+short("mine")+".md" {
						require.Equal(t, want[file], got[file], "%s: %s", name, file)
					}
				}
				continue
			}
			require.Equal(t, "mine", got[prompt], name)
			for file := range got {
				require.NotContains(t, file, TornDir, name)
			}
			for _, file := range append(Growing(), MetaFile, StateFile) {
				require.Equal(t, want[file], got[file], "%s: %s", name, file)
			}
		}
	}
}

// TestTornLines: a piece of the next line is completed, and anything else is moved.
func TestTornLines(t *testing.T) {
	w := working(t)
	for name, row := range map[string]struct {
		torn string
		last int64
		kept bool
	}{
		"the beginning of the next line": {w.lines[6][:20], 9, false},
		"the next line":                  {w.lines[6], 9, false},
		"something else":                 {`{"who`, 9, true},
		"one byte":                       {"x", 9, true},
		"the beginning of the last line": {w.lines[6][:20], 7, false},
		"a batch without lines":          {w.lines[6][:20], 6, true},
	} {
		d := w.projected(6)
		write(t, d, EventsFile, strings.Join(w.lines[:6], "\n")+"\n"+row.torn)
		w.project(d, row.last)
		got := contents(t, d)
		moved := fmt.Sprintf("%s/events-after-6-%s.txt", TornDir, disk.Digest([]byte(row.torn))[:8])
		text, there := got[moved]
		require.Equal(t, row.kept, there, name)
		if row.kept {
			require.Equal(t, row.torn, text, name)
			delete(got, moved)
		}
		require.Equal(t, contents(t, w.projected(row.last)), got, name)
	}
	d := w.projected(6)
	write(t, d, EventsFile, strings.Join(w.lines[:6], "\n")+"\nx")
	w.project(d, 6)
	require.DirExists(t, d.Path(TornDir))
	d = w.projected(6)
	w.project(d, 6)
	require.NoDirExists(t, d.Path(TornDir))
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpWrite && path.Base(s.Path) == EventsFile {
			return fs.ErrPermission
		}
		return nil
	}}
	_, err := d.Project(t.Context(), w.store, w.batch(7, 9))
	require.ErrorIs(t, err, fs.ErrPermission)
	require.ErrorContains(t, err, "append events 7 to 9: ")
}

// TestEditsAreKeptBeforeTheArtifactIsReplaced: an operator's version of the artifact is copied to edits/ before a lost
// call restores the file or a pass replaces it. What the export wrote itself is no edit.
func TestEditsAreKeptBeforeTheArtifactIsReplaced(t *testing.T) {
	w := working(t)
	edits := func(d Dir) (all []string) {
		names, err := filepath.Glob(d.Path(EditsDir) + "/*")
		require.NoError(t, err)
		for _, name := range names {
			raw, err := os.ReadFile(name)
			require.NoError(t, err)
			require.Equal(t, ".html", filepath.Ext(name))
			all = append(all, string(raw))
		}
		return all
	}
	flying := w.last()
	w.add(run.KindPassAttempt, run.PassAttempt{Pass: numbered(2, "report"), Attempt: 1, Category: run.CategoryLost})
	lost := w.last()
	w.begin(numbered(2, "report"), "page 1")
	w.settle(numbered(2, "report"), "")
	w.begin(numbered(3, "artifact"), "page 1")
	w.settle(numbered(3, "artifact"), "page 2")
	w.settle(numbered(3, "artifact"), "page 3")

	d := w.projected(flying)
	write(t, d, "page.html", "mine")
	w.project(d, lost)
	require.Equal(t, []string{"mine"}, edits(d), "before the artifact of the lost call is restored")
	write(t, d, "page.html", "mine too")
	w.project(d, w.last())
	require.ElementsMatch(t, []string{"mine", "mine too"}, edits(d), "before the pass replaces the artifact")

	d = w.projected(lost)
	for _, written := range []string{"page 1", "page 2", "page 3"} { // a projection that was interrupted
		again := w.projected(lost)
		write(t, again, "page.html", written)
		w.project(again, w.last())
		require.Empty(t, edits(again))
	}
	require.NoError(t, os.Remove(d.Path("page.html")))
	require.NoError(t, os.Remove(d.Path(MetaFile)))
	w.project(d, w.last())
	require.Empty(t, edits(d))
}
