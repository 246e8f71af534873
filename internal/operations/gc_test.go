package operations

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// collecting is a collection a week from now, when nothing is fresh.
func collecting(stateDir string, forget ...string) Collection {
	return Collection{StateDir: stateDir, Forget: forget, OlderThan: 24 * time.Hour,
		Now: time.Now().Add(7 * 24 * time.Hour), Delete: true}
}

// contents are the names of everything in a store.
func contents(t *testing.T, s *store.Store) []string {
	t.Helper()
	all := []string{}
	require.NoError(t, s.Walk(t.Context(), func(o store.Object) error { all = append(all, o.Name); return nil }))
	slices.Sort(all)
	return all
}

func has(t *testing.T, s *store.Store, digest string) bool {
	t.Helper()
	return must(s.Has(t.Context(), store.Digest(digest)))(t)
}

// hasText reports whether a store has a blob with this text.
func hasText(t *testing.T, s *store.Store, text string) bool {
	t.Helper()
	return has(t, s, string(store.DigestOf([]byte(text))))
}

func bothStores(t *testing.T, test func(*testing.T, *store.Store)) {
	t.Run("file", func(t *testing.T) { test(t, testStore(t)) })
	t.Run("s3", func(t *testing.T) {
		s := must(store.Open(t.Context(), fakes3.Start(t)))(t)
		test(t, s)
	})
}

// TestCollect sweeps objects without a reference, and keeps those that a journal, call, segment or tree names.
func TestCollect(t *testing.T) {
	bothStores(t, func(t *testing.T, s *store.Store) {
		ctx, state := t.Context(), t.TempDir()
		one, two := page(t, s, "r1", "shared", run.Done), page(t, s, "r2", "shared", run.Done)
		for id, d := range map[string]rundir.Dir{"r1": one, "r2": two} {
			require.NoError(t, Index(state, id, d.Root))
		}
		from := t.TempDir()
		write(t, from, map[string]string{"deep/er/file.txt": "in a tree"})
		saved := must(tree.Save(ctx, s, from, tree.Rules{}, nil))(t)
		reply := blobOf(t, s, "a reply")
		must(s.Create(ctx, "calls/r1/g0.001/result",
			[]byte(fmt.Sprintf(`{"stdout":{"digest":%q},"tree":{"digest":%q}}`, reply.Digest, saved.Digest))))(t)
		kept := contents(t, s)
		garbage := blobOf(t, s, `{"garbage":"`+reply.Digest+`"}`)
		all := contents(t, s)

		c := collecting(state)
		c.Delete = false
		out := must(Collect(ctx, s, c))(t)
		require.Equal(t, Amount{1, garbage.Size}, out.Garbage)
		require.Equal(t, Amount{}, out.Removed)
		require.Len(t, out.Runs, 2)
		require.Equal(t, all, contents(t, s), "a dry run changes nothing")

		young := collecting(state)
		young.Now = time.Now()
		out = must(Collect(ctx, s, young))(t)
		require.Equal(t, Amount{1, garbage.Size}, out.Fresh)
		require.Equal(t, all, contents(t, s), "what is fresh may be named in a moment")

		out = must(Collect(ctx, s, collecting(state)))(t)
		require.Equal(t, Amount{1, garbage.Size}, out.Removed)
		require.Equal(t, garbage.Size, out.Objects[0].Size)
		require.Equal(t, kept, contents(t, s))

		require.NoError(t, os.RemoveAll(two.Root)) // deleted on purpose
		out = must(Collect(ctx, s, collecting(state, "r2")))(t)
		require.Equal(t, 4, out.Removed.Objects, "seed, segment and two checkpoints of r2; not what r1 has too: %v",
			out.Objects)
		require.True(t, hasText(t, s, "shared"))
		require.False(t, hasText(t, s, "seed of r2"))
	})
}

// TestCollectKeepsUnknownRuns refuses to delete anything while a run is not found or cannot be read.
func TestCollectKeepsUnknownRuns(t *testing.T) {
	tests := []struct {
		name    string
		hurt    func(t *testing.T, s *store.Store, d rundir.Dir)
		message string
		forget  string // with which it continues; empty: it has to be repaired
	}{
		{"its journal cannot be read", func(t *testing.T, _ *store.Store, d rundir.Dir) {
			write(t, d.Root, map[string]string{rundir.EventsFile: "\x00\n", rundir.MetaFile: "\x00\n"})
		}, "no event of run r1 can be read", "r1"},
		{"its claim cannot be read", func(t *testing.T, _ *store.Store, d rundir.Dir) {
			require.NoError(t, os.WriteFile(d.Path(rundir.ClaimFile), []byte("{"), 0o600))
		}, "read ", ""},
		{"a call of an unknown run", func(t *testing.T, s *store.Store, _ rundir.Dir) {
			must(s.Create(t.Context(), "calls/r9/g0/claim-001", []byte("{}")))(t)
		}, "objects of run r9", "r9"},
		{"a run that another host has begun", func(t *testing.T, s *store.Store, _ rundir.Dir) {
			require.NoError(t, register(t.Context(), inputOf(s, "r9")))
		}, "objects of run r9", "r9"},
		{"a segment of an unknown run", func(t *testing.T, s *store.Store, _ rundir.Dir) {
			require.NoError(t, os.RemoveAll(page(t, s, "r9", "nine", run.Done).Root))
		}, "objects of run r9", "r9"},
		{"a damaged list", func(t *testing.T, s *store.Store, d rundir.Dir) {
			meta := must(d.Meta())(t)
			path := filepath.Join(strings.TrimPrefix(s.URL(), "file://"), "blobs", meta.SegmentHead[:2],
				meta.SegmentHead[2:])
			require.NoError(t, os.WriteFile(path, []byte(`{"version":1,`), 0o600))
		}, "is damaged, and what it names is not known", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, state := testStore(t), t.TempDir()
			d := page(t, s, "r1", "one", run.Done)
			require.NoError(t, register(t.Context(), inputOf(s, "r1")))
			require.NoError(t, Index(state, "r1", d.Root))
			garbage := blobOf(t, s, "garbage")
			tt.hurt(t, s, d)
			before := contents(t, s)
			out, err := Collect(t.Context(), s, collecting(state))
			var refused *RefusedError
			require.ErrorAs(t, err, &refused)
			require.ErrorContains(t, err, tt.message)
			require.False(t, out.Deleted)
			dry := collecting(state)
			dry.Delete = false
			_, err = Collect(t.Context(), s, dry)
			require.NoError(t, err, "a dry run shows it")
			require.Equal(t, before, contents(t, s))
			if tt.forget == "" {
				return
			}
			must(Collect(t.Context(), s, collecting(state, tt.forget)))(t)
			require.False(t, has(t, s, garbage.Digest))
			require.False(t, hasText(t, s, "nine"))
		})
	}
	t.Run("what is there is not forgotten", func(t *testing.T) {
		s, state := testStore(t), t.TempDir()
		require.NoError(t, Index(state, "r1", page(t, s, "r1", "one", run.Done).Root))
		before := contents(t, s)
		_, err := Collect(t.Context(), s, collecting(state, "r1"))
		require.ErrorContains(t, err, "run r1 is in")
		require.Equal(t, before, contents(t, s))
	})
}

// inputOf is the start of a run, as far as it concerns a store.
func inputOf(s *store.Store, id string) contract.Input {
	return contract.Input{Target: contract.Target{RunID: id, Store: s.URL()},
		Claim: run.Claim{RunID: id, ThreadID: id}}
}

// TestCollectContinuesWithoutADirectory: one that was deleted by hand holds nothing up. What the store has of the run
// stays, and while it may be open, everything since it began.
func TestCollectContinuesWithoutADirectory(t *testing.T) {
	const began = "2026-11-20T00:00:00.000Z"
	for name, row := range map[string]struct {
		status run.Status
		swept  bool // garbage that is younger than the run
	}{"it is over": {run.Done, true}, "it was open": {"", false}} {
		t.Run(name, func(t *testing.T) {
			s, state := testStore(t), t.TempDir()
			d := page(t, s, "r1", "one", row.status)
			in := inputOf(s, "r1")
			in.Claim.CreatedAt = began
			require.NoError(t, register(t.Context(), in))
			require.NoError(t, Index(state, "r1", d.Root))
			before := contents(t, s)
			garbage := blobOf(t, s, "garbage")
			require.NoError(t, os.RemoveAll(d.Root))

			c := collecting(state)
			if row.status == "" {
				c.Now = time.Now().Add(365 * 24 * time.Hour)
			}
			out := must(Collect(t.Context(), s, c))(t)
			require.Len(t, out.Unknown, 1)
			require.Equal(t, d.Root, out.Unknown[0].Missing)
			require.False(t, out.Unknown[0].Blocks)
			require.Equal(t, !row.swept, has(t, s, garbage.Digest))
			if row.swept {
				require.Equal(t, before, contents(t, s), "what the journal in the store names is kept")
			} else {
				require.Equal(t, "r1", out.HeldBy)
			}
		})
	}
}

// TestCollectFreesRemovedRuns: what only a removed run has goes, and the note that it was removed goes last.
func TestCollectFreesRemovedRuns(t *testing.T) {
	bothStores(t, func(t *testing.T, s *store.Store) {
		state := t.TempDir()
		one, two := page(t, s, "r1", "shared", run.Done), page(t, s, "r2", "shared", run.Done)
		require.NoError(t, register(t.Context(), inputOf(s, "r1")))
		require.NoError(t, Index(state, "r2", two.Root))
		must(s.Create(t.Context(), removedPrefix+"r1", []byte(`{"version":1}`)))(t)

		there := collecting(state)
		there.Roots = []string{one.Root}
		must(Collect(t.Context(), s, there))(t)
		require.True(t, hasText(t, s, "seed of r1"),
			"a directory that is there counts more than the note")

		freed := must(Freed(t.Context(), s, there, []string{"r1"}))(t)
		require.NoError(t, os.RemoveAll(one.Root))
		out := must(Collect(t.Context(), s, collecting(state)))(t)
		require.Equal(t, freed.Bytes, out.Removed.Bytes)
		require.False(t, hasText(t, s, "seed of r1"))
		require.True(t, hasText(t, s, "shared"))
		require.Contains(t, contents(t, s), removedPrefix+"r1", "its objects existed until now")

		must(Collect(t.Context(), s, collecting(state)))(t)
		for _, name := range contents(t, s) {
			require.NotContains(t, name, "r1")
		}
	})
}

// TestCollectWaitsForOpenRuns: nothing is swept that was written since an open run's last event. Its next one may name
// it, however long the disk has been full.
func TestCollectWaitsForOpenRuns(t *testing.T) {
	s, state := testStore(t), t.TempDir()
	d := page(t, s, "r1", "one", "") // its last event is of January 2nd, and it is open
	require.NoError(t, Index(state, "r1", d.Root))
	blobOf(t, s, "not journaled yet")
	before := contents(t, s)
	out := must(Collect(t.Context(), s, collecting(state)))(t)
	require.Equal(t, "r1", out.HeldBy)
	require.Equal(t, at(6).Add(-24*time.Hour), out.Before)
	require.Equal(t, 1, out.Fresh.Objects)
	require.Equal(t, before, contents(t, s))
}

// TestCollectFindsRuns: those that this machine remembers, those below the folders that were named, and archived ones.
func TestCollectFindsRuns(t *testing.T) {
	s, state := testStore(t), t.TempDir()
	one, two, three := page(t, s, "r1", "one", run.Done), page(t, s, "r2", "two", run.Done),
		page(t, s, "r3", "three", run.Done)
	require.NoError(t, Index(state, "r1", one.Root))
	must(three.Archive(t.Context()))(t)
	c := collecting(state)
	c.Roots = []string{filepath.Dir(filepath.Dir(two.Root)), three.Root}
	require.NoError(t, three.Take(run.Claim{Version: 1, RunID: "r4", ThreadID: "r4"})) // the next run on the directory
	before := contents(t, s)
	out := must(Collect(t.Context(), s, c))(t)
	found := []string{}
	for _, h := range out.Runs {
		found = append(found, h.RunID)
	}
	slices.Sort(found)
	require.Subset(t, found, []string{"r1", "r2", "r3", "r4"})
	require.Equal(t, before, contents(t, s))
}

// TestCollectKeepsSourcesOfRuns: a run whose directory was deleted keeps its calls and checkpoints while a fork of it
// is there, and one that is only away is missed although its fork is there.
func TestCollectKeepsSourcesOfRuns(t *testing.T) {
	s, state := testStore(t), t.TempDir()
	one := page(t, s, "r1", "one", run.Done)
	two := rundir.At(filepath.Join(t.TempDir(), "r2"))
	require.NoError(t, two.Take(run.Claim{Version: 1, RunID: "r2", ThreadID: "r1", SourceRun: "r1"}))
	for id, d := range map[string]rundir.Dir{"r1": one, "r2": two} {
		require.NoError(t, Index(state, id, d.Root))
	}
	reply := blobOf(t, s, "a reply")
	must(s.Create(t.Context(), "calls/r1/g0.001/result", []byte(reply.Digest)))(t)
	require.NoError(t, os.Rename(one.Root, one.Root+"-away"))
	must(Collect(t.Context(), s, collecting(state)))(t)
	before := must(s.List(t.Context(), ""))(t)
	must(Collect(t.Context(), s, collecting(state, "r1")))(t)
	require.Equal(t, before, must(s.List(t.Context(), ""))(t))
	require.True(t, has(t, s, reply.Digest))

	require.NoError(t, os.RemoveAll(two.Root))
	must(Collect(t.Context(), s, collecting(state, "r1", "r2")))(t)
	require.Empty(t, contents(t, s))
}

// TestDigestsAreFound wherever they stand, and however they are cut into pieces.
func TestDigestsAreFound(t *testing.T) {
	a, b := strings.Repeat("a1", 32), strings.Repeat("0f", 32)
	text := "x" + a + `\f` + b + strings.Repeat("A1", 32) + "-" + a[1:] + "-" + b
	for _, size := range []int{1, 7, 64, 65, 1000} {
		found := map[store.Digest]bool{}
		d := &digests{found: func(s store.Digest) { found[s] = true }}
		for piece := range slices.Chunk([]byte(text), size) {
			must(d.Write(piece))(t)
		}
		require.True(t, found[store.Digest(a)] && found[store.Digest(b)], "in pieces of %d", size)
		require.LessOrEqual(t, len(found), 3, "a window of the longer run of digits, besides")
	}
}

// TestCollectMatchesAModel creates random runs that share objects, deletes some of them, and collects. The others can be
// rebuilt from the store alone, to the byte, and each tree can be checked out; of the deleted runs only shared objects
// are left.
func TestCollectMatchesAModel(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			s, state := testStore(t), t.TempDir()
			texts := []string{"alpha", "beta", "gamma", `{"like":"json"}`, "delta"}
			var runs []rundir.Dir
			trees := map[string][]store.Digest{}
			for i := range 2 + rnd.IntN(4) {
				id := fmt.Sprintf("r%d", i)
				d, saved := randomRun(t, s, rnd, id, texts)
				require.NoError(t, Index(state, id, d.Root))
				runs, trees[id] = append(runs, d), saved
			}
			for range rnd.IntN(5) {
				blobOf(t, s, fmt.Sprint("garbage ", rnd.Uint64()))
			}
			var forget []string
			for i, d := range runs {
				if i > 0 && rnd.IntN(3) == 0 {
					require.NoError(t, os.RemoveAll(d.Root))
					forget = append(forget, fmt.Sprintf("r%d", i))
				}
			}
			must(Collect(t.Context(), s, collecting(state, forget...)))(t)
			for i, d := range runs {
				id := fmt.Sprintf("r%d", i)
				if slices.Contains(forget, id) {
					require.False(t, hasText(t, s, "only of "+id), id)
					continue
				}
				again := rundir.At(filepath.Join(t.TempDir(), id))
				meta := must(d.Meta())(t)
				claim := must(d.Claim())(t)
				must(again.Rebuild(t.Context(), blobs.Of(s),
					rundir.Source{Claim: claim, Store: claim.Store, Head: meta.SegmentHead}))(t)
				require.Equal(t, filesIn(t, d.Root), filesIn(t, again.Root), id)
				for _, root := range trees[id] {
					_, err := tree.Checkout(t.Context(), s, root, filepath.Join(t.TempDir(), "tree"), tree.Rules{})
					require.NoError(t, err, id)
				}
			}
			for _, name := range contents(t, s) {
				for _, id := range forget {
					require.NotContains(t, name, "calls/"+id)
				}
			}
			after := contents(t, s)
			out := must(Collect(t.Context(), s, collecting(state)))(t)
			require.Zero(t, out.Garbage.Objects, "a second time there is nothing to do")
			require.Equal(t, after, contents(t, s))
		})
	}
}

// randomRun is a run that is done, with calls, notes, workspaces and an artifact of some of the texts.
func randomRun(t *testing.T, s *store.Store, rnd *rand.Rand, id string,
	texts []string) (rundir.Dir, []store.Digest) {
	t.Helper()
	some := func() run.Blob { return blobOf(t, s, texts[rnd.IntN(len(texts))]) }
	var trees []store.Digest
	workspace := func() run.Blob {
		dir := t.TempDir()
		for range 1 + rnd.IntN(4) {
			write(t, dir, map[string]string{fmt.Sprintf("d%d/f%d", rnd.IntN(2),
				rnd.IntN(3)): texts[rnd.IntN(len(texts))] + fmt.Sprint(rnd.IntN(3))})
		}
		saved := must(tree.Save(t.Context(), s, dir, tree.Rules{}, nil))(t)
		trees = append(trees, saved.Digest)
		return workspace.Blob(saved)
	}
	events := []entry{{run.KindRunStart, run.RunStart{
		RunID: id, ThreadID: id, Epoch: 1, Pipeline: "page", Definition: blobOf(t, s, "only of "+id).Digest,
		Artifact:  &run.ArtifactRef{File: "page.html", Seed: some()},
		Workspace: &run.Workspace{Kind: "dir", Source: "/nowhere", Tree: workspace()},
	}}}
	for i := range rnd.IntN(4) {
		reply := blobOf(t, s, fmt.Sprint("reply ", id, i)).Digest
		must(s.Create(t.Context(), fmt.Sprintf("calls/%s/g0.%d/result", id, i),
			fmt.Appendf(nil, `{"stdout":{"digest":%q}}`, reply)))(t)
		events = append(events,
			entry{run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Artifact: some()}},
			entry{run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "001", Tree: workspace(), Changed: 1}})
	}
	return directoryOf(t, s, id, append(events, runEnded(run.Done))...), trees
}
