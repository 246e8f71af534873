package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// TestOwnAndForeignFiles: which entries of a directory the run created.
func TestOwnAndForeignFiles(t *testing.T) {
	w := &writer{t: t}
	text := run.Blob{Digest: disk.Digest([]byte("text"))}
	w.add(run.KindRunStart, run.RunStart{RunID: "r", Artifact: &run.ArtifactRef{File: "page.html", Seed: text},
		Notes: []run.NoteRef{{Name: "log", File: "log.md"}}})
	w.add(run.KindRunAmended, run.RunAmended{New: run.PlanRef{Plan: text.Digest}})
	w.add(run.KindNoteAppended, run.NoteAppended{File: "log.md", Whole: text})
	w.add(run.KindPassStart, run.PassStart{Pass: run.Pass{Dir: "shots/cycle-1", Redo: 2}, Prompt: text})
	w.add(run.KindPassStart, run.PassStart{Pass: run.Pass{Dir: "plain", Redo: 1}, Prompt: text})
	const in = Orchestrator + "/"
	own := []string{"page.html", ReportFile, in + "log.md", ResultFile, StateFile,
		OwnerFile, DefinitionFile, "meta.json.tmp.x", in + "plan.json.tmp.x", ".gitignore",
		PassesDir + "/x/y", in + "passes~12/x", in + "shots/a", in + "shots~1/a",
		in + "plain-redo-1/a", in + "plain-redo-1~1/a", in + "amended-2/plan.json", in + "steps/x", TornDir + "/x",
		MetaFile, LockFile, ClaimFile}
	foreign := []string{"mine.txt", in + "mine.md", "log.md", in + "page.html", in + "plain/a", in + "amended-3/plan.json",
		in + "kept/x", in + "-redo-3/x", "passes/x", in + "passes~x/y", "page.html~1"}
	files := map[string]string{}
	for _, name := range slices.Concat(own, foreign) {
		files[name] = "12345"
	}
	files[".gitignore"] = HiddenFromGit
	d := w.dir(files)
	require.NoError(t, os.Symlink(CostLog, d.Path(SpendFile)))
	require.NoError(t, os.Symlink("elsewhere", d.Path(WorkspaceDir)))
	require.NoError(t, os.Symlink("elsewhere", d.Path(ProvenanceFile)))
	require.NoError(t, os.Symlink("elsewhere", d.Path(EditsDir)))
	require.NoError(t, syscall.Mkfifo(d.Path(TracesFile), 0o600))
	entries := func(names []string) (all []string) {
		for _, name := range names {
			for n := strings.Count(name, "/"); ; n-- {
				if n == 0 || n == 1 && strings.HasPrefix(name, in) {
					break
				}
				name = path.Dir(name)
			}
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		return all
	}
	c, err := ReadContents(d)
	require.NoError(t, err)
	require.ElementsMatch(t, append(entries(own), SpendFile, WorkspaceDir, EventsFile), c.Own)
	others := []string{ProvenanceFile, EditsDir, TracesFile}
	require.ElementsMatch(t, append(entries(foreign), others...), c.Foreign)
	require.Equal(t, []string{MetaFile, EventsFile, LockFile, ClaimFile}, c.Own[len(c.Own)-4:])
	require.Equal(t, len(own)+3, c.Files, "with the journal and two links")
	require.Equal(t, int64(5*(len(own)-1)+len(HiddenFromGit)+len(strings.Join(w.lines, "\n"))+1), c.Bytes)
	require.NoError(t, os.WriteFile(d.Path(".gitignore"), []byte("mine\n"), 0o600))
	c, err = ReadContents(d)
	require.NoError(t, err)
	require.Contains(t, c.Foreign, ".gitignore")

	require.NoError(t, os.Remove(d.Path(TracesFile)))
	require.NoError(t, d.Remove())
	left := contents(t, d)
	for _, name := range own {
		if name != ".gitignore" {
			require.NotContains(t, left, name)
		}
	}
	for _, name := range foreign {
		require.Contains(t, left, name)
	}
}

// TestFolderOfTheArtifact is a user's, whatever it is in.
func TestFolderOfTheArtifact(t *testing.T) {
	w := &writer{t: t}
	w.add(run.KindRunStart, run.RunStart{RunID: "r", Artifact: &run.ArtifactRef{File: "site/page.html",
		Seed: run.Blob{Digest: disk.Digest([]byte("text"))}}})
	c, err := ReadContents(w.dir(map[string]string{"site/page.html": "text", "site/mine.html": "mine"}))
	require.NoError(t, err)
	require.Equal(t, []string{"site"}, c.Foreign)
}

// TestFilesOfUnreadableRuns: names in events that cannot be read are unknown, and their files stay.
func TestFilesOfUnreadableRuns(t *testing.T) {
	d := At(t.TempDir())
	write(t, d, "page.html", "")
	write(t, d, EventsFile+"/not a file", "")
	c, err := ReadContents(d)
	require.NoError(t, err)
	require.Equal(t, []string{"events.jsonl", "page.html"}, c.Foreign)
	require.Empty(t, c.Own)
	_, err = ReadContents(At(d.Path("none")))
	require.ErrorIs(t, err, fs.ErrNotExist)
	linked := At(t.TempDir())
	require.NoError(t, os.Symlink(d.Root, linked.Path(Orchestrator)))
	c, err = ReadContents(linked)
	require.NoError(t, err)
	require.Equal(t, []string{Orchestrator}, c.Foreign, "a link is foreign as a whole")
	inside := At(t.TempDir())
	write(t, inside, "real/passes/x", "")
	require.NoError(t, os.Symlink("real", inside.Path(Orchestrator)))
	c, err = ReadContents(inside)
	require.NoError(t, err)
	require.Equal(t, []string{Orchestrator, "real"}, c.Foreign)
	require.Empty(t, c.Own)
	file := At(t.TempDir())
	write(t, file, Orchestrator, "a file")
	c, err = ReadContents(file)
	require.NoError(t, err)
	require.Equal(t, []string{Orchestrator}, c.Foreign)
}

// TestArchivedRuns: an archive has all files of the run and a copy of the artifact, the directory is free, and files of
// an operator stay.
func TestArchivedRuns(t *testing.T) {
	w := working(t)
	d := w.projected(10)
	for _, name := range []string{"mine.txt", Orchestrator + "/mine.md", DeliveryPatch, SnapshotManifest(1),
		ResultFile} {
		write(t, d, name, "text of "+name)
	}
	require.NoError(t, d.LinkWorkspace("/the/workspace"))
	before := contents(t, d)
	to, err := d.Archive(t.Context())
	require.NoError(t, err)
	require.Equal(t, ArchivesDir+"/run-r-2026-01-02T03-04-01-000Z", to)
	got := contents(t, d)
	want := map[string]string{"page.html": "page 1", "mine.txt": before["mine.txt"]}
	for name, text := range before {
		if name != "mine.txt" {
			want[path.Join(to, strings.TrimPrefix(name, Orchestrator+"/"))] = text
		}
	}
	require.Equal(t, want, got)
	link, err := os.Readlink(d.Path(path.Join(to, SpendFile)))
	require.NoError(t, err)
	require.Equal(t, "logs/cost.jsonl", link)
	require.NoFileExists(t, d.Path(SpendFile))
	archived, err := d.Archived()
	require.NoError(t, err)
	require.Len(t, archived, 1)
	_, err = d.Archive(t.Context())
	require.ErrorIs(t, err, ErrNoRun)

	write(t, archived[0], "later.txt", "later")
	c, err := ReadContents(archived[0])
	require.NoError(t, err)
	require.Equal(t, []string{"later.txt", "mine.md"}, c.Foreign)
	require.Equal(t, ClaimFile, c.Own[len(c.Own)-1])
	require.NoError(t, d.Take(run.Claim{Version: run.ClaimVersion, RunID: "next"}), "the directory is free")
	write(t, d, ArchivesDir+"/other/x", "")
	write(t, d, ArchivesDir+"/file", "")
	write(t, d, Orchestrator+"/later.txt", "")
	c, err = ReadContents(d)
	require.NoError(t, err)
	require.Equal(t, []string{to}, c.Archived)
	require.Equal(t, []string{"mine.txt", "page.html", ArchivesDir + "/file", ArchivesDir + "/other",
		Orchestrator + "/later.txt"}, c.Foreign)
	require.Equal(t, []string{LockFile, ClaimFile}, c.Own)
	require.NoError(t, d.Remove())
	require.NoError(t, archived[0].Remove())
	require.Equal(t, map[string]string{"mine.txt": before["mine.txt"], "page.html": "page 1",
		ArchivesDir + "/other/x": "", ArchivesDir + "/file": "", Orchestrator + "/later.txt": "",
		path.Join(to, "later.txt"): "later",
		path.Join(to, "mine.md"):   before[Orchestrator+"/mine.md"]}, contents(t, d))

	empty := At(t.TempDir())
	require.NoError(t, os.MkdirAll(empty.Path(ArchivesDir), 0o700))
	write(t, empty, "mine.txt", "")
	c, err = ReadContents(empty)
	require.NoError(t, err)
	require.Equal(t, []string{ArchivesDir}, c.Own, "an empty folder is the run's")
	linked := At(t.TempDir())
	require.NoError(t, os.Mkdir(linked.Path(Orchestrator), 0o700))
	require.NoError(t, os.Symlink(d.Root, linked.Path(ArchivesDir)))
	c, err = ReadContents(linked)
	require.NoError(t, err)
	require.Equal(t, []string{ArchivesDir}, c.Foreign)
}

// TestInterruptedArchives: the next call completes an archive that was stopped before any step.
func TestInterruptedArchives(t *testing.T) {
	w := working(t)
	d := w.projected(10)
	to, err := d.Archive(t.Context())
	require.NoError(t, err)
	want := contents(t, d)
	for k := 0; ; k++ {
		d, n := w.projected(10), -1
		d.Disk = disk.Disk{Hook: func(disk.Step) error {
			if n++; n >= k {
				return os.ErrPermission
			}
			return nil
		}}
		_, err := d.Archive(t.Context())
		if err == nil {
			require.Greater(t, k, 10)
			break
		}
		require.ErrorIs(t, err, os.ErrPermission)
		d.Disk = disk.Disk{}
		again, err := d.Archive(t.Context())
		if errors.Is(err, ErrNoRun) { // the claim was moved, which is the last step
			again, err = to, nil
		}
		require.NoError(t, err)
		got := contents(t, d)
		maps.DeleteFunc(got, func(name, _ string) bool { return disk.IsTemp(path.Base(name)) })
		require.Equal(t, to, again, "step %d", k)
		require.Equal(t, want, got, "step %d", k)
	}
	for page, want := range map[string][]string{"": {"run.json", "spend.jsonl", "state.json"},
		"page.html": {"page.html", "run.json", "spend.jsonl", "state.json"}} {
		d := claimed(t)
		write(t, d, StateFile, fmt.Sprintf(`{"schemaVersion":3,"currentArtifactPath":%q}`, page))
		write(t, d, "page.html", "page")
		to, err := d.Archive(t.Context())
		require.NoError(t, err)
		entries, err := d.Entries(to)
		require.NoError(t, err)
		require.Equal(t, want, entries)
	}
	d = w.projected(10)
	require.NoError(t, os.Remove(d.Path("page.html")))
	_, err = d.Archive(t.Context())
	require.NoError(t, err, "the artifact is missing")
	d = w.projected(10)
	require.NoError(t, os.Remove(d.Path("page.html")))
	require.NoError(t, os.Mkdir(d.Path("page.html"), 0o700))
	_, err = d.Archive(t.Context())
	require.Error(t, err, "the artifact cannot be read")
	_, err = d.Claim()
	require.NoError(t, err)
}

// TestRemovedRuns: the claim is removed last, an interrupted removal can continue, and nothing is removed while another
// process writes.
func TestRemovedRuns(t *testing.T) {
	w := working(t)
	d := w.projected(10)
	held, err := LockForRemoval(d)
	require.NoError(t, err)
	before := contents(t, d)
	err = d.Remove()
	require.ErrorAs(t, err, new(*disk.ErrHeld))
	require.Equal(t, before, contents(t, d))
	require.NoError(t, held())
	d.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpRemove {
			require.Equal(t, map[string]string{"run.json": before["run.json"]}, contents(t, d))
			return os.ErrPermission
		}
		return nil
	}}
	err = d.Remove()
	require.ErrorIs(t, err, os.ErrPermission)
	require.ErrorContains(t, err, "remove run directory "+d.Root+": ")
	require.NoDirExists(t, d.Path(Orchestrator))
	d.Disk = disk.Disk{}
	require.NoError(t, d.Remove())
	require.NoDirExists(t, d.Root)

	kept := w.projected(10)
	write(t, kept, Orchestrator+"/mine.md", "mine")
	require.NoError(t, kept.Remove())
	require.Equal(t, map[string]string{Orchestrator + "/mine.md": "mine"}, contents(t, kept))
	newer := w.projected(10)
	write(t, newer, ClaimFile, `{"version":99,"run_id":"r"}`)
	_, err = LockForRemoval(newer)
	require.ErrorAs(t, err, new(*NewerError))

	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "real"), 0o700))
	require.NoError(t, os.Symlink("real", filepath.Join(root, "link")))
	for _, name := range []string{"link", "none"} {
		require.NoError(t, RemoveEmpty(At(filepath.Join(root, name))))
	}
	require.DirExists(t, filepath.Join(root, "real"), "the target of a link stays")
	require.NoError(t, RemoveEmpty(At(filepath.Join(root, "real"))))
	require.NoDirExists(t, filepath.Join(root, "real"))
	require.NoError(t, removeFolder(filepath.Join(root, "none")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "file"), nil, 0o600))
	require.ErrorIs(t, removeFolder(filepath.Join(root, "file")), syscall.ENOTDIR)
}

// TestClaims: the first claim wins, and only the claim of the run itself is removed.
func TestClaims(t *testing.T) {
	d := At(t.TempDir() + "/run")
	c := run.Claim{Version: run.ClaimVersion, RunID: "r", ThreadID: "thread", Pipeline: "p", CreatedAt: "then"}
	require.NoError(t, d.Take(c))
	require.NoError(t, d.Take(c))
	other := c
	other.CreatedAt = "later"
	var held *ClaimedError
	require.ErrorAs(t, d.take(other), &held)
	require.Equal(t, ClaimedError{Dir: d.Root, Holder: c}, *held)
	require.ErrorAs(t, d.Take(run.Claim{Version: run.ClaimVersion, RunID: "thread"}), &held)
	require.NoError(t, RemoveClaim(d, run.Claim{RunID: "other"}))
	got, err := d.Claim()
	require.NoError(t, err)
	require.Equal(t, c, got)
	require.NoError(t, RemoveClaim(d, c))
	require.NoFileExists(t, d.Path(ClaimFile))
	require.NoError(t, RemoveClaim(d, c))
	fails := At(t.TempDir() + "/run")
	fails.Disk = disk.Disk{Hook: func(s disk.Step) error {
		if s.Op == disk.OpWrite {
			return os.ErrPermission
		}
		return nil
	}}
	require.ErrorIs(t, fails.Take(c), os.ErrPermission)
}
