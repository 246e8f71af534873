package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	g := &grounds{root: h.root, server: h.running().Server.Env(), client: h.dial(), file: file,
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
		require.Equal(t, foretell(t, file).artifact(), g.want.Artifact, "the plain loop returns another page")
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

// count has a process reach all its points, and lists them.
func (g *grounds) count(t *testing.T, kill dies) (points []point.Point) {
	t.Helper()
	s, err := g.newSite("count")
	require.NoError(t, err)
	log := filepath.Join(s.root, "points.jsonl")
	_, err = kill(t.Context(), s, point.Plan{Log: log})
	require.NoError(t, err)
	require.NoError(t, s.finish(t.Context()))
	require.NoError(t, s.invariants(g.want))
	for line := range bytes.Lines(read(t, log)) {
		var p point.Point
		require.NoError(t, json.Unmarshal(line, &p))
		points = append(points, p)
	}
	return points
}

// TestWalkWorker kills the worker at points of a run, each in a separate run that another worker completes.
func TestWalkWorker(t *testing.T) {
	t.Parallel()
	newGrounds(t, small()).walk(t, workerDies)
}

// TestWalkStarter kills the starter at points of a start. The next start continues with what is there.
func TestWalkStarter(t *testing.T) {
	t.Parallel()
	newGrounds(t, small()).walk(t, func(ctx context.Context, s *site, p point.Plan) (*point.Point, error) {
		at, err := s.killStarter(ctx, p)
		return at, errors.Join(err, s.start(ctx))
	})
}

// TestWalkTurns kills the worker at points of a run that works on a tree.
func TestWalkTurns(t *testing.T) {
	t.Parallel()
	g := newGrounds(t, smallTurns())
	require.Equal(t, map[string]string{"draft.txt": "2 removed", "in/two.txt": "2 renamed", "in/test.sh": "2 added",
		"note.txt": "2 changed", "one.txt": "2 renamed"}, lastChanges(g.want.Changes))
	require.Contains(t, g.want.Files, "snapshots/turn-2/tree/in/two.txt")
	g.walk(t, workerDies)
}

// dies starts a run, one process of which counts its points and dies by a plan. nil: it did not reach the point.
type dies func(context.Context, *site, point.Plan) (*point.Point, error)

func workerDies(ctx context.Context, s *site, p point.Plan) (*point.Point, error) {
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s.killWorker(ctx, p)
}

// walk kills at each of the points that are chosen.
func (g *grounds) walk(t *testing.T, kill dies) {
	t.Helper()
	points, stranger := g.count(t, kill), bystander(t)
	chosen := choose(t, points, g.root)
	var mu sync.Mutex
	begun, unreached, reached := time.Now(), 0, map[string]int{}
	each(t.Context(), 6*runtime.NumCPU(), chosen, func(ctx context.Context, k int) {
		s, at, err := g.step(ctx, k, kill, stranger)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil && ctx.Err() != nil: // the test has ended
		case err != nil:
			t.Errorf("point %d: %v%s", k, err, s.story())
		case at == nil:
			unreached++
		default:
			reached[class(*at, g.root)]++
		}
	})
	t.Logf("seed %d: %d of %d points in %.0f s, %d of them not reached; the others: %v", *walkSeed, len(chosen),
		len(points), time.Since(begun).Seconds(), unreached, reached)
	share := 20 // the number of points differs a little between runs
	if !*walkAll {
		share = 10
	}
	require.LessOrEqual(t, unreached*share, len(chosen), "runs have fewer points than were counted")
}

// step is one kill and all that follows.
func (g *grounds) step(ctx context.Context, k int, kill dies, stranger process.Identity) (*site, *point.Point, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	s, err := g.newSite(fmt.Sprintf("at-%04d", k))
	if err != nil {
		return s, nil, err
	}
	at, err := kill(ctx, s, point.Plan{DieAt: k})
	if err == nil {
		err = s.finish(ctx)
	}
	if err == nil {
		err = s.invariants(g.want, stranger)
	}
	if err == nil {
		err = os.RemoveAll(s.root)
	}
	return s, at, err
}

// each does the work for every number, for some at the same time. Half of a kill is waiting (for a heartbeat, for a
// workflow task), so a walk does more at once than there are processors.
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

// bystander is a process of the same program as the agents, in a separate group, which must stay alive.
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
