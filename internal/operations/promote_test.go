package operations

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// entry is one event of a made-up run.
type entry struct {
	kind    run.Kind
	payload any
}

// directoryOf is the directory of a run with these events; sealed in the store if the run is over.
func directoryOf(t *testing.T, s *store.Store, id string, events ...entry) projector.Dir {
	t.Helper()
	ctx, d := t.Context(), projector.At(filepath.Join(t.TempDir(), id))
	require.NoError(t, d.Take(run.Claim{Version: 1, RunID: id, ThreadID: id, Store: s.URL()}))
	lines := make([]string, 0, len(events))
	for i, e := range events {
		raw, err := run.Payload(e.payload)
		require.NoError(t, err)
		line, err := run.Event{Seq: int64(i + 1), TS: "2026-01-02T03:04:05.000Z", Kind: e.kind, Payload: raw}.Line()
		require.NoError(t, err)
		lines = append(lines, line)
	}
	p, err := d.Project(ctx, blobs.Of(s), projector.Batch{Epoch: 1, First: 1, Lines: lines})
	require.NoError(t, err)
	require.Equal(t, run.ProjectionWritten, p.Outcome)
	if events[len(events)-1].kind == run.KindRunEnd {
		_, err = d.Seal(ctx, blobs.Of(s), projector.Sealing{RunID: id, First: 1, Tail: p.Tail})
		require.NoError(t, err)
	}
	return d
}

func blobOf(t *testing.T, s *store.Store, text string) run.Blob {
	t.Helper()
	d, err := s.Put(t.Context(), []byte(text))
	require.NoError(t, err)
	return run.Blob{Digest: string(d), Size: int64(len(text)), Chars: len(text)}
}

// page is a run with an artifact; word is how it ended, empty: it goes on.
func page(t *testing.T, s *store.Store, id, text string, word run.Status) projector.Dir {
	t.Helper()
	events := []entry{
		{run.KindRunStart, run.RunStart{RunID: id, ThreadID: id, Epoch: 1, Pipeline: "page",
			Artifact: &run.ArtifactRef{File: "page.html", Seed: blobOf(t, s, "seed of "+id)}}},
		{run.KindArtifactUpdated, run.ArtifactUpdated{Step: "001", Artifact: blobOf(t, s, text)}},
	}
	if word != "" {
		events = append(events, entry{run.KindRunEnd, run.RunEnd{Status: word}})
	}
	return directoryOf(t, s, id, events...)
}

// treeRun is a run that is done, and the files of its workspace.
func treeRun(t *testing.T, s *store.Store) (projector.Dir, map[string]string) {
	t.Helper()
	from := t.TempDir()
	lays(t, from, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	require.NoError(t, os.Mkdir(filepath.Join(from, "empty"), 0o755))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(from, "link")))
	saved, err := tree.Save(t.Context(), s, from, tree.Rules{}, nil)
	require.NoError(t, err)
	b := workspace.Blob(saved)
	d := directoryOf(t, s, "t1",
		entry{run.KindRunStart, run.RunStart{RunID: "t1", ThreadID: "t1", Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: from, Tree: b}}},
		entry{run.KindRunEnd, run.RunEnd{Status: run.Done}})
	return d, map[string]string{"a.txt": "a\n", "sub/": "", "sub/b.txt": "b\n", "empty/": "", "link": "-> a.txt"}
}

// laid is everything below a folder.
func laid(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		switch {
		case d.IsDir():
			all[rel+"/"] = ""
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			all[rel] = "-> " + link
			return err
		default:
			raw, err := os.ReadFile(path)
			all[rel] = string(raw)
			return err
		}
		return nil
	}))
	return all
}

func at(second int) time.Time { return time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC) }

// promotionLines returns the lines of promotions.jsonl.
func promotionLines(t *testing.T, d projector.Dir) []string {
	t.Helper()
	raw, err := os.ReadFile(d.Path(layout.PromotionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

func TestPromoteAnArtifact(t *testing.T) {
	ctx, s := t.Context(), testStore(t)
	d := page(t, s, "r1", "<p>done</p>", run.Done)
	before := laid(t, d.Root)
	out := filepath.Join(t.TempDir(), "www", "index.html")

	p, err := Promote(ctx, d, Promotion{To: out, Now: at(1)})
	require.NoError(t, err)
	require.Equal(t, Promoted{
		RunID: "r1", Kind: "artifact", Digest: string(store.DigestOf([]byte("<p>done</p>"))), Path: out, Files: 1,
	}, p)
	require.Equal(t, "<p>done</p>", string(must(os.ReadFile(out))(t)))

	for range 3 {
		p, err = Promote(ctx, d, Promotion{To: out, Now: at(2)})
		require.NoError(t, err)
		require.True(t, p.Again)
	}
	lines := promotionLines(t, d)
	require.Len(t, lines, 1, "one event, however often")
	require.Contains(t, lines[0],
		`{"seq":1,"ts":"2026-01-02T03:04:01.000Z","kind":"delivery.completed","phase":"delivery","payload":{"id":"promotion-`)
	require.Contains(t, lines[0],
		fmt.Sprintf(`"action":"promote","delivered":true,"to":"file","target":%q,"files":1,"result":%q}}`, out,
			p.Digest))

	second := filepath.Dir(out) + "/" // a folder: under its own name
	p, err = Promote(ctx, d, Promotion{To: second, Now: at(3)})
	require.NoError(t, err)
	require.Equal(t, filepath.Join(filepath.Dir(out), "page.html"), p.Path)
	require.Len(t, promotionLines(t, d), 2)

	require.NoError(t, os.WriteFile(out, []byte("mine"), 0o600))
	_, err = Promote(ctx, d, Promotion{To: out, Now: at(4)})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "mine", string(must(os.ReadFile(out))(t)))
	p, err = Promote(ctx, d, Promotion{To: out, Force: true, Now: at(5)})
	require.NoError(t, err)
	require.Equal(t, out+".before-20260102-030405", p.Before)
	require.Equal(t, "mine", string(must(os.ReadFile(p.Before))(t)))
	require.Equal(t, "<p>done</p>", string(must(os.ReadFile(out))(t)))
	require.Len(t, promotionLines(t, d), 2)

	after := laid(t, d.Root)
	delete(after, layout.PromotionsFile)
	require.Equal(t, before, after, "nothing else of the run directory has changed")
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// TestPromoteCopiesTheRecordedResult: an edit of the artifact after the end is not what the run has come to.
func TestPromoteCopiesTheRecordedResult(t *testing.T) {
	ctx, s := t.Context(), testStore(t)
	d := page(t, s, "r1", "<p>done</p>", run.Done)
	require.NoError(t, os.WriteFile(d.Path("page.html"), []byte("edited"), 0o600))
	out := filepath.Join(t.TempDir(), "out.html")
	_, err := Promote(ctx, d, Promotion{To: out, Now: at(1)})
	require.NoError(t, err)
	require.Equal(t, "<p>done</p>", string(must(os.ReadFile(out))(t)))
}

// TestPromoteRefuses: every way in which the result is not to be trusted, and nothing is copied.
func TestPromoteRefuses(t *testing.T) {
	edit := func(name, from, to string) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			raw := string(must(os.ReadFile(d.Path(name)))(t))
			require.Contains(t, raw, from)
			require.NoError(t, os.WriteFile(d.Path(name), []byte(strings.ReplaceAll(raw, from, to)), 0o600))
		}
	}
	good, forged := string(store.DigestOf([]byte("<p>done</p>"))), string(store.DigestOf([]byte("forged")))
	all := func(do ...func(*testing.T, projector.Dir)) func(*testing.T, projector.Dir) {
		return func(t *testing.T, d projector.Dir) {
			for _, f := range do {
				f(t, d)
			}
		}
	}
	tests := []struct {
		name    string
		hurt    func(*testing.T, projector.Dir)
		message string
	}{
		{"the manifest is missing", func(t *testing.T, d projector.Dir) {
			require.NoError(t,
				os.Remove(d.Path(layout.ResultFile)))
		}, "result.json is missing"},
		{"the manifest is half a file", func(t *testing.T, d projector.Dir) {
			require.NoError(t, os.WriteFile(d.Path(layout.ResultFile), []byte(`{"version"`), 0o600))
		}, "damaged"},
		{"the manifest names other bytes", edit(layout.ResultFile, good, forged), "differs from the journal"},
		{"the manifest names another file", edit(layout.ResultFile, "page.html", "run.json"),
			"differs from the journal"},
		{"manifest and artifact are forged", all(edit(layout.ResultFile, good, forged),
			edit("page.html", "<p>done</p>", "forged")), "differs from the journal"},
		{"manifest, artifact and journal are forged",
			all(edit(layout.ResultFile, good, forged), edit("page.html", "<p>done</p>", "forged"),
				edit(layout.EventsFile, good, forged), rechain),
			"event 2 of events.jsonl is not the one in the store"},
		{"the journal is not sealed", edit(layout.MetaFile, `"segment_head": "`, `"segment_head": "", "was": "`),
			"the store holds events 1 to 0"},
		{"the store has lost the journal", edit(layout.MetaFile, `"segment_head": "`,
			`"segment_head": "`+strings.Repeat("0", 64)+`", "was": "`), "does not confirm"},
		{"the events are another run's", edit(layout.ClaimFile, "r1", "r2"), "those of run r1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := testStore(t)
			d := page(t, s, "r1", "<p>done</p>", run.Done)
			tt.hurt(t, d)
			out := filepath.Join(t.TempDir(), "out.html")
			_, err := Promote(t.Context(), d, Promotion{To: out, Now: at(1)})
			var bad *rundir.ResultError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, tt.message)
			require.ErrorContains(t, err, "starter rebuild")
			require.NoFileExists(t, out)
			require.NoFileExists(t, d.Path(layout.PromotionsFile))
		})
	}
}

// rechain gives the manifest the chain that the lines have now.
func rechain(t *testing.T, d projector.Dir) {
	tail, err := d.Tail()
	require.NoError(t, err)
	raw := string(must(os.ReadFile(d.Path(layout.ResultFile)))(t))
	raw = regexp.MustCompile(`"chain": "[0-9a-f]+"`).ReplaceAllString(raw, `"chain": "`+string(tail.Chain)+`"`)
	require.NoError(t, os.WriteFile(d.Path(layout.ResultFile), []byte(raw), 0o600))
}

// TestPromoteRequiresACompletedRun and says what may be done instead.
func TestPromoteRequiresACompletedRun(t *testing.T) {
	s := testStore(t)
	for word, allowed := range map[run.Status][]run.Operation{
		"": {run.Observe, run.Diagnose, run.Pause, run.Cancel, run.Replay, run.Fork},
		run.Failed: {run.Observe, run.Diagnose, run.Resume, run.Revert, run.Replay, run.Fork, run.FollowUp,
			run.Repair, run.Remove},
		run.Cancelled: {run.Observe, run.Diagnose, run.Resume, run.Revert, run.Replay, run.Fork, run.FollowUp,
			run.Repair, run.Remove},
		run.Halted: {run.Observe, run.Diagnose, run.Replay, run.Fork, run.FollowUp, run.Repair, run.Remove},
	} {
		d := page(t, s, "r1", "half", word)
		out := filepath.Join(t.TempDir(), "out.html")
		_, err := Promote(t.Context(), d, Promotion{To: out, Now: at(1)})
		var conflict *run.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, run.Promote, conflict.Operation)
		require.Equal(t, allowed, conflict.Allowed)
		require.NoFileExists(t, out)
		require.NoFileExists(t, d.Path(layout.ResultFile))
	}
}

func TestPromoteAWorkspace(t *testing.T) {
	ctx, s := t.Context(), testStore(t)
	d, want := treeRun(t, s)
	parent := t.TempDir()
	out := filepath.Join(parent, "site")

	p, err := Promote(ctx, d, Promotion{To: out, Now: at(1)})
	require.NoError(t, err)
	require.Equal(t, 3, p.Files)
	require.Equal(t, want, laid(t, out))
	p, err = Promote(ctx, d, Promotion{To: out, Now: at(2)})
	require.NoError(t, err)
	require.True(t, p.Again)

	require.NoError(t, os.Mkdir(filepath.Join(parent, "free"), 0o755))
	p, err = Promote(ctx, d, Promotion{To: filepath.Join(parent, "free"), Now: at(2)})
	require.NoError(t, err)
	require.Equal(t, want, laid(t, filepath.Join(parent, "free")), "an empty folder is taken")
	require.Empty(t, p.Before)

	for name, change := range map[string]func(){
		"a file more":     func() { lays(t, out, map[string]string{"mine.txt": "m"}) },
		"a file less":     func() { require.NoError(t, os.Remove(filepath.Join(out, "a.txt"))) },
		"another content": func() { lays(t, out, map[string]string{"a.txt": "A\n"}) },
		"another mode":    func() { require.NoError(t, os.Chmod(filepath.Join(out, "a.txt"), 0o755)) },
		"another link": func() {
			require.NoError(t, os.Remove(filepath.Join(out, "link")))
			require.NoError(t, os.Symlink("sub", filepath.Join(out, "link")))
		},
		"no folder": func() { require.NoError(t, os.Remove(filepath.Join(out, "empty"))) },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			changed := laid(t, out)
			_, err := Promote(ctx, d, Promotion{To: out, Now: at(3)})
			var refused *projector.TargetError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Next, "with --force")
			require.Equal(t, changed, laid(t, out))
			p, err := Promote(ctx, d, Promotion{To: out, Force: true, Now: at(4)})
			require.NoError(t, err)
			require.Equal(t, want, laid(t, out))
			require.Equal(t, changed, laid(t, p.Before), "what was there is kept")
		})
	}
	require.Len(t, promotionLines(t, d), 2, "one for each place")
	left := laid(t, parent)
	for name := range left {
		require.NotContains(t, name, ".promoting-")
	}
	for _, to := range []string{d.Root, d.Path("site"), filepath.Dir(d.Root)} {
		_, err := Promote(ctx, d, Promotion{To: to, Force: true, Now: at(5)})
		require.Regexp(t, "contains the run directory|it is in the directory of run", err.Error())
	}
	require.NoError(t, os.WriteFile(filepath.Join(parent, "file"), nil, 0o600))
	_, err = Promote(ctx, d, Promotion{To: filepath.Join(parent, "file"), Force: true, Now: at(5)})
	require.ErrorContains(t, err, "is not a directory")
}

// TestPromoteCanBeRepeatedAfterEveryStep stops a promotion before each of its steps. What is at the path is what was
// there or the result, and nothing that was there is ever lost; the same again finishes the work and records it once.
func TestPromoteCanBeRepeatedAfterEveryStep(t *testing.T) {
	s := testStore(t)
	for _, force := range []bool{false, true} {
		steps := 0
		for k := -1; k < steps; k++ {
			t.Run(fmt.Sprintf("force %v, stopped at %d", force, k), func(t *testing.T) {
				d, want := treeRun(t, s)
				out := filepath.Join(t.TempDir(), "site")
				old := map[string]string{}
				if force {
					old = map[string]string{"old.txt": "old"}
					lays(t, out, old)
				}
				n := 0
				d.Disk = durable.Disk{Hook: func(durable.Step) error {
					if n++; k >= 0 && n > k {
						return errors.New("stopped")
					}
					return nil
				}}
				_, err := Promote(t.Context(), d, Promotion{To: out, Force: force, Now: at(1)})
				if k < 0 {
					require.NoError(t, err)
					steps = n
					return
				}
				require.Error(t, err)
				if _, err := os.Stat(out); err == nil {
					now := laid(t, out)
					require.True(t, len(now) == len(old) && now["old.txt"] == "old" || len(now) == len(want) &&
						now["sub/b.txt"] == "b\n", "half of something: %v", now)
				} else {
					require.False(t, force, "it is never missing")
				}
				require.LessOrEqual(t, len(promotionLines(t, d)), 1)
				edited := force && present(filepath.Join(out, "sub"))
				if edited { // by somebody, before the promotion is made again
					lays(t, out, map[string]string{"sub/b.txt": "edited"})
				}
				d.Disk = durable.Disk{}
				_, err = Promote(t.Context(), d, Promotion{To: out, Force: force, Now: at(2)})
				require.NoError(t, err)
				require.Equal(t, want, laid(t, out))
				require.Len(t, promotionLines(t, d), 1)
				kept, err := filepath.Glob(out + ".before-*")
				require.NoError(t, err)
				switch {
				case edited:
					require.Len(t, kept, 2)
					require.Equal(t, "edited", laid(t, kept[1])["sub/b.txt"])
					require.Equal(t, old, laid(t, kept[0]))
				case force:
					require.Len(t, kept, 1)
					require.Equal(t, old, laid(t, kept[0]))
				}
				entries, err := os.ReadDir(filepath.Dir(out))
				require.NoError(t, err)
				require.Len(t, entries, 1+len(kept), "nothing is left over")
			})
		}
	}
}

// TestPathThatIsCreatedMeanwhileIsResolved: a folder that another program creates is not taken for a link.
func TestPathThatIsCreatedMeanwhileIsResolved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	want, err := resolved(path)
	require.NoError(t, err)
	over := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				_, _ = os.Mkdir(path, 0o700), os.Remove(path)
			}
		}
	})
	for range 20_000 {
		if got, rerr := resolved(path); rerr != nil || got != want {
			err = fmt.Errorf("%q: %w", got, rerr)
			break
		}
	}
	close(over)
	other.Wait()
	require.NoError(t, err)
}
