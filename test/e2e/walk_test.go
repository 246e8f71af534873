package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// small is the pipeline of the walk.
func small() string {
	return filepath.Join(project, "test", "e2e", "testdata", "small", "pipeline.yaml")
}

// newGrounds starts a server and runs a pipeline once without any disturbance.
func newGrounds(t *testing.T, file string) *grounds {
	t.Helper()
	h := newEnv(t)
	h.starter("server", "start")
	folder := h.dir("definition") // a copy: a walk takes minutes, and a checkout is edited
	require.NoError(t, os.CopyFS(folder, os.DirFS(filepath.Dir(file))))
	file = filepath.Join(folder, filepath.Base(file))
	g := &grounds{root: h.root, server: h.running().Server.SetEnv(), client: h.dial(), file: file,
		builds: []string{programs}}
	t.Cleanup(func() { g.clear(t) })
	var err error
	g.def, err = operations.Load(os.DirFS(filepath.Dir(file)), filepath.Base(file), file)
	require.NoError(t, err)
	g.def.Home = folder
	s, err := g.newSite("undisturbed")
	require.NoError(t, err)
	require.NoError(t, s.start(t.Context()))
	require.NoError(t, s.finish(t.Context()))
	left, err := look(s.dir, s.log)
	require.NoError(t, err)
	g.want, err = outcomeOf(s.dir, left)
	require.NoError(t, err)
	require.NoError(t, s.invariants(g.want))
	if g.def.Plan.Artifact != nil {
		require.Equal(t, foretell(t, file).artifact(), g.want.Artifact, "the plain loop gives another page")
	}
	return g
}

// clear ends what a failed site has left.
func (g *grounds) clear(t *testing.T) {
	logs, err := filepath.Glob(filepath.Join(g.root, "*", "calls.jsonl"))
	require.NoError(t, err)
	for _, log := range logs {
		require.NoError(t, endSupervisors(filepath.Join(filepath.Dir(log), "state", "scratch")))
		calls, err := readCalls(log)
		require.NoError(t, err)
		endAgents(t, calls)
	}
}

// count has a program pass all its points, and lists them.
func (g *grounds) count(t *testing.T, name string, run func(*site, point.Plan) error) []point.Point {
	t.Helper()
	s, err := g.newSite(name)
	require.NoError(t, err)
	log := filepath.Join(s.root, "points.jsonl")
	require.NoError(t, run(s, point.Plan{Log: log}))
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want))
	raw := read(t, log)
	var out []point.Point
	for line := range bytes.Lines(raw) {
		var p point.Point
		require.NoError(t, json.Unmarshal(line, &p))
		out = append(out, p)
	}
	return out
}

// TestWalkWorker kills the worker at chosen points of a run, each in a run of its own, and lets an honest one take
// over.
func TestWalkWorker(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	points := g.count(t, "count", g.oneWorker(t))
	g.walk(t, points, func(ctx context.Context, s *site, p point.Plan) (*point.Point, error) {
		if err := s.start(ctx); err != nil {
			return nil, err
		}
		return s.killWorker(ctx, p)
	})
}

// oneWorker has a victim do a whole run.
func (g *grounds) oneWorker(t *testing.T) func(*site, point.Plan) error {
	return func(s *site, p point.Plan) error {
		if err := s.start(t.Context()); err != nil {
			return err
		}
		_, err := s.killWorker(t.Context(), p)
		return err
	}
}

// TestWalkStarter kills the starter at chosen points of a start. Who starts the run again goes on with what is there.
func TestWalkStarter(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, small())
	points := g.count(t, "count", func(s *site, p point.Plan) error {
		if _, err := s.killStarter(t.Context(), p); err != nil {
			return err
		}
		return s.start(t.Context())
	})
	g.walk(t, points, func(ctx context.Context, s *site, p point.Plan) (*point.Point, error) {
		at, err := s.killStarter(ctx, p)
		if err != nil {
			return nil, err
		}
		return at, s.start(ctx)
	})
}

// tour is what a walk has met so far.
type tour struct {
	mu                  sync.Mutex
	where, doing        tally // points and windows of the deaths
	unreached, failures int
}

// walk kills at each of the points that are chosen.
func (g *grounds) walk(t *testing.T, points []point.Point,
	kill func(context.Context, *site, point.Plan) (*point.Point, error)) {
	t.Helper()
	stranger := bystander(t)
	chosen := choose(t, points, g.root)
	begun, seen := time.Now(), &tour{where: tally{}, doing: tally{}}
	each(t.Context(), 6*runtime.NumCPU(), chosen, func(ctx context.Context, k int) {
		s, at, err := g.step(ctx, k, kill, stranger)
		if err != nil && ctx.Err() != nil {
			return // the test is over
		}
		seen.note(t, k, s, at, err)
	})
	t.Logf("seed %d: %d of %d points walked in %.0f s, %d of them not reached:%s\nthe run was:%s",
		*walkSeed, len(chosen), len(points), time.Since(begun).Seconds(), seen.unreached, seen.where, seen.doing)
	require.Zero(t, seen.failures, "points at which recovery fails")
	share := 20
	if !*walkAll {
		share = 10 // a sample has the last point of each class, and the number of points varies a little
	}
	require.LessOrEqual(t, seen.unreached*share, len(chosen), "runs have fewer points than were counted")
}

func (w *tour) note(t *testing.T, k int, s *site, at *point.Point, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err != nil:
		w.failures++
		t.Errorf("point %d: %v%s", k, err, s.story())
	case at == nil:
		w.unreached++
	default:
		w.where[class(*at, filepath.Dir(s.root))]++
		w.doing[s.deaths[0].Window]++
	}
}

// step is one kill and all that follows.
func (g *grounds) step(
	ctx context.Context, k int, kill func(context.Context, *site, point.Plan) (*point.Point, error),
	stranger process.Identity,
) (*site, *point.Point, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("at-%04d", k))
	if err != nil {
		return s, nil, err
	}
	at, err := kill(ctx, s, point.Plan{DieAt: k})
	if err != nil {
		return s, at, err
	}
	if err := s.finish(ctx); err != nil {
		return s, at, err
	}
	if err := s.invariants(g.want, stranger); err != nil {
		return s, at, err
	}
	return s, at, os.RemoveAll(s.root)
}

// each does the work for every number, for so many at once. Half of a kill is waiting (for a heartbeat that does not
// come, for a workflow task that nobody answers), so a walk does more at once than there are processors.
func each(ctx context.Context, atOnce int, numbers []int, work func(ctx context.Context, k int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		wg.Go(func() {
			for k := range next {
				work(ctx, k)
			}
		})
	}
	for _, k := range numbers {
		next <- k
	}
	close(next)
	wg.Wait()
}

// bystander is a process of the same program as the agents, in a group of its own, that nobody may touch.
func bystander(t *testing.T) process.Identity {
	t.Helper()
	cmd := exec.Command(filepath.Join(programs, "victim"), "scripted-agent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe() // it reads its prompt until this is closed
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		require.NoError(t, in.Close())
		_ = cmd.Wait() // it finds no prompt
	})
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	return id
}
