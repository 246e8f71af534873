package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// treeRun is a completed run, and the files of its workspace.
func treeRun(t *testing.T, s *store.Store) (rundir.Dir, map[string]string) {
	t.Helper()
	from := t.TempDir()
	write(t, from, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
	require.NoError(t, os.Mkdir(filepath.Join(from, "empty"), 0o755))
	require.NoError(t, os.Symlink("a.txt", filepath.Join(from, "link")))
	b := workspace.Blob(must(tree.Save(t.Context(), s, from, tree.Rules{}, nil))(t))
	d := directoryOf(t, s, "t1",
		entry{run.KindRunStart, run.RunStart{RunID: "t1", ThreadID: "t1", Epoch: 1,
			Workspace: &run.Workspace{Kind: "dir", Source: from, Tree: b}}},
		runEnded(run.Done))
	return d, map[string]string{"a.txt": "a\n", "sub/": "", "sub/b.txt": "b\n", "empty/": "", "link": "-> a.txt"}
}

// promotionLines returns the lines of promotions.jsonl.
func promotionLines(t *testing.T, d rundir.Dir) []string {
	t.Helper()
	raw, err := os.ReadFile(d.Path(rundir.PromotionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
}

func TestPromoteAnArtifact(t *testing.T) {
	ctx, s := t.Context(), testStore(t)
	d := page(t, s, "r1", "<p>done</p>", run.Done)
	write(t, d.Root, map[string]string{"page.html": "edited"}) // after the end: not the result of the run
	before := filesIn(t, d.Root)
	out := filepath.Join(t.TempDir(), "www", "index.html")

	p := must(Promote(ctx, d, Promotion{To: out, Now: at(1)}))(t)
	require.Equal(t, Promoted{
		RunID: "r1", Kind: "artifact", Digest: string(store.DigestOf([]byte("<p>done</p>"))), Path: out, Files: 1,
	}, p)
	require.Equal(t, "<p>done</p>", string(must(os.ReadFile(out))(t)))

	for range 3 {
		p = must(Promote(ctx, d, Promotion{To: out, Now: at(2)}))(t)
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
	p = must(Promote(ctx, d, Promotion{To: second, Now: at(3)}))(t)
	require.Equal(t, filepath.Join(filepath.Dir(out), "page.html"), p.Path)
	require.Len(t, promotionLines(t, d), 2)

	require.NoError(t, os.WriteFile(out, []byte("mine"), 0o600))
	_, err := Promote(ctx, d, Promotion{To: out, Now: at(4)})
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "mine", string(must(os.ReadFile(out))(t)))
	p = must(Promote(ctx, d, Promotion{To: out, Force: true, Now: at(5)}))(t)
	require.Equal(t, out+".before-20260102-030405", p.Before)
	require.Equal(t, "mine", string(must(os.ReadFile(p.Before))(t)))
	require.Equal(t, "<p>done</p>", string(must(os.ReadFile(out))(t)))
	require.Len(t, promotionLines(t, d), 2)

	after := filesIn(t, d.Root)
	delete(after, rundir.PromotionsFile)
	require.Equal(t, before, after, "nothing else of the run directory has changed")
}

// TestPromoteRefuses results that cannot be trusted, and copies nothing.
func TestPromoteRefuses(t *testing.T) {
	type edit struct{ file, from, to string }
	good, forged := string(store.DigestOf([]byte("<p>done</p>"))), string(store.DigestOf([]byte("forged")))
	manifest, artifact := edit{rundir.ResultFile, good, forged}, edit{"page.html", "<p>done</p>", "forged"}
	const head = `"segment_head": "`
	for _, tt := range []struct {
		name    string
		edits   []edit
		message string
	}{
		{"the manifest is half a file", []edit{{rundir.ResultFile, "\n}", ""}}, "damaged"},
		{"the manifest names other bytes", []edit{manifest}, "differs from the journal"},
		{"the manifest names another file", []edit{{rundir.ResultFile, "page.html", "run.json"}},
			"differs from the journal"},
		{"manifest and artifact are forged", []edit{manifest, artifact}, "differs from the journal"},
		{"manifest, artifact and journal are forged", []edit{manifest, artifact, {rundir.EventsFile, good, forged}},
			"event 2 of events.jsonl is not the one in the store"},
		{"the journal is not sealed", []edit{{rundir.MetaFile, head, `"segment_head": "", "was": "`}},
			"the store holds events 1 to 0"},
		{"the store has lost the journal", []edit{{rundir.MetaFile, head,
			head + strings.Repeat("0", 64) + `", "was": "`}}, "does not confirm"},
		{"the events are those of another run", []edit{{rundir.ClaimFile, "r1", "r2"}}, "those of run r1"},
		{"the manifest is missing", nil, "result.json is missing"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := page(t, testStore(t), "r1", "<p>done</p>", run.Done)
			for _, e := range tt.edits {
				raw := string(must(os.ReadFile(d.Path(e.file)))(t))
				require.Contains(t, raw, e.from)
				write(t, d.Root, map[string]string{e.file: strings.ReplaceAll(raw, e.from, e.to)})
			}
			if len(tt.edits) == 0 {
				require.NoError(t, os.Remove(d.Path(rundir.ResultFile)))
			} else if len(tt.edits) == 3 {
				rechain(t, d)
			}
			out := filepath.Join(t.TempDir(), "out.html")
			_, err := Promote(t.Context(), d, Promotion{To: out, Now: at(1)})
			var bad *rundir.ResultError
			require.ErrorAs(t, err, &bad)
			require.ErrorContains(t, err, tt.message)
			require.ErrorContains(t, err, "starter rebuild")
			require.NoFileExists(t, out)
			require.NoFileExists(t, d.Path(rundir.PromotionsFile))
		})
	}
}

// rechain updates the chain in the manifest.
func rechain(t *testing.T, d rundir.Dir) {
	tail := must(d.Tail())(t)
	raw := string(must(os.ReadFile(d.Path(rundir.ResultFile)))(t))
	raw = regexp.MustCompile(`"chain": "[0-9a-f]+"`).ReplaceAllString(raw, `"chain": "`+string(tail.Chain)+`"`)
	require.NoError(t, os.WriteFile(d.Path(rundir.ResultFile), []byte(raw), 0o600))
}

// TestPromoteRequiresACompletedRun: package run tests which operations a status allows.
func TestPromoteRequiresACompletedRun(t *testing.T) {
	for _, status := range []run.Status{"", run.Failed, run.Cancelled, run.Halted} {
		d := page(t, testStore(t), "r1", "half", status)
		out := filepath.Join(t.TempDir(), "out.html")
		_, err := Promote(t.Context(), d, Promotion{To: out, Now: at(1)})
		var conflict *run.ConflictError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, run.Promote, conflict.Operation)
		require.Equal(t, cmp.Or(status, run.Running), conflict.From)
		require.NoFileExists(t, out)
		require.NoFileExists(t, d.Path(rundir.ResultFile))
	}
}

func TestPromoteAWorkspace(t *testing.T) {
	ctx, s := t.Context(), testStore(t)
	d, want := treeRun(t, s)
	parent := t.TempDir()
	out := filepath.Join(parent, "site")

	p := must(Promote(ctx, d, Promotion{To: out, Now: at(1)}))(t)
	require.Equal(t, 3, p.Files)
	require.Equal(t, want, filesIn(t, out))
	p = must(Promote(ctx, d, Promotion{To: out, Now: at(2)}))(t)
	require.True(t, p.Again)

	require.NoError(t, os.Mkdir(filepath.Join(parent, "free"), 0o755))
	p = must(Promote(ctx, d, Promotion{To: filepath.Join(parent, "free"), Now: at(2)}))(t)
	require.Equal(t, want, filesIn(t, filepath.Join(parent, "free")), "an empty folder is used")
	require.Empty(t, p.Before)

	for name, change := range map[string]func(){
		"a file more":     func() { write(t, out, map[string]string{"mine.txt": "m"}) },
		"a file less":     func() { require.NoError(t, os.Remove(filepath.Join(out, "a.txt"))) },
		"another content": func() { write(t, out, map[string]string{"a.txt": "A\n"}) },
		"another mode":    func() { require.NoError(t, os.Chmod(filepath.Join(out, "a.txt"), 0o755)) },
		"another link": func() {
			require.NoError(t, os.Remove(filepath.Join(out, "link")))
			require.NoError(t, os.Symlink("sub", filepath.Join(out, "link")))
		},
		"no folder": func() { require.NoError(t, os.Remove(filepath.Join(out, "empty"))) },
	} {
		t.Run(name, func(t *testing.T) {
			change()
			changed := filesIn(t, out)
			_, err := Promote(ctx, d, Promotion{To: out, Now: at(3)})
			var refused *rundir.TargetError
			require.ErrorAs(t, err, &refused)
			require.Contains(t, refused.Next, "with --force")
			require.Equal(t, changed, filesIn(t, out))
			p := must(Promote(ctx, d, Promotion{To: out, Force: true, Now: at(4)}))(t)
			require.Equal(t, want, filesIn(t, out))
			require.Equal(t, changed, filesIn(t, p.Before), "what was there is kept")
		})
	}
	require.Len(t, promotionLines(t, d), 2, "one for each place")
	left := filesIn(t, parent)
	for name := range left {
		require.NotContains(t, name, ".promoting-")
	}
	for _, to := range []string{d.Root, d.Path("site"), filepath.Dir(d.Root)} {
		_, err := Promote(ctx, d, Promotion{To: to, Force: true, Now: at(5)})
		require.Regexp(t, "contains the run directory|it is in the directory of run", err.Error())
	}
	require.NoError(t, os.WriteFile(filepath.Join(parent, "file"), nil, 0o600))
	_, err := Promote(ctx, d, Promotion{To: filepath.Join(parent, "file"), Force: true, Now: at(5)})
	require.ErrorIs(t, err, syscall.ENOTDIR)
}

// TestPromoteCanBeRepeatedAfterEveryStep stops a promotion before each of its steps. The path has its earlier content
// or the result, no earlier content is lost, and a repetition completes the promotion and records it once.
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
					write(t, out, old)
				}
				n := 0
				d.Disk = disk.Disk{Hook: func(disk.Step) error {
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
					now := filesIn(t, out)
					require.True(t, len(now) == len(old) && now["old.txt"] == "old" || len(now) == len(want) &&
						now["sub/b.txt"] == "b\n", "half of something: %v", now)
				} else {
					require.False(t, force, "it is never missing")
				}
				require.LessOrEqual(t, len(promotionLines(t, d)), 1)
				edited := force && present(filepath.Join(out, "sub"))
				if edited { // before the next promotion
					write(t, out, map[string]string{"sub/b.txt": "edited"})
				}
				d.Disk = disk.Disk{}
				must(Promote(t.Context(), d, Promotion{To: out, Force: force, Now: at(2)}))(t)
				require.Equal(t, want, filesIn(t, out))
				require.Len(t, promotionLines(t, d), 1)
				kept := must(filepath.Glob(out + ".before-*"))(t)
				switch {
				case edited:
					require.Len(t, kept, 2)
					require.Equal(t, "edited", filesIn(t, kept[1])["sub/b.txt"])
					require.Equal(t, old, filesIn(t, kept[0]))
				case force:
					require.Len(t, kept, 1)
					require.Equal(t, old, filesIn(t, kept[0]))
				}
				entries := must(os.ReadDir(filepath.Dir(out)))(t)
				require.Len(t, entries, 1+len(kept), "nothing is left over")
			})
		}
	}
}

// TestPathThatIsCreatedMeanwhileIsResolved: a folder that another program creates is not resolved as a link.
func TestPathThatIsCreatedMeanwhileIsResolved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run")
	want := must(resolved(path))(t)
	ctx, stop := context.WithCancel(t.Context())
	var other sync.WaitGroup
	other.Go(func() {
		for ctx.Err() == nil {
			_, _ = os.Mkdir(path, 0o700), os.Remove(path)
		}
	})
	got, err := want, error(nil)
	for i := 0; i < 2_000 && err == nil && got == want; i++ {
		got, err = resolved(path)
	}
	stop()
	other.Wait()
	require.NoError(t, err)
	require.Equal(t, want, got)
}
