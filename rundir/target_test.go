package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestRefusedTargets: each refusal names the path, the cause and what to do.
func TestRefusedTargets(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	in := func(name string) string { return filepath.Join(root, name) }
	const another, outside = "Name a missing or empty directory", "Name a directory outside of it"
	file, inRun := in("full/a.txt")+" is not a directory", "it is in the directory of run r, "+in("run")
	write(t, At(root), "full/a.txt", "")
	write(t, At(root), "full/sub/b.txt", "")
	write(t, At(root), "run/run.json", `{"version":1,"run_id":"r","projects":["web"]}`)
	write(t, At(root), "run/web/x", "")
	require.NoError(t, os.Mkdir(in("empty"), 0o700))
	require.NoError(t, os.Symlink("nowhere", in("lost")))
	require.NoError(t, os.Symlink("full", in("link")))
	for i := range 12 {
		write(t, At(root), fmt.Sprintf("many/%02d", i), "")
	}
	for name, row := range map[string]struct {
		check     func(string) error
		path      string
		why, next string
		cause     error
	}{
		"files in the way": {Vacant, "full", "it is not empty (in the way: a.txt, sub/)",
			another + ", or move these files away", nil},
		"many files in the way": {Vacant, "many",
			"it is not empty (in the way: 00, 01, 02, 03, 04, 05, 06, 07, 08, 09 and 2 more)",
			another + ", or move these files away", nil},
		"files below a link": {Vacant, "link", "it is not empty (in the way: a.txt, sub/)",
			another + ", or move these files away", nil},
		"missing, below a link": {Vacant, "link/x/y", "", "", nil},
		"not a directory":       {Vacant, "full/a.txt", file, another, syscall.ENOTDIR},
		"a file above":          {Writable, "full/a.txt/x", file, another, syscall.ENOTDIR},
		"a broken link": {Writable, "lost/x", in("lost") + " is a symbolic link to nowhere, which does not exist",
			another, fs.ErrNotExist},
		"a run":             {Writable, "run", inRun, outside, nil},
		"below a run":       {Vacant, "run/a/b", inRun, outside, nil},
		"below its project": {Writable, "run/web/a", inRun, outside, nil},
		"empty":             {Vacant, "empty", "", "", nil},
		"missing":           {Vacant, "empty/a/b", "", "", nil},
		"writable":          {Writable, "full", "", "", nil},
		"for its project":   {Writable, "run/web", "", "", nil},
	} {
		err := row.check(in(row.path))
		if row.why == "" {
			require.NoError(t, err, name)
			continue
		}
		var refused *TargetError
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, in(row.path), refused.Path, name)
		require.Equal(t, row.why, refused.Why, name)
		require.Equal(t, row.next, refused.Next, name)
		require.EqualError(t, refused, "write to "+in(row.path)+": "+row.why+"; nothing was written or started. "+row.next)
		require.Equal(t, row.cause == nil, refused.Unwrap() == nil, name)
		require.True(t, errors.Is(err, row.cause) || row.cause == nil, name)
	}
	require.Empty(t, ownerOf(in("none")))

	gone := target{path: in("gone"), real: in("other")}
	var refused *TargetError
	require.ErrorAs(t, gone.writable(), &refused)
	require.Equal(t, TargetError{Path: in("gone"), Why: in("gone") + " cannot be written: no such file or directory",
		Next: "Name a directory that you may write to, or change its permissions", Err: syscall.ENOENT}, *refused)
	gone.above = in("empty")
	require.NoError(t, gone.writable(), "the directory above it counts")
	gone.above = in("above")
	require.ErrorContains(t, gone.writable(), in("above")+" cannot be written: ")
	require.Equal(t, "Name a directory on another file system", afterDenied(syscall.EROFS))
	require.NotEqual(t, afterDenied(syscall.EROFS), afterDenied(syscall.EACCES))
}

// TestTargetsOfRuns: which run may write to a directory, by what earlier runs have left in it.
func TestTargetsOfRuns(t *testing.T) {
	w := working(t)
	dir := func(files map[string]string) Dir {
		d := At(t.TempDir())
		for name, text := range files {
			write(t, d, name, text)
		}
		return d
	}
	archived := w.projected(10)
	_, err := archived.Archive(t.Context())
	require.NoError(t, err)
	broken := w.projected(10)
	write(t, broken, ClaimFile, "{")
	empty := dir(map[string]string{ClaimFile: "{"})
	const restore = "mv run.json run.json.damaged && starter rebuild r --output-dir "
	for name, row := range map[string]struct {
		d      Dir
		run    string
		err    string // empty: it may
		usable bool
	}{
		"a claim of an interrupted start": {dir(map[string]string{ClaimFile + ".tmp.x": "", LockFile: ""}),
			"r", "", true},
		"another temporary file": {dir(map[string]string{ClaimFile + ".tmp": ""}), "r",
			"in the way: run.json.tmp)", false},
		"a file of another name": {dir(map[string]string{"my.tmp.x": ""}), "r", "in the way: my.tmp.x)", false},
		"an archived run":        {archived, "other", "", true},
		"a folder of archives": {dir(map[string]string{ArchivesDir + "/x/y": ""}), "r", "in the way: _orchestrator/)",
			false},
		"an unreadable claim of the run": {broken, "r", "read " + broken.Path(ClaimFile) + ": ", false},
		"an unreadable claim of another": {broken, "other", "write to " + broken.Root + ": read " +
			broken.Path(ClaimFile) + ": ", false},
		"an unreadable claim": {empty, "r", "write to " + empty.Root + ": read " +
			empty.Path(ClaimFile) + ": ", false},
		"a claim of another program": {dir(map[string]string{ClaimFile: `{"name":"x"}`}), "r",
			"in the way: run.json)", false},
		"an unreadable claim, no run yet": {broken, "", "write to " + broken.Root + ": ", false},
	} {
		before := contents(t, row.d)
		err := MayTake(row.d, row.run)
		if row.err == "" {
			require.NoError(t, err, name)
		} else {
			require.ErrorContains(t, err, row.err, name)
			require.EqualError(t, row.d.Take(run.Claim{Version: run.ClaimVersion, RunID: row.run}), err.Error(), name)
		}
		require.Equal(t, row.usable, Usable(row.d) == nil, name)
		require.Equal(t, before, contents(t, row.d), "%s: nothing is written", name)
	}
	var unreadable *UnreadableError
	require.ErrorAs(t, MayTake(broken, "r"), &unreadable)
	require.Equal(t, broken.Path(ClaimFile), unreadable.File)
	require.Equal(t, strings.NewReplacer("run.json", broken.Path(ClaimFile)).Replace(restore)+broken.Root,
		unreadable.Next)
	lost := w.projected(10)
	require.NoError(t, os.Remove(lost.Path(ClaimFile)))
	write(t, lost, LockFile, "")
	err = MayTake(lost, "other")
	require.ErrorContains(t, err, "To restore that run's directory: starter rebuild r --output-dir "+lost.Root)
	require.ErrorContains(t, err, "it holds files of run r and has no run.json (in the way: _orchestrator/, events.jsonl")
	require.ErrorAs(t, MayTake(w.projected(10), "thread"), new(*ClaimedError))

	newer := w.projected(10)
	write(t, newer, MetaFile, `{"version":99}`)
	require.ErrorAs(t, MayWrite(newer), new(*NewerError))
	require.ErrorIs(t, MayWrite(At(lost.Path(EventsFile))), syscall.ENOTDIR)
	_, err = lock(t.Context(), newer, "test")
	require.ErrorAs(t, err, new(*NewerError))
}

// TestConcurrentClaimWins: a start that another one overtakes between its reads is refused with the holder.
func TestConcurrentClaimWins(t *testing.T) {
	for round := range 100 {
		d, taken := At(t.TempDir()+"/run"), make(chan error, 1)
		go func() { taken <- d.Take(run.Claim{Version: run.ClaimVersion, RunID: "r"}) }()
		for checked := false; !checked; {
			if err := MayTake(d, "other"); err != nil {
				require.ErrorAs(t, err, new(*ClaimedError), "round %d", round)
				checked = true
			}
		}
		require.NoError(t, <-taken)
	}
}

// TestOwnersOfTargets: who may write to a directory, by what is in it.
func TestOwnersOfTargets(t *testing.T) {
	w, _ := looped(t)
	claim := `{"version":1,"run_id":"r","pipeline":"p","created_at":"then"}`
	empty, linked := &writer{t: t}, At(t.TempDir())
	require.NoError(t, linked.LinkWorkspace("/workspaces/repo/r"))
	const inTheWay, ofRun = "in the way: ", "it holds files of run r and has no run.json"
	for name, row := range map[string]struct {
		d                              Dir
		take, other, continues, vacant string // errors; empty: none
	}{
		"empty":  {d: empty.dir(map[string]string{})},
		"a lock": {d: empty.dir(map[string]string{LockFile: ""}), vacant: inTheWay + LockFile},
		"its run": {d: w.dir(map[string]string{ClaimFile: claim}), other: "belongs to run r (p, started then)",
			vacant: "it is in the directory of run r"},
		"its events":            {d: w.dir(map[string]string{}), other: ofRun, vacant: inTheWay},
		"an owner":              {d: empty.dir(map[string]string{OwnerFile: `{"run_id":"r"}`}), other: ofRun, vacant: inTheWay},
		"a link to a workspace": {linked, inTheWay + "workspace", inTheWay + "workspace", "", inTheWay + "workspace"},
		"a folder in its place": {empty.dir(map[string]string{WorkspaceDir + "/a": ""}), inTheWay + "workspace/",
			inTheWay + "workspace/", inTheWay + "workspace/", inTheWay + "workspace/"},
		"other files": {empty.dir(map[string]string{"a.txt": "", "b.txt": ""}), inTheWay + "a.txt, b.txt",
			inTheWay + "a.txt, b.txt", inTheWay + "a.txt, b.txt", inTheWay + "a.txt, b.txt"},
	} {
		for i, check := range []struct {
			err  error
			want string
		}{{MayTake(row.d, "r"), row.take}, {MayTake(row.d, "x"), row.other}, {MayContinue(row.d, "r"), row.continues},
			{Vacant(row.d.Root), row.vacant}} {
			if check.want == "" {
				require.NoError(t, check.err, "%s %d", name, i)
			} else {
				require.ErrorContains(t, check.err, check.want, "%s %d", name, i)
			}
		}
		require.NoError(t, MayWrite(row.d), name)
		require.Equal(t, name == "its run", Writable(row.d.Root+"/new") != nil, name)
		require.Equal(t, row.other == "" || name == "its run", Usable(row.d) == nil, name)
	}
}
