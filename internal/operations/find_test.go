package operations

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestFind(t *testing.T) {
	state, here, there := t.TempDir(), filepath.Join(t.TempDir(), "here"), filepath.Join(t.TempDir(), "there")
	for id, dir := range map[string]string{"aa11": here, "aa22": there} {
		require.NoError(t, rundir.At(dir).Take(run.Claim{Version: 1, RunID: id}))
		require.NoError(t, Index(state, id, dir))
	}
	t.Chdir(here)
	tests := []struct{ name, what, want string }{
		{"directory", there, there},
		{"nothing is the current directory", "", here},
		{"relative directory", "../here", here},
		{"id", "aa22", there},
		{"beginning of an id", "aa1", here},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := must(Find(state, tt.what, false))(t)
			require.Equal(t, tt.want, d.Root)
		})
	}

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, rundir.MetaFile), []byte("{}"), 0o600))
	_, err := Find(state, other, false)
	require.ErrorIs(t, err, rundir.ErrNoRun)
	require.ErrorContains(t, err, "it has meta.json, and no run.json", "another program's")

	var name *NameError
	_, err = Find(state, "aa", false)
	require.ErrorAs(t, err, &name)
	require.Equal(t, []string{"aa11", "aa22"}, name.Found)
	_, err = Find(state, "bb", false)
	require.ErrorAs(t, err, &name)
	require.Empty(t, name.Found)
	_, err = Find(state, t.TempDir(), false)
	require.ErrorIs(t, err, rundir.ErrNoRun)
}

func TestRecorded(t *testing.T) {
	state, root := t.TempDir(), t.TempDir()
	at := func(name, id string) rundir.Dir {
		d := rundir.At(filepath.Join(root, name))
		require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id}))
		return d
	}
	first, lane, copied := at("first", "aa11"), at("first/lanes/build/one", "aa11.build.1"), at("copy", "aa11")
	laneOfCopy := at("copy/lanes/build/one", "aa11.build.1")
	require.NoError(t, Index(state, "aa11", first.Root))
	require.NoError(t, os.Symlink(first.Root, filepath.Join(root, "link")))
	for name, c := range map[string]struct {
		dir  rundir.Dir
		id   string
		want bool
	}{
		"its directory":    {first, "aa11", true},
		"a link to it":     {rundir.At(filepath.Join(root, "link")), "aa11", true},
		"a lane":           {lane, "aa11.build.1", true},
		"a copy":           {copied, "aa11", false},
		"a lane of a copy": {laneOfCopy, "aa11.build.1", false},
		"another run":      {at("other", "bb22"), "bb22", false},
	} {
		known, _, err := Recorded(state, c.dir, c.id)
		require.NoError(t, err, name)
		require.Equal(t, c.want, known, name)
	}
	require.NoError(t, os.Rename(first.Root, filepath.Join(root, "moved")))
	known, _, err := Recorded(state, rundir.At(filepath.Join(root, "moved")), "aa11")
	require.NoError(t, err)
	require.True(t, known, "it was moved")
}

// TestIndexKeepsAnEqualRecord: a resume works with a state directory that is full.
func TestIndexKeepsAnEqualRecord(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, Index(state, "one", "/runs/1"))
	folder := filepath.Join(state, "index")
	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(folder, long, long))
	require.NoError(t, Index(state, "one", "/runs/1"))
	require.WithinDuration(t, long, must(os.Stat(folder))(t).ModTime(), time.Second)

	require.NoError(t, Index(state, "one", "/runs/moved"))
	require.Equal(t, "/runs/moved\n", string(must(os.ReadFile(filepath.Join(folder, "one")))(t)))
}

func TestElsewhereNamesTheHost(t *testing.T) {
	f := &fakeTemporal{described: map[string]enumspb.WorkflowExecutionStatus{"r-1": isOpen}, answers: map[string]any{
		contract.QueryStatus:    run.State{RunID: "r-1", Status: run.Running},
		contract.QueryDirectory: contract.DirectoryAnswer{Dir: "/far", Queue: "passbook-dir-there"},
	}}
	o := Operator{Client: f}
	far := must(o.Elsewhere(t.Context(), "r-1"))(t)
	require.Equal(t, run.Running, far.State.Status)
	require.Equal(t, run.LiveOpen, far.Effective.Liveness)
	require.Equal(t, "the host of task queue passbook-dir-there", far.Host)
	f.pollers = map[string]*taskqueuepb.PollerInfo{"passbook-dir-there": poller("1@far.example@", time.Now())}
	far = must(o.Elsewhere(t.Context(), "r-1"))(t)
	require.Equal(t, "far.example", far.Host)
	_, err := o.Elsewhere(t.Context(), "r-2")
	require.ErrorContains(t, err, "ask Temporal about run r-2")
}

// TestFindIDFindsNoPaths finds recorded runs and those in the folder for runs, by their ids alone.
func TestFindIDFindsNoPaths(t *testing.T) {
	state, root, out := t.TempDir(), t.TempDir(), t.TempDir()
	begun(t, filepath.Join(root, "a"), "aaa-1", "begun")
	begun(t, filepath.Join(root, "app", "b"), "aaa-2", "begun")
	begun(t, filepath.Join(out, "e"), "eee-1", "begun")
	require.NoError(t, os.Rename(filepath.Join(out, "e"), filepath.Join(root, "a", "e")))
	begun(t, filepath.Join(out, "c"), "ccc-1", "begun")
	require.NoError(t, Index(state, "ccc-1", filepath.Join(out, "c")))
	require.NoError(t, Index(state, "ddd-1", filepath.Join(out, "gone")))
	t.Chdir(root)
	for id, want := range map[string]string{"aaa-1": filepath.Join(root, "a"), "aaa-2": filepath.Join(root, "app", "b"),
		"ccc": filepath.Join(out, "c")} {
		d := must(FindID(state, root, id, false))(t)
		require.Equal(t, want, d.Root)
	}
	var unknown *NameError
	for _, id := range []string{"a", "b", "aaa", "xyz", "eee", filepath.Join(out, "c")} {
		_, err := FindID(state, root, id, false)
		require.ErrorAs(t, err, &unknown, id)
	}
	var missing *MissingError
	_, err := FindID(state, root, "ddd-1", false)
	require.ErrorAs(t, err, &missing)
	require.NoError(t, os.RemoveAll(filepath.Join(out, "c")))
	_, err = FindID(state, root, "ccc-1", false)
	require.ErrorAs(t, err, &missing)
	begun(t, filepath.Join(root, "moved"), "ccc-1", "begun")
	require.Equal(t, filepath.Join(root, "moved"), must(FindID(state, root, "ccc", false))(t).Root)
}

// TestFindOn finds the run of a folder: the only one, or the only one that has not ended.
func TestFindOn(t *testing.T) {
	root, app := t.TempDir(), t.TempDir()
	inside := filepath.Join(app, "inside")
	require.NoError(t, os.Mkdir(inside, 0o700))
	add := func(id, status string) string {
		dir := filepath.Join(root, "app", id)
		begun(t, dir, id, status)
		on := rundir.Workspace{Source: must(filepath.EvalSymlinks(app))(t)}
		meta := must(disk.Marshal(rundir.Meta{Workspace: &on}))(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, rundir.MetaFile), meta, 0o600))
		return dir
	}
	find := func(folder string) (string, error) {
		d, err := FindOn(t.TempDir(), root, folder, false, rundir.ErrNoRun)
		return d.Root, err
	}
	_, err := find(app)
	require.ErrorIs(t, err, rundir.ErrNoRun)
	ended := add("a-1", "done")
	require.Equal(t, ended, must(find(inside))(t))
	_, err = find(filepath.Dir(app))
	require.ErrorIs(t, err, rundir.ErrNoRun)
	open := add("b-1", "begun")
	require.Equal(t, open, must(find(app))(t))
	add("c-1", "begun")
	_, err = find(app)
	require.ErrorContains(t, err, "name one of b-1, c-1")
}

// TestRunDir: a folder for each repository, wherever the pipeline lies in it.
func TestRunDir(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "repo")
	require.NoError(t, os.Rename(repository(t), repo))
	home := filepath.Join(repo, "pipelines")
	require.NoError(t, os.MkdirAll(home, 0o700))
	for want, w := range map[string]*pipeline.Workspace{
		"/runs/repo/small": {Git: "worktree"}, "/runs/pipelines/small": {Dir: "."}, "/runs/small/small": nil,
	} {
		def := Definition{Home: home, Plan: &pipeline.Plan{Pipeline: "small", Workspace: w}}
		require.Equal(t, want, def.RunDir(t.Context(), "/runs", "small"))
	}
}

// TestAtHome distinguishes a directory that was moved from one that was copied.
func TestAtHome(t *testing.T) {
	claim := run.Claim{Version: 1, RunID: "r1"}
	for name, tt := range map[string]struct {
		become func(t *testing.T, home string) (now string)
		copied bool
	}{
		"where it was": {become: func(_ *testing.T, home string) string { return home }},
		"moved": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			return home + "-moved"
		}},
		"copied": {copied: true, become: func(t *testing.T, home string) string {
			require.NoError(t, os.CopyFS(home+"-copied", os.DirFS(home)))
			return home + "-copied"
		}},
		"another name of the same": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Symlink(home, home+"-link"))
			return home + "-link"
		}},
		"moved, and its place is another run's": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			require.NoError(t, rundir.At(home).Take(run.Claim{Version: 1, RunID: "r2"}))
			return home + "-moved"
		}},
		"moved, and its place is free": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			require.NoError(t, os.Mkdir(home, 0o755))
			return home + "-moved"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			state, home := t.TempDir(), filepath.Join(t.TempDir(), "home")
			require.NoError(t, rundir.At(home).Take(claim))
			require.NoError(t, AtHome(state, claim, rundir.At(home)), "not remembered")
			require.NoError(t, Index(state, "r1", home))
			now := tt.become(t, home)
			err := AtHome(state, claim, rundir.At(now))
			if !tt.copied {
				require.NoError(t, err)
				return
			}
			require.Equal(t, &CopyError{Dir: now, RunID: "r1", Home: home}, err)
		})
	}
}

// TestStoresThatADirectoryNames opens the configured store, listed ones, and those of recorded runs; another one only with trust.
func TestStoresThatADirectoryNames(t *testing.T) {
	state, home := t.TempDir(), t.TempDir()
	url := func(name string) string { return "file://" + filepath.Join(home, name) }
	dir := rundir.At(filepath.Join(home, "run"))
	require.NoError(t, dir.Take(run.Claim{Version: 1, RunID: "recorded", Store: url("recorded")}))
	require.NoError(t, Index(state, "recorded", dir.Root))
	received := rundir.At(filepath.Join(home, "received"))
	require.NoError(t, received.Take(run.Claim{Version: 1, RunID: "received", Store: url("foreign")}))

	allowed := Stores{Settings: config.Settings{StateDir: state, Store: url("configured"),
		Policy: config.Policy{Stores: config.Words{url("listed")}}}}
	ctx := WithStores(t.Context(), allowed)
	for _, name := range []string{"configured", "listed", "recorded"} {
		_, err := OpenStore(ctx, url(name))
		require.NoError(t, err, name)
	}
	_, err := OpenStore(ctx, url("foreign"))
	var refused *StoreError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "if you trust the directory, add --trust, or name the store: --store")
	_, err = os.Stat(filepath.Join(home, "foreign"))
	require.ErrorIs(t, err, os.ErrNotExist, "a refused store is not created")

	allowed.Trust = true
	for _, ctx := range []context.Context{WithStores(t.Context(), allowed), t.Context()} {
		must(OpenStore(ctx, url("foreign")))(t)
	}
}

// TestDirectoriesOfOtherUsersAreRefused finds a directory of another user only with trust, and never writes there.
func TestDirectoriesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := rundir.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, dir.Take(run.Claim{Version: 1, RunID: "theirs"}))
	for _, name := range []string{"", "run.json"} {
		require.NoError(t, os.Chown(dir.Path(name), 54321, 54321))
	}
	_, err := Find(t.TempDir(), dir.Root, false)
	var other *disk.OwnerError
	require.ErrorAs(t, err, &other)
	require.Equal(t, &disk.OwnerError{Path: dir.Root, Root: dir.Root, Owner: "54321"}, other)

	d := must(Find(t.TempDir(), dir.Root, true))(t)
	require.Equal(t, "theirs", must(d.Claim())(t).RunID)
	_, err = rundir.LockForRemoval(d)
	require.ErrorAs(t, err, &other)
	require.ErrorAs(t, d.RestoreFile("meta.json", nil), &other)
	require.NoFileExists(t, d.Path("meta.json"))
	require.NoFileExists(t, d.Path("run.lock"))
}
