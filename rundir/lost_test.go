package rundir

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestLostDirectories: a directory with files of a run and without an event that starts one is lost, and the error
// names the newest undamaged artifact.
func TestLostDirectories(t *testing.T) {
	page, older := disk.Digest([]byte("page")), disk.Digest([]byte("older"))
	record := func(at, digest string) string {
		return fmt.Sprintf(`{"createdAt":%q,"artifactHash":%q,"stateHash":"x"}`, at, digest)
	}
	one, two, three := CheckpointDir("cp-1"), CheckpointDir("cp-2"), CheckpointDir("cp-3")
	const none = "no checkpoint holds an undamaged artifact"
	for name, row := range map[string]struct {
		files map[string]string
		s     run.State
		page  string // empty: the directory is not lost
	}{
		"claimed":               {nil, run.State{}, ""},
		"a run":                 {map[string]string{StateFile: ""}, run.State{Status: run.Running}, ""},
		"an unknown status":     {map[string]string{StateFile: ""}, run.State{Status: run.Unknown}, none},
		"events":                {map[string]string{EventsFile: "garbage\n"}, run.State{}, none},
		"an empty line":         {map[string]string{EventsFile: "\n"}, run.State{}, none},
		"half of an event":      {map[string]string{EventsFile: "garbage"}, run.State{}, ""},
		"meta.json":             {map[string]string{MetaFile: ""}, run.State{}, none},
		"a result":              {map[string]string{ResultFile: ""}, run.State{}, none},
		"a definition":          {map[string]string{DefinitionFile: ""}, run.State{}, none},
		"logs":                  {map[string]string{TextLog: ""}, run.State{}, none},
		"evidence":              {map[string]string{PassesDir + "/x": ""}, run.State{}, none},
		"snapshots":             {map[string]string{SnapshotManifest(1): ""}, run.State{}, none},
		"a file of an operator": {map[string]string{"mine.txt": "", WorkspaceDir + "/x": ""}, run.State{}, ""},
		"checkpoints": {map[string]string{
			one + "/manifest.json": record("2026-01-02", older), one + "/artifact.md": "older",
			two + "/manifest.json": record("2026-01-03", page), two + "/artifact.md": "page", two + "/log.md": "x",
			three + "/manifest.json": record("2026-01-01", page), three + "/artifact.md": "page"}, run.State{},
			two + "/artifact.md"},
		"a damaged artifact": {map[string]string{one + "/manifest.json": record("2026-01-02", older),
			one + "/artifact.md": "older", two + "/manifest.json": record("2026-01-03", page), two + "/artifact.md": "x",
			three + "/manifest.json": "{"}, run.State{}, one + "/artifact.md"},
		"another file with the digest": {map[string]string{one + "/manifest.json": record("2026-01-02", page),
			one + "/log.md": "page"}, run.State{}, none},
		"a checkpoint without a time": {map[string]string{one + "/manifest.json": record("", page),
			one + "/artifact.md": "page"}, run.State{}, none},
	} {
		d := At(t.TempDir())
		write(t, d, ClaimFile, `{"version":1,"run_id":"r"}`)
		for file, text := range row.files {
			write(t, d, file, text)
		}
		err := Lost(d, row.s)
		if row.page == "" {
			require.NoError(t, err, name)
			continue
		}
		text, file := row.page, ""
		if row.page != none {
			text, file = "the newest undamaged artifact is "+d.Path(row.page), row.page
		}
		require.Equal(t, &LostError{Dir: d.Root, RunID: "r", Checkpoint: file}, err, name)
		require.EqualError(t, err, d.Root+" is damaged: no event of run r can be read from its events.jsonl, and all "+
			"other files are derived from it. Nothing was changed. `starter rebuild r --output-dir "+d.Root+"` restores it "+
			"from Temporal's history and the store. If neither has the run, manual recovery is needed: restore "+
			"events.jsonl from a copy, then resume; "+text, name)
	}
	d := At(t.TempDir())
	write(t, d, StateFile, "")
	require.ErrorIs(t, Lost(d, run.State{}), ErrNoRun)
}

// TestNeedsOfRuns: what the store must have so that a run can continue, by its description.
func TestNeedsOfRuns(t *testing.T) {
	brief := func(digest string) *run.Blob { return &run.Blob{Digest: digest, Raw: "raw"} }
	for what, row := range map[string]struct {
		start run.RunStart
		s     run.State
	}{
		"the plan":                          {start: run.RunStart{Plan: "x"}},
		"the definition":                    {start: run.RunStart{Definition: "x"}},
		"the list of inputs":                {start: run.RunStart{Inputs: "x"}},
		"the brief of the parent":           {start: run.RunStart{Brief: brief("x")}},
		"the artifact":                      {s: run.State{Artifact: brief("x")}},
		"the list of pictures":              {s: run.State{Pictures: brief("x")}},
		"notes log.md":                      {s: run.State{Notes: []run.Notes{{File: "log.md", Whole: *brief("x")}}}},
		"the reply of fix":                  {s: run.State{Replies: []run.Reply{{Step: "fix", Reply: *brief("x")}}}},
		"the amended plan":                  {s: run.State{Plan: &run.CurrentPlan{PlanRef: run.PlanRef{Plan: "x"}}}},
		"the amended definition":            {s: run.State{Plan: &run.CurrentPlan{PlanRef: run.PlanRef{Definition: "x"}}}},
		"the list of the workspace's files": {s: run.State{Tree: brief("x")}},
	} {
		err := Complete(t.Context(), blobStore{}, row.start, row.s)
		require.Equal(t, &MissingError{Blobs: []string{what + " (x)"}}, err, what)
		require.EqualError(t, err, "the store lacks "+what+" (x)")
		err = Complete(t.Context(), deniedStore{}, row.start, row.s)
		require.ErrorIs(t, err, fs.ErrPermission, what)
	}
	amended := run.State{Plan: &run.CurrentPlan{PlanRef: run.PlanRef{Inputs: "long-digest-of-inputs", Policy: "p"}}}
	require.Equal(t, []need{{"the list of inputs", "long-digest-of-inputs"}}, needs(run.RunStart{}, amended))
	require.EqualError(t, Complete(t.Context(), blobStore{}, run.RunStart{}, amended),
		"the store lacks the list of inputs (long-digest-)")
	store := blobStore{}
	page, bad := store.keep(t, "page"), store.keep(t, "{")
	inputs := store.keep(t, `{"version":1,"files":[{"path":"a.md","digest":"`+page.Digest+
		`"},{"path":"b.md","digest":"x"}]}`)
	pictures := store.keep(t, `[{"name":"p.png","digest":"`+page.Digest+`"},{"name":"q.png","digest":"y"}]`)
	require.Equal(t, &MissingError{Blobs: []string{"input b.md (x)", "picture q.png (y)"}},
		Complete(t.Context(), store, run.RunStart{Inputs: inputs.Digest}, run.State{Pictures: &pictures}))
	require.ErrorContains(t, Complete(t.Context(), store, run.RunStart{Inputs: bad.Digest}, run.State{}),
		"manifest of inputs "+bad.Digest+": ")
	require.ErrorContains(t, Complete(t.Context(), store, run.RunStart{}, run.State{Pictures: &bad}),
		"manifest of pictures "+bad.Digest+": ")
	hidden := run.Blob{Digest: page.Digest, Raw: "gone"}
	require.NoError(t, Complete(t.Context(), store, run.RunStart{}, run.State{Artifact: &page, Tree: &hidden}))
	require.EqualError(t, &MissingError{Dir: "/d", Blobs: []string{"a (1)", "b (2)"}},
		"/d cannot continue: the store and the directory lack a (1), b (2)")
}

// TestImportedDirectories: what the store lacks comes from the files of the directory.
func TestImportedDirectories(t *testing.T) {
	w := working(t)
	d := w.projected(10)
	start, err := d.First()
	require.NoError(t, err)
	meta, err := d.Meta()
	require.NoError(t, err)
	store := treeStore{blobStore{}, &[]string{}}
	write(t, d, ArchivesDir+"/run-x/page.html", "of another run")
	write(t, d, TornDir+"/x", "torn")
	write(t, d, SnapshotManifest(2), "a tree")
	write(t, d, SnapshotDir(2)+"/tree/manifest.json", "a file of the tree")
	files, err := Import(t.Context(), d, store, start, meta.State)
	require.NoError(t, err)
	for name, text := range contents(t, d) {
		_, there := store.blobStore[disk.Digest([]byte(text))]
		in := path.Dir(name)
		skipped := in == LogsDir || in == TornDir || path.Base(in) == "run-x" || name == SpendFile ||
			name == SnapshotManifest(2)
		require.Equal(t, !skipped || text == "", there, name)
		if !skipped {
			files--
		}
	}
	require.Equal(t, 2, files, "the lock and the tree")
	require.Equal(t, []string{"a tree"}, *store.trees)
	again, err := Import(t.Context(), d, store, start, meta.State)
	require.NoError(t, err)
	require.Zero(t, again, "nothing is missing")
	require.NoError(t, os.Remove(d.Path("page.html")))
	require.NoError(t, os.RemoveAll(d.Path(CheckpointsDir)))
	delete(store.blobStore, disk.Digest([]byte("page 1")))
	files, err = Import(t.Context(), d, store, start, meta.State)
	require.Equal(t, &MissingError{Dir: d.Root, Blobs: []string{"the artifact (" +
		disk.Digest([]byte("page 1"))[:12] + ")"}}, err)
	require.Greater(t, files, 10)
	_, err = Import(t.Context(), d, deniedStore{}, start, meta.State)
	require.ErrorIs(t, err, fs.ErrPermission)

	write(t, d, SnapshotManifest(2), "damaged")
	_, err = Import(t.Context(), d, store, start, run.State{Artifact: blob("gone")})
	require.ErrorAs(t, err, new(*MissingError), "a changed manifest is skipped")
	write(t, d, SnapshotManifest(2), "denied")
	_, err = Import(t.Context(), d, store, start, run.State{Artifact: blob("gone")})
	require.EqualError(t, err, "store "+d.Path(SnapshotManifest(2))+": permission denied")
}

// treeStore is a store in memory that notes the trees.
type treeStore struct {
	blobStore
	trees *[]string
}

func (s treeStore) PutTree(_ context.Context, manifest []byte) error {
	switch string(manifest) {
	case "damaged":
		return disk.ErrDamaged
	case "denied":
		return fs.ErrPermission
	}
	*s.trees = append(*s.trees, string(manifest))
	return nil
}

// TestTreesOfTurns: the number of a turn is that of its folder, which has the tree too if the definition asks for it.
func TestTreesOfTurns(t *testing.T) {
	end := event(t, 9, run.KindPassEnd, run.PassEnd{Pass: run.Pass{Gives: "changes"}, Tree: blob("after")})
	for full, want := range map[string]map[string]string{"": {SnapshotManifest(5): "list of after"},
		run.SnapshotsFull: {SnapshotManifest(5): "list of after", SnapshotTree(5) + "/file": "after"}} {
		f, d := newFold(listed{}), At(t.TempDir())
		f.Header.Workspace, f.State.Turns = &Workspace{Snapshots: full, Source: "full"}, 4
		require.NoError(t, f.derive(end, run.State{Tree: blob("before")}))
		w := &exporter{ctx: t.Context(), dir: d, blobs: laidStore{}, fold: f}
		require.NoError(t, w.writeFiles())
		require.Equal(t, want, contents(t, d))
	}
	f := newFold(listed{})
	require.NoError(t, f.derive(end, run.State{}), "a run without a tree")
	require.Empty(t, f.Files)
}

// laidStore is a store of trees with one file.
type laidStore struct{ blobStore }

func (laidStore) Manifest(_ context.Context, tree string) ([]byte, error) {
	return []byte("list of " + tree), nil
}
func (laidStore) LayDown(_ context.Context, tree, dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return os.WriteFile(path.Join(dir, "file"), []byte(tree), 0o600)
}
