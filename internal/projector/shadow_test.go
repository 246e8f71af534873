package projector

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

// shadowed is the list of files for the events up to last, of which those after committed are being added.
func (w *writer) shadowed(d Dir, deep Blobs, committed, last int64) *Shadow {
	w.t.Helper()
	s, header := NewShadow(w.t.Context(), d, deep), records.Header{}
	p := &Projector{}
	p.extend(w.lines[:last])
	for i, e := range p.unseen {
		s.More = e.Seq > committed
		header.Fold(e)
		s.Take(e, p.chains[i], &header.Meta)
	}
	return s
}

// TestExpectedFiles: the list for the events of a directory names its files with their digests, and nothing else.
func TestExpectedFiles(t *testing.T) {
	w := detour(t)
	w.revert(9)
	w.settle(numbered(2, "report"), "")
	w.add(run.KindRunEnd, run.RunEnd{Status: run.Done})
	d := w.projected(w.last())
	s := w.shadowed(d, nil, w.last(), w.last())
	require.NoError(t, s.Err)
	require.Nil(t, s.Blobs)
	files := contents(t, d)
	for name, f := range s.Files {
		text, there := files[name]
		require.True(t, there, name)
		require.Contains(t, f.Digests, layout.Digest([]byte(text)), name)
		require.Equal(t, []any{name != layout.ResultFile, false, ""}, []any{f.Blob, f.Gone, f.Tree}, name)
		delete(files, name)
	}
	for _, name := range append(records.Growing(), layout.StateFile, layout.MetaFile, layout.EventsFile, layout.ClaimFile,
		layout.SpendFile) {
		require.Contains(t, files, name, "it is not listed")
		delete(files, name)
	}
	for name := range files {
		require.Regexp(t, `checkpoints/.*/(state-snapshot|manifest).json$`, name, "every file of events is listed")
	}
	require.Contains(t, s.Files, layout.PassesDir+"/pass-003~1/raw-output.txt")
	require.NotContains(t, s.Files, layout.PassesDir+"/pass-003/raw-output.txt")
	require.Equal(t, []string{layout.CheckpointDir("cp-S1") + "/artifact.html", layout.CheckpointDir("cp-S1") + "/log.md"},
		s.in(layout.CheckpointDir("cp-S1")))
	require.Empty(t, s.p.records.PassRecords, "no list grows with the run")
	require.Nil(t, s.p.records.Checkpoints)
	require.Nil(t, s.p.records.ErrorHistory)
	require.Contains(t, s.Files, layout.ResultFile)

	deep := w.shadowed(d, w.store, w.last(), w.last())
	require.Equal(t, s.Files, deep.Files)
	require.Equal(t, layout.PassesDir+"/pass-001/prompt.md", deep.Blobs[layout.Digest([]byte("prompt of 001"))])
	require.Equal(t, "page.html", deep.Blobs[layout.Digest([]byte("seed"))], "the first of several files")
}

// TestFilesOfFurtherEvents: the files of events that no batch has committed may be there or not, so that earlier
// contents stay valid.
func TestFilesOfFurtherEvents(t *testing.T) {
	w := detour(t)
	n := w.last()
	w.revert(9)
	s := w.shadowed(w.projected(n), nil, n, n+1)
	require.NoError(t, s.Err)
	require.Equal(t, []string{layout.Digest([]byte("page 1")), layout.Digest([]byte("page 3"))},
		s.Files["page.html"].Digests)
	moved := layout.PassesDir + "/pass-003/raw-output.txt"
	require.True(t, s.Files[moved].Gone)
	require.NotContains(t, s.Files, layout.PassesDir+"/pass-003~1/raw-output.txt")
	require.False(t, s.Files[layout.PassesDir+"/pass-001/prompt.md"].Gone)
	s = w.shadowed(w.projected(2), nil, 2, 10)
	require.NotContains(t, s.Files, layout.PassesDir+"/pass-001/prompt.md", "it may not be written yet")
	require.Contains(t, s.Files, layout.PlanFile)
}

// TestListedFiles: what the list has of a file, by the source of its contents.
func TestListedFiles(t *testing.T) {
	s := NewShadow(t.Context(), At(t.TempDir()), blobStore{})
	s.w.add(wholeFile{name: "a//page.html", digest: "d"})
	s.w.add(wholeFile{name: layout.SnapshotManifest(1), tree: "t"})
	s.w.add(wholeFile{name: layout.ResultFile, data: []byte(`{"a":1}`)})
	s.w.add(wholeFile{name: "notes.md", data: []byte("text")})
	s.w.add(wholeFile{name: layout.CheckpointDir("cp") + "/manifest.json", data: []byte("{}")})
	s.w.add(wholeFile{name: layout.CheckpointDir("cp") + "/artifact.html", digest: "d"})
	require.NoError(t, s.Err)
	require.Equal(t, map[string]ShadowFile{
		"a/page.html":              {Digests: []string{"d"}, Blob: true},
		layout.SnapshotManifest(1): {Tree: "t"},
		layout.ResultFile:          {Digests: []string{layout.Digest([]byte(`{"a":1}`))}, Object: []byte(`{"a":1}`)},
		"notes.md":                 {Digests: []string{layout.Digest([]byte("text"))}},
		layout.CheckpointDir("cp") + "/artifact.html": {Digests: []string{"d"}, Blob: true},
	}, s.Files)
	require.Equal(t, map[string]string{"d": "a/page.html"}, s.Blobs)
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("many/%02d.md", i))
		s.w.add(wholeFile{name: many[i], digest: "d"})
	}
	require.Equal(t, many, s.in("many"))
	s.move("none", "elsewhere")
	require.NotContains(t, s.Files, "elsewhere")
	s.move("notes.md", "moved.md")
	require.NotContains(t, s.Files, "notes.md")
	require.Equal(t, []string{layout.Digest([]byte("text"))}, s.Files["moved.md"].Digests)

	s.w.add(wholeFile{name: "../mine.txt", data: []byte("x")})
	require.EqualError(t, s.Err, "../mine.txt is not in "+s.p.Dir.Root)
	s.Take(event(t, 1, run.KindRunStart, run.RunStart{Plan: "p"}), "", nil)
	require.NotContains(t, s.Files, layout.PlanFile, "nothing is added after an error")
	store := blobStore{}
	damaged := NewShadow(t.Context(), At(t.TempDir()), store)
	damaged.Take(event(t, 1, run.KindRunStart, run.RunStart{Inputs: store.keep(t, "{").Digest}), "",
		&(&records.Header{}).Meta)
	require.ErrorContains(t, damaged.Err, "manifest of inputs ")
	hostile := NewShadow(t.Context(), At(t.TempDir()), nil)
	header := records.Header{}
	e := event(t, 1, run.KindNoteAppended, run.NoteAppended{File: "../../x", Whole: run.Blob{Digest: "d"}})
	hostile.Take(e, "", &header.Meta)
	require.ErrorContains(t, hostile.Err, "../x is not in ")
}

// TestListsOfShadows: lists come from the directory, else from the store, and one that neither has is empty.
func TestListsOfShadows(t *testing.T) {
	d := At(t.TempDir())
	for name, text := range map[string]string{
		layout.InputsFile: "inputs", layout.AmendedDir(3) + "/inputs.json": "amended",
		layout.Orchestrator + "/shots/manifest.json": "pictures", layout.CheckpointDir("cp") + "/manifest.json": "checkpoint",
		layout.ArchivesDir + "/run/inputs.json": "archive", layout.InputsDir + "/manifest.json": "an input",
		layout.PlanFile: "plan"} {
		write(t, d, name, text)
	}
	get := func(b *shadowBlobs, text string) string {
		raw, err := b.Get(t.Context(), layout.Digest([]byte(text)))
		require.NoError(t, err)
		return string(raw)
	}
	store := blobStore{}
	for _, text := range []string{"stored", "inputs"} {
		store.keep(t, text)
	}
	for _, deep := range []Blobs{nil, store} {
		b := &shadowBlobs{dir: d.Dir, store: deep}
		for _, text := range []string{"inputs", "amended", "pictures"} {
			require.Equal(t, text, get(b, text))
		}
		for _, text := range []string{"checkpoint", "archive", "an input", "plan", "none"} {
			require.Equal(t, "null", get(b, text), text)
		}
		require.Equal(t, map[bool]string{true: "null", false: "stored"}[deep == nil], get(b, "stored"))
		write(t, d, layout.InputsFile, "later")
		require.Equal(t, "null", get(b, "later"), "the directory is read once")
		write(t, d, layout.InputsFile, "inputs")
	}
	_, err := (&shadowBlobs{dir: d.Dir, store: deniedStore{}}).Get(context.Background(), "gone")
	require.ErrorIs(t, err, fs.ErrPermission)
	none := &shadowBlobs{dir: At(t.TempDir()).Dir}
	require.Equal(t, "null", get(none, "x"))
	require.NoError(t, os.RemoveAll(d.Path(layout.InputsFile)))
	require.NoError(t, os.Symlink("plan.json", d.Path(layout.InputsFile)))
	require.Equal(t, "null", get(&shadowBlobs{dir: d.Dir}, "plan"), "a link is no list")
}
