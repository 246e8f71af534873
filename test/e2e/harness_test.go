package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// TestHarnessDetectsRepeatedCalls proves the harness: a worker that never finds an earlier answer takes over where
// one died between an answer and its journaling, and invariant 4 must not hold. With an honest one in its place, it
// does.
func TestHarnessDetectsRepeatedCalls(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	first := g.first(t, string(activities.PointStored))
	for name, forget := range map[string]bool{"honest": false, "forgetful": true} {
		t.Run(name, func(t *testing.T) {
			s, err := g.newSite(name)
			require.NoError(t, err)
			require.NoError(t, s.start(t.Context()))
			at, err := s.killWorker(t.Context(), point.Plan{DieAt: first})
			require.NoError(t, err)
			require.NotNil(t, at)
			require.Equal(t, string(activities.PointStored), at.At)
			require.Equal(t, notJournaled, s.deaths[0].Window)
			at, err = s.killWorker(t.Context(), point.Plan{Forget: forget})
			require.NoError(t, err)
			require.Nil(t, at, "it was not to die")
			err = s.invariants(g.want)
			if !forget {
				require.NoError(t, err)
				return
			}
			require.Equal(t, []int{4}, broken(err))
			require.ErrorContains(t, err, "call 001 was answered 2 times, started 2 times")
		})
	}
}

// TestCallOutlivesWorkerFromStart kills the worker when its agent has just begun: the next worker finds the
// supervisor, and joins the call.
func TestCallOutlivesWorkerFromStart(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	first := g.first(t, string(activities.PointSpawned))
	s, err := g.newSite("spawned")
	require.NoError(t, err)
	require.NoError(t, s.spoil(slow("1", "4")))
	require.NoError(t, s.start(t.Context()))
	at, err := s.killWorker(t.Context(), point.Plan{DieAt: first, Await: s.log})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.Equal(t, string(activities.PointSpawned), at.At)
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want, bystander(t)))
	calls, err := readCalls(s.log)
	require.NoError(t, err)
	starts, _ := counts(calls)
	require.Equal(t, 1, starts["001"])
}

// first returns the number of the first point of a run whose place contains the text.
func (g *grounds) first(t *testing.T, text string) int {
	t.Helper()
	for _, p := range g.count(t, "count", g.oneWorker(t)) {
		if strings.Contains(placeOf(p, g.root), text) {
			return p.N
		}
	}
	require.FailNow(t, "no run reaches the point", text)
	return 0
}

// TestEveryInvariantCanFail hurts copies of a run that died once and came to its end, and wants the harness to name the
// invariant.
func TestEveryInvariantCanFail(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	s, err := g.newSite("whole")
	require.NoError(t, err)
	require.NoError(t, s.start(t.Context()))
	// the first checkpoint is long committed
	at, err := s.killWorker(t.Context(), point.Plan{DieAt: g.first(t, "refine-output")})
	require.NoError(t, err)
	require.NotNil(t, at)
	require.NotEmpty(t, s.deaths[0].Left.Book.Checkpoints)
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.watch.over())
	stranger := bystander(t)

	for _, injury := range injuries(t, stranger) {
		t.Run(injury.name, func(t *testing.T) {
			c := s.copied(t)
			require.NoError(t, c.invariants(g.want, stranger))
			c = s.copied(t)
			injury.hurt(c)
			require.Contains(t, broken(c.invariants(g.want, stranger)), injury.invariant)
		})
	}
	t.Run("a stranger is killed", func(t *testing.T) {
		gone := stranger
		gone.StartTime += "0"
		require.Equal(t, []int{8}, broken(s.copied(t).invariants(g.want, gone)))
	})
	t.Run("a run goes back", func(t *testing.T) { testGoingBack(t, s) })
}

// injury is a way to hurt a run that is over.
type injury struct {
	invariant int
	name      string
	hurt      func(c *site)
}

// injuries are what every invariant is there for.
func injuries(t *testing.T, stranger process.Identity) []injury {
	return []injury{
		{2, "half a row", func(c *site) {
			c.edit(t, layout.TracesFile,
				func(raw string) string { return raw + `{"half` })
		}},
		{3, "a line is gone", func(c *site) {
			c.edit(t, layout.EventsFile, func(raw string) string { return raw[strings.Index(raw, "\n")+1:] })
		}},
		{3, "an old line is another", func(c *site) {
			c.edit(t, layout.EventsFile, func(raw string) string {
				return strings.Replace(raw, "kill-points",
					"kill-paints", 1)
			})
		}},
		{4, "a settled call is made again", func(c *site) { c.called(t, callLine{Event: "start", At: "001"}) }},
		{4, "an answer is paid for twice", func(c *site) { c.called(t, callLine{Event: "answered", At: "weaver-1"}) }},
		{5, "an old checkpoint is written again", func(c *site) {
			c.edit(t, "_orchestrator/checkpoints/cp-S1/manifest.json",
				func(raw string) string { return strings.Replace(raw, "cp-S1", "cp-S2", 1) })
		}},
		{6, "a cost row is there twice", func(c *site) {
			c.edit(t, layout.CostLog, func(raw string) string { return raw + raw[:strings.Index(raw, "\n")+1] })
		}},
		{6, "the ledger of the host lacks a call", func(c *site) {
			files, err := filepath.Glob(filepath.Join(c.op.Settings.StateDir, "costs", "*.jsonl"))
			require.NoError(t, err)
			raw := string(read(t, files[0]))
			last := strings.LastIndex(raw[:len(raw)-1], "\n") + 1
			require.NoError(t, os.WriteFile(files[0], []byte(raw[:last]), 0o600))
		}},
		{7, "a note is lost", func(c *site) {
			c.edit(t, "_orchestrator/discovery-log.md", func(raw string) string { return raw[:len(raw)/2] })
		}},
		{8, "an agent survives", func(c *site) {
			dir, err := os.Getwd()
			require.NoError(t, err)
			c.called(t, callLine{Event: "start", At: "001", PID: stranger.PID, Dir: dir})
		}},
		{9, "the last change has no row", func(c *site) {
			c.edit(t, layout.ProvenanceFile, func(raw string) string { return raw[:strings.Index(raw, "\n")+1] })
		}},
		{10, "it ends twice", func(c *site) {
			c.edit(t, layout.EventsFile, func(raw string) string {
				last := raw[strings.LastIndex(raw[:len(raw)-1], "\n")+1:]
				n := strings.Count(raw, "\n")
				return raw + strings.Replace(last, fmt.Sprintf(`"seq":%d,`, n), fmt.Sprintf(`"seq":%d,`, n+1), 1)
			})
		}},
	}
}

// testGoingBack shows a watch a finished state and then an earlier one, and half a file (1).
func testGoingBack(t *testing.T, s *site) {
	c := s.copied(t)
	require.NoError(t, c.watch.over())
	w := &watch{dir: projector.At(c.dir), seen: map[string]time.Time{}}
	require.NoError(t, w.look())
	c.edit(t, layout.MetaFile, func(raw string) string {
		return strings.Replace(raw, fmt.Sprintf(`"seq": %d`, w.turn.Meta), fmt.Sprintf(`"seq": %d`, w.turn.Meta-1), 1)
	})
	require.ErrorContains(t, w.look(), "the run goes back")
	c.edit(t, layout.MetaFile, func(raw string) string { return raw[:len(raw)/2] })
	require.ErrorIs(t, w.look(), layout.ErrDamaged)
	require.NoError(t, os.Remove(filepath.Join(c.dir, layout.StateFile)))
	require.Error(t, w.look())
}

// copied is the site with a copy of its run and its call log.
func (s *site) copied(t *testing.T) *site {
	t.Helper()
	c := *s
	c.root = t.TempDir()
	c.dir, c.log = filepath.Join(c.root, "run"), filepath.Join(c.root, "calls.jsonl")
	require.NoError(t, os.CopyFS(c.dir, os.DirFS(s.dir)))
	require.NoError(t, os.WriteFile(c.log, read(t, s.log), 0o600))
	c.op.Settings.StateDir = filepath.Join(c.root, "state")
	const ledger = "costs"
	require.NoError(t, os.CopyFS(filepath.Join(c.op.Settings.StateDir, ledger),
		os.DirFS(filepath.Join(s.op.Settings.StateDir, ledger))))
	c.watch = watchDirectory(projector.At(c.dir))
	return &c
}

// edit changes a file of the run.
func (s *site) edit(t *testing.T, name string, change func(string) string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	raw := string(read(t, path))
	require.NotEqual(t, raw, change(raw), "nothing is hurt")
	require.NoError(t, os.WriteFile(path, []byte(change(raw)), 0o600))
}

// called adds a line to the call log.
func (s *site) called(t *testing.T, c callLine) {
	t.Helper()
	line, err := json.Marshal(c)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.log, append(read(t, s.log), append(line, '\n')...), 0o600))
}

// broken lists the invariants that do not hold.
func broken(err error) []int {
	var one violation
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		var out []int
		for _, e := range many.Unwrap() {
			out = append(out, broken(e)...)
		}
		return out
	}
	if errors.As(err, &one) {
		return []int{one.Invariant}
	}
	return nil
}
