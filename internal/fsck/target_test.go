package fsck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// lays makes files below a folder.
func lays(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, name := range names {
		file := filepath.Join(root, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte("mine\n"), 0o644))
	}
}

// TestTakeRefusesOtherFiles: nothing is written to a directory that holds what no run left there, and the first ten are
// named.
func TestTakeRefusesOtherFiles(t *testing.T) {
	d := projector.At(t.TempDir())
	for i := range 12 {
		lays(t, d.Root, fmt.Sprintf("file-%02d", i))
	}
	lays(t, d.Root, "a-folder/precious.txt")
	before := look(t, d)
	var refused *projector.TargetError
	require.ErrorAs(t, d.Take(claim()), &refused)
	require.Equal(t, "write to "+d.Root+
		": it is not empty (in the way: a-folder/, file-00, file-01, file-02, file-03, file-04, file-05, file-06, "+
		"file-07, file-08 and 3 more); "+
		"nothing was written or started. Name a missing or empty directory, or move these files away", refused.Error())
	require.Equal(t, before, look(t, d))
}

// TestTakeAfterTheRunItself: what a start, an archived run or the run itself left is not in its way.
func TestTakeAfterTheRunItself(t *testing.T) {
	rows := map[string]struct {
		ran  bool // run-1 wrote the directory before
		left func(t *testing.T, d projector.Dir)
		runs map[string]bool // by the run's id, empty for a new one: whether it may take the directory
	}{
		"a start that was cut off": {
			false, func(t *testing.T, d projector.Dir) { lays(t, d.Root, "run.lock", "run.json.tmp.abc") },
			map[string]bool{"run-1": true, "run-2": true, "": true},
		},
		"its own files, and the claim is lost": {
			true, func(t *testing.T, d projector.Dir) { require.NoError(t, os.Remove(d.Path(layout.ClaimFile))) },
			map[string]bool{"run-1": true, "run-2": false, "": false},
		},
		"an archived run": {
			true, func(t *testing.T, d projector.Dir) {
				_, err := d.Archive(t.Context())
				require.NoError(t, err)
			},
			map[string]bool{"run-2": true, "": true},
		},
		"a workspace alone": {
			false, func(t *testing.T, d projector.Dir) { lays(t, d.Root, "workspace/a.txt") },
			map[string]bool{"run-1": false, "": false},
		},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			for id, may := range r.runs {
				d := projector.At(t.TempDir())
				if r.ran {
					d = written(t, whole(t))
				}
				r.left(t, d)
				err := projector.MayTake(d.Dir, id)
				require.Equal(t, may, err == nil, "%q: %v", id, err)
			}
		})
	}
}

// TestMayContinue: a worker makes the workspace of a directory that was lost before it notices, and still goes on;
// other files stop it.
func TestMayContinue(t *testing.T) {
	d := projector.At(t.TempDir())
	lays(t, d.Root, "workspace/a.txt", "run.lock")
	require.NoError(t, projector.MayContinue(d.Dir, "run-1"))
	lays(t, d.Root, "page.html")
	require.ErrorContains(t, projector.MayContinue(d.Dir, "run-1"), "in the way: page.html)")
}

// The advice of the error is to move the file away and to rebuild the directory.
func TestUnreadableClaimBelongsToRun(t *testing.T) {
	d, lines := projector.At(filepath.Join(t.TempDir(), "my run")),
		[]string{`{"seq":1,"ts":"2026-01-02T03:04:05.000Z","kind":"run.start","phase":null,"payload":{"run_id":"run-1"}}`}
	claim := run.Claim{Version: 1, RunID: "run-1", Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z"}
	require.NoError(t, d.Take(claim))
	batch := projector.Batch{Epoch: 1, First: 1, Lines: lines}
	_, err := d.Project(t.Context(), fakeBlobs{}, batch)
	require.NoError(t, err)
	file := d.Path(layout.ClaimFile)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	for _, err := range []error{projector.MayContinue(d.Dir, "run-1"), d.Take(claim)} {
		unread := (*rundir.UnreadableError)(nil)
		require.ErrorAs(t, err, &unread)
		require.Equal(t, "mv '"+file+"' '"+file+".damaged' && starter rebuild run-1 --output-dir '"+d.Root+"'",
			unread.Next)
	}
	refused := (*projector.TargetError)(nil)
	require.ErrorAs(t, d.Take(run.Claim{RunID: "run-2"}), &refused, "another run is to take another directory")

	require.NoError(t, os.Rename(file, file+".damaged"))
	_, err = d.Rebuild(t.Context(), fakeBlobs{}, projector.Source{Claim: claim, Batches: []projector.Batch{batch}})
	require.NoError(t, err)
	got, err := d.Claim()
	require.NoError(t, err)
	require.Equal(t, claim, got)
}

// TestClaimOfAnotherProgramIsIgnored: a run.json of another kind makes no directory a run's.
func TestClaimOfAnotherProgramIsIgnored(t *testing.T) {
	for _, text := range []string{`{"version": "2.0"}`, `{"name": "mine"}`, `[1]`, `{}`} {
		d := projector.At(t.TempDir())
		require.NoError(t, os.WriteFile(d.Path(layout.ClaimFile), []byte(text), 0o644))
		_, err := d.Claim()
		require.ErrorIs(t, err, rundir.ErrNoRun, text)
		require.ErrorContains(t, d.Take(claim()), "in the way: run.json", text)
	}
}

// TestConcurrentClaimWins: a start that another one overtakes between its reads is refused with the holder.
func TestConcurrentClaimWins(t *testing.T) {
	root := t.TempDir()
	for round := range 300 {
		d := projector.At(filepath.Join(root, strconv.Itoa(round)))
		claim := run.Claim{Version: 1, RunID: "run-1", Pipeline: "small", CreatedAt: "2026-01-02T03:04:05.000Z"}
		taken := make(chan error, 1)
		go func() { taken <- d.Take(claim) }()
		for checked := false; !checked; {
			err := projector.MayTake(d.Dir, "run-2")
			checked = err != nil
			if checked {
				require.ErrorAs(t, err, new(*rundir.ClaimedError), "round %d", round)
			}
		}
		require.NoError(t, <-taken)
	}
}
