package fsck_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// worksOn begins a run on a workspace.
func (s *story) worksOn(snapshots string) {
	s.add(run.KindRunStart, run.RunStart{
		Task: "work", RunKind: "pipeline", Pipeline: "work", RunID: "run-1", ThreadID: "thread-1", Epoch: 1,
		CreatedAt: moment(0), Snapshots: snapshots,
		Workspace: &run.Workspace{Kind: "dir", Source: "/elsewhere", Tree: s.blobs.keep("tree 0")},
	})
	s.phase = "turns"
	s.add(run.KindPhaseStart, run.PhaseStart{Key: "turns", Title: "Turns", Round: 1})
	s.send()
}

// turn is one pass of a role that gives changes. No tree: it changed nothing.
func (s *story) turn(n int, outcome run.Category, tree string) {
	p := run.Pass{Step: "turns/1", Role: "worker", Gives: "changes", Round: n, InRound: 1, OfRound: 1, Title: "turn",
		Description: "a turn"}
	call := fmt.Sprintf("call %d", n)
	s.add(run.KindPassStart, run.PassStart{Pass: p, Call: call, Agent: "agent", Attempt: 1, Attempts: 3,
		Prompt: s.blobs.keep("prompt")})
	s.send()
	end := run.PassEnd{Pass: p, Call: call, Outcome: outcome, StartedAt: s.state.TS, CompletedAt: s.state.TS,
		Attempts: 1, Spend: spend(), Next: &run.Place{Round: n, Step: 1}}
	if tree == "" {
		s.add(run.KindPassEnd, end)
		return
	}
	b := s.blobs.keep(tree)
	end.Tree = &b
	s.add(run.KindPassEnd, end)
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: p.Step, Call: call, Tree: b, Changed: 3})
}

// snapshotOf is what a manifest holds, of a tree that is kept as a text.
func snapshotOf(t *testing.T, s *story, text string) string {
	t.Helper()
	raw, err := s.blobs.Manifest(context.Background(), s.blobs.keep(text).Digest)
	require.NoError(t, err)
	return string(raw)
}

func TestEveryTurnLeavesASnapshot(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	s.turn(1, "ok", "tree 1")
	s.turn(2, "ok", "")
	s.turn(3, "output-truncated", "")
	s.turn(4, "ok", "tree 4")
	s.send()
	d := written(t, s)
	files := look(t, d)
	for n, tree := range map[int]string{0: "tree 0", 1: "tree 1", 2: "tree 1", 3: "tree 1", 4: "tree 4"} {
		require.Equal(t, snapshotOf(t, s, tree), files[layout.SnapshotManifest(n)], "turn %d", n)
	}
	require.NotContains(t, files, layout.SnapshotManifest(5))
	require.NotContains(t, files, "snapshots/turn-1/tree/file.txt", "nobody asked for it")
	b, err := records.State(d.Dir)
	require.NoError(t, err)
	require.Equal(t, 4, b.Turns)
}

// TestRevertKeepsSnapshots: the turns behind it keep their numbers and their bytes.
func TestRevertKeepsSnapshots(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	s.turn(1, "ok", "tree 1")
	to := s.state
	s.turn(2, "ok", "tree 2")
	s.turn(3, "ok", "tree 3")
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Cause: "reverted", Tree: s.blobs.keep("tree 1"), Changed: 1})
	s.revert(to)
	s.turn(2, "ok", "another tree 2")
	s.send()
	d := written(t, s)
	files := look(t, d)
	for n, tree := range map[int]string{1: "tree 1", 2: "tree 2", 3: "tree 3", 4: "another tree 2"} {
		require.Equal(t, snapshotOf(t, s, tree), files[layout.SnapshotManifest(n)], "turn %d", n)
	}
	versions, err := d.Versions()
	require.NoError(t, err)
	var left []int
	for _, v := range versions {
		if v.Abandoned {
			left = append(left, v.Turn)
		}
	}
	require.Equal(t, []int{2, 3, 3}, left, "and what put the tree back")
	last := versions[len(versions)-1]
	require.Equal(t, 4, last.Turn)
	require.Equal(t, s.blobs.keep("tree 1").Digest, last.Before)
}

// TestFullSnapshotsSurviveACrashAnywhere stops the projection of a turn before each of its writes, and projects again.
func TestFullSnapshotsSurviveACrashAnywhere(t *testing.T) {
	s := newStory(t)
	s.worksOn(run.SnapshotsFull)
	s.turn(1, "ok", "tree 1")
	s.turn(2, "ok", "tree 2")
	s.send()
	last, earlier := s.batches[len(s.batches)-1], s.batches[:len(s.batches)-1]
	want := look(t, written(t, s))
	require.Equal(t, "tree 1", want["snapshots/turn-1/tree/file.txt"])
	require.Equal(t, "tree 2", want["snapshots/turn-2/tree/file.txt"])
	for k := 0; ; k++ {
		d := projector.At(t.TempDir() + "/run")
		require.NoError(t, d.Take(claim()))
		project(t, d, s, earlier...)
		n := -1
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if n++; n >= k {
				return errStop
			}
			return nil
		}}
		_, err := d.Project(context.Background(), s.blobs, last)
		if err == nil {
			require.Greater(t, k, 20, "the batch has many steps")
			break
		}
		require.ErrorIs(t, err, errStop)
		if _, err := os.Stat(d.Path(layout.SnapshotManifest(2))); err == nil {
			require.FileExists(t, d.Path("snapshots/turn-2/tree/file.txt"), "the manifest says that the tree is there")
		} else {
			require.ErrorIs(t, err, os.ErrNotExist)
		}
		d.Disk = durable.Disk{}
		project(t, d, s, last)
		same(t, want, look(t, d), fmt.Sprintf("stopped before step %d", k))
	}
}

// TestLostDirectoryRestoresSnapshots byte for byte.
func TestLostDirectoryRestoresSnapshots(t *testing.T) {
	s := newStory(t)
	s.worksOn(run.SnapshotsFull)
	s.turn(1, "ok", "tree 1")
	s.turn(2, "ok", "")
	s.send()
	want := look(t, written(t, s))
	lost := projector.At(t.TempDir() + "/run")
	_, err := lost.Rebuild(context.Background(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
	require.NoError(t, err)
	same(t, want, look(t, lost), "rebuilt")
	require.Contains(t, want, layout.SnapshotManifest(2))

	delete(s.blobs, s.blobs.keep("tree 1").Digest)
	poor := projector.At(t.TempDir() + "/run")
	_, err = poor.Rebuild(context.Background(), s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
	require.True(t, errors.Is(err, os.ErrNotExist), "a tree that the store has not is an error: %v", err)
}

// TestLostStoreIsFilledWithTree from the manifests: the lists of the folders. Contents are in the run's own
// checkout.
func TestLostStoreIsFilledWithTree(t *testing.T) {
	for name, turns := range map[string]int{"before the first turn": 0, "after two": 2} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.worksOn("")
			for n := 1; n <= turns; n++ {
				s.turn(n, "ok", fmt.Sprintf("tree %d", n))
			}
			s.send()
			d := written(t, s)
			tree := s.blobs.keep(fmt.Sprintf("tree %d", turns))
			require.Equal(t, tree, *s.state.Tree)
			lost := fakeBlobs{}
			files, err := projector.Import(context.Background(), d.Dir, lost, run.RunStart{}, s.state)
			require.NoError(t, err)
			require.Positive(t, files)
			require.Contains(t, lost, tree.Digest)

			write(t, d, layout.SnapshotManifest(turns), "{}")
			_, err = projector.Import(context.Background(), d.Dir, fakeBlobs{}, run.RunStart{}, s.state)
			var missing *projector.MissingError
			require.ErrorAs(t, err, &missing)
			require.Contains(t, err.Error(), "the list of the workspace's files")
		})
	}
}

func TestVersions(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	p := run.Pass{Step: "turns/1", Role: "worker", Gives: "changes", Round: 1}
	cost := spend()
	s.add(run.KindPassStart, run.PassStart{Pass: p, Attempt: 1})
	s.add(run.KindPassAttempt, run.PassAttempt{Pass: p, Attempt: 1, Category: "output-truncated", Judged: true,
		RetryInMS: 1, Spend: &cost})
	s.turn(1, "ok", "tree 1")
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Cause: "edited", Tree: s.blobs.keep("by hand"), Changed: 1})
	s.turn(2, "ok", "")
	s.send()
	got, err := written(t, s).Versions()
	require.NoError(t, err)
	for i := range got {
		require.NotZero(t, got[i].Seq)
		got[i].Seq, got[i].TS = 0, ""
	}
	zero, one, hand := s.blobs.keep("tree 0").Digest, s.blobs.keep("tree 1").Digest, s.blobs.keep("by hand").Digest
	require.Equal(t, []rundir.Version{
		{Cause: "start", Tree: zero},
		{Cause: "turn", Turn: 1, Step: "turns/1", Round: 1, Role: "worker", Call: "call 1", Outcome: "ok", USD: 0.5,
			Changed: 3, Tree: one, Before: zero},
		{Cause: "edited", Turn: 1, Changed: 1, Tree: hand, Before: one},
		{Cause: "turn", Turn: 2, Step: "turns/1", Round: 2, Role: "worker", Call: "call 2", Outcome: "ok", USD: 0.25,
			Tree: hand, Before: hand},
	}, got)
}

// TestProvenanceOfManyFiles: an event names the first files only; the rows are all there.
func TestProvenanceOfManyFiles(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	var all []run.FileChange
	for n := range 30 {
		all = append(all, run.FileChange{Path: fmt.Sprintf("file %02d", n), Kind: "added", After: "after"})
	}
	raw, err := json.Marshal(all)
	require.NoError(t, err)
	list := s.blobs.keep(string(raw))
	s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "s", Call: "c", Tree: s.blobs.keep("tree 1"),
		Changed: 30, Files: all[:20], List: &list})
	s.send()
	rows, skipped, err := rundir.Rows[struct {
		Path string `json:"path"`
		Call string `json:"call"`
	}](written(t, s).Dir, layout.ProvenanceFile)
	require.NoError(t, err)
	require.Zero(t, skipped)
	require.Len(t, rows, 30)
	require.Equal(t, "file 29", rows[29].Path)
	require.Equal(t, "c", rows[29].Call)
}
