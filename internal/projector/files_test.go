package projector

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestKeptFilesHaveTheirOwnNames: a file of an operator is never replaced by another one.
func TestKeptFilesHaveTheirOwnNames(t *testing.T) {
	d := At(t.TempDir())
	for _, want := range []string{"notes/a.txt", "notes/a.txt~2", "notes/a.txt~3"} {
		file := filepath.Join(d.Root, "in the way")
		require.NoError(t, os.WriteFile(file, []byte(want), 0o600))
		to, err := d.KeepFile(file, filepath.Join("notes", "a.txt"))
		require.NoError(t, err)
		require.Equal(t, "_orchestrator/kept/"+want, to)
		require.NoFileExists(t, file)
		text, err := d.ReadFile(to)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
}

// TestPromotionsAreRecordedOnce, each as an event, and what an interrupted write left is kept.
func TestPromotionsAreRecordedOnce(t *testing.T) {
	d := At(t.TempDir())
	write(t, d, layout.PromotionsFile, "")
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	promote := func(id, target string) {
		require.NoError(t, d.Promoting(t.Context(), noon, func() (run.DeliveryCompleted, error) {
			return run.DeliveryCompleted{ID: id, Action: "promote", Target: target}, nil
		}))
	}
	promote("a", "one")
	promote("a", "again")
	require.NoDirExists(t, d.Path(layout.TornDir), "nothing was interrupted")
	f, err := os.OpenFile(d.Path(layout.PromotionsFile), os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString("{")
	require.NoError(t, errors.Join(err, f.Close()))
	promote("b", "two")
	raw, err := d.ReadFile(layout.PromotionsFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	require.Len(t, lines, 2)
	for i, want := range []string{"one", "two"} {
		e, err := run.ParseLine(lines[i])
		require.NoError(t, err)
		require.Equal(t, []any{int64(i + 1), run.KindDeliveryCompleted, "delivery", "2026-01-02T12:00:00.000Z"},
			[]any{e.Seq, e.Kind, *e.Phase, e.TS})
		p, err := rundir.Promotion(lines[i])
		require.NoError(t, err)
		require.Equal(t, want, p.Target)
	}
	torn, err := d.ReadFile(layout.TornDir + "/promotions-after-1-" + layout.Digest([]byte("{"))[:8] + ".txt")
	require.NoError(t, err)
	require.Equal(t, "{", string(torn))
	stop := errors.New("stop")
	require.ErrorIs(t, d.Promoting(t.Context(), noon, func() (run.DeliveryCompleted, error) {
		return run.DeliveryCompleted{ID: "c"}, stop
	}), stop)
	past, err := d.Promotions()
	require.NoError(t, err)
	require.Len(t, past, 2, "a copy that failed is not a promotion")
}

// TestOwnerOfFiles finds the run whose files are here without its claim.
func TestOwnerOfFiles(t *testing.T) {
	w := &writer{t: t}
	w.add(run.KindRunStart, run.RunStart{RunID: "journal"})
	none := &writer{t: t}
	state := func(id string) string {
		s := rundir.NewState()
		s.RunID, s.StartedAt = id, "2026-01-02T03:04:05.000Z"
		raw, err := json.Marshal(s)
		require.NoError(t, err)
		return string(raw)
	}
	meta, owner, old := `{"run_id":"meta"}`, `{"run_id":"owner"}`, state("state")
	require.Equal(t, "journal", leftBy(w.dir(map[string]string{layout.MetaFile: meta, layout.OwnerFile: owner})))
	require.Equal(t, "meta", leftBy(none.dir(map[string]string{layout.MetaFile: meta, layout.OwnerFile: owner})))
	require.Equal(t, "meta", leftBy(none.dir(map[string]string{layout.EventsFile: "{}\n", layout.MetaFile: meta})))
	unnamed := &writer{t: t}
	unnamed.add(run.KindRunStart, run.RunStart{})
	require.Equal(t, "meta", leftBy(unnamed.dir(map[string]string{layout.MetaFile: meta})))
	require.Equal(t, "owner", leftBy(none.dir(map[string]string{layout.OwnerFile: owner, layout.StateFile: old})))
	require.Equal(t, "owner", leftBy(none.dir(map[string]string{layout.MetaFile: "{}", layout.OwnerFile: owner})))
	require.Equal(t, "state", leftBy(none.dir(map[string]string{layout.StateFile: old})))
	require.Equal(t, "state", leftBy(none.dir(map[string]string{layout.OwnerFile: "{}", layout.StateFile: old})))
	require.Empty(t, leftBy(none.dir(map[string]string{layout.StateFile: "{"})))
	require.Empty(t, leftBy(none.dir(map[string]string{})))

	strange := func(claimed string, files map[string]string) error {
		if claimed != "" {
			files[layout.ClaimFile] = `{"run_id":"` + claimed + `"}`
		}
		return Strange(w.dir(files), rundir.Meta{RunID: "meta"})
	}
	require.ErrorIs(t, strange("journal", map[string]string{}), layout.ErrDamaged)
	require.ErrorContains(t, strange("journal", map[string]string{}), "it is of run meta")
	require.NoError(t, strange("meta", map[string]string{}))
	require.NoError(t, strange("other", map[string]string{}), "the claim may be the one of another run")
	require.NoError(t, strange("", map[string]string{}))
	claimed := w.dir(map[string]string{layout.ClaimFile: `{"run_id":"journal"}`})
	require.NoError(t, Strange(claimed, rundir.Meta{}))

	claim := run.Claim{RunID: "r", Pipeline: "p", CreatedAt: "2026-01-01T00:00:00.000Z"}
	for want, files := range map[string]map[string]string{
		"archives/run-r-2026-01-01T00-00-00-000Z": {},
		"archives/run-r-2026-01-02T03-04-05-000Z": {layout.StateFile: state("r")},
		"archives/run-r-earlier":                  {layout.ArchivesDir + "/run-r-earlier/x": "", layout.StateFile: old},
	} {
		name, err := archiveName(none.dir(files), claim)
		require.NoError(t, err)
		require.Equal(t, "_orchestrator/"+want, name)
	}
	for _, files := range []map[string]string{{layout.ArchivesDir + "/run-other-x/x": ""},
		{layout.StateFile: strings.Replace(state("r"), "2026-01-02T03:04:05.000Z", "", 1)}} {
		name, err := archiveName(none.dir(files), claim)
		require.NoError(t, err)
		require.Equal(t, "_orchestrator/archives/run-r-2026-01-01T00-00-00-000Z", name)
	}
	_, err := archiveName(none.dir(map[string]string{layout.ArchivesDir: ""}), claim)
	require.Error(t, err)
}

func TestPathsOfTargets(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Join(root, "real", "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "real", "file"), nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(root, "real"), filepath.Join(root, "link")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(root, "lost")))
	in := func(name string) string { return filepath.Join(root, name) }
	for path, want := range map[string]target{
		"real":      {path: in("real"), real: in("real"), inside: []string{"file", "sub/"}},
		"link":      {path: in("link"), real: in("real"), inside: []string{"file", "sub/"}},
		"link/a/b":  {path: in("link/a/b"), real: in("real/a/b"), above: in("link")},
		"real/none": {path: in("real/none"), real: in("real/none"), above: in("real")},
	} {
		got, err := look(in(path))
		require.NoError(t, err, path)
		require.Equal(t, want, got, path)
		require.NoError(t, got.writable())
	}
	for path, want := range map[string]string{"real/file": "is not a directory", "real/file/x": "is not a directory",
		"lost": "is a symbolic link to nowhere, which does not exist", "lost/x": "is a symbolic link to nowhere"} {
		_, err := look(in(path))
		var refused *TargetError
		require.ErrorAs(t, err, &refused, path)
		require.Contains(t, refused.Why, want, path)
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, "real", layout.ClaimFile), []byte(`{"run_id":"r"}`), 0o600))
	for path, refused := range map[string]bool{"real": true, "real/a/b": true, "other": false} {
		got, err := look(in(path))
		require.NoError(t, err)
		err = got.outsideOfRuns()
		require.Equal(t, refused, err != nil, path)
		if refused {
			require.ErrorContains(t, err, "it is in the directory of run r, "+in("real"))
		}
	}
	names := strings.Split("abcdefghijkl", "")
	require.Equal(t, "a, b, c, d, e, f, g, h, i, j", some(names[:10]))
	require.Equal(t, "a, b, c, d, e, f, g, h, i, j and 2 more", some(names))
	require.Equal(t, "a, b, c, d, e, f, g, h, i, j and 1 more", some(names[:11]))
	require.Equal(t, "a", some(names[:1]))
	require.NoError(t, target{}.empty(nil))
	require.ErrorContains(t, target{path: "p"}.empty(names[:2]), "it is not empty (in the way: a, b)")
}

// blobStore is a store in memory.
type blobStore map[string][]byte

func (b blobStore) Get(_ context.Context, digest string) ([]byte, error) {
	if raw, ok := b[digest]; ok {
		return raw, nil
	}
	return nil, fs.ErrNotExist
}

func (b blobStore) Put(_ context.Context, data []byte) (string, error) {
	b[layout.Digest(data)] = data
	return layout.Digest(data), nil
}
func (b blobStore) Name(context.Context, string, []byte) error { return nil }
func (b blobStore) Manifest(ctx context.Context, tree string) ([]byte, error) {
	return b.Get(ctx, tree)
}
func (b blobStore) LayDown(context.Context, string, string) error { return nil }
func (b blobStore) PutTree(context.Context, []byte) error         { return nil }

// TestContentMissingFromStore lists what a run needs to continue, with what its lists name.
func TestContentMissingFromStore(t *testing.T) {
	b := blobStore{}
	blob := func(text string) *run.Blob {
		digest, err := b.Put(t.Context(), []byte(text))
		require.NoError(t, err)
		return &run.Blob{Digest: digest}
	}
	kept := blob("x").Digest
	inputs := blob(`{"version":1,"files":[{"path":"a.md","digest":"` + kept + `"},{"path":"b.md","digest":"gone-b"}]}`)
	shots, err := json.Marshal([]run.Shot{{Name: "p.png", Digest: kept}, {Name: "q.png", Digest: "gone-q"}})
	require.NoError(t, err)
	pictures := blob(string(shots))
	start := run.RunStart{Plan: blob("plan").Digest, Definition: "gone-definition", Inputs: inputs.Digest,
		Brief: &run.Blob{Digest: "gone-brief"}}
	s := run.State{Artifact: &run.Blob{Digest: "gone-artifact"}, Pictures: pictures, Tree: &run.Blob{Digest: "gone-tree"},
		Notes:   []run.Notes{{File: "n.md", Whole: run.Blob{Digest: "gone-notes"}}},
		Replies: []run.Reply{{Step: "fix", Reply: run.Blob{Digest: "gone-reply"}}, {Step: "look", Reply: *blob("reply")}}}
	lacks, err := missingNeeds(t.Context(), b, start, s)
	require.NoError(t, err)
	got := map[string]string{}
	for _, n := range lacks {
		got[n.what] = n.digest
	}
	require.Equal(t, map[string]string{"the definition": "gone-definition", "the brief of the parent": "gone-brief",
		"the artifact": "gone-artifact", "notes n.md": "gone-notes", "the reply of fix": "gone-reply", "input b.md": "gone-b",
		"picture q.png": "gone-q", "the list of the workspace's files": "gone-tree"}, got)
	s.Plan = &run.CurrentPlan{}
	require.NoError(t, json.Unmarshal([]byte(`{"seq":3,"plan":"gone-plan","definition":"gone-new","inputs":"`+
		inputs.Digest+`"}`), s.Plan))
	lacks, err = missingNeeds(t.Context(), b, start, s)
	require.NoError(t, err)
	require.Contains(t, lacks, need{"the amended plan", "gone-plan"})
	require.Contains(t, lacks, need{"the amended definition", "gone-new"})
	bad := blob("{").Digest
	_, err = missingNeeds(t.Context(), b, run.RunStart{Inputs: bad}, run.State{})
	require.ErrorContains(t, err, "manifest of inputs "+bad+": ")
	_, err = missingNeeds(t.Context(), b, run.RunStart{}, run.State{Pictures: &run.Blob{Digest: bad}})
	require.ErrorContains(t, err, "manifest of pictures "+bad+": ")
	none, err := missingNeeds(t.Context(), b, run.RunStart{}, run.State{})
	require.NoError(t, err)
	require.Empty(t, none)
}
