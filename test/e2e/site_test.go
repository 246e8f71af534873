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
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/test/e2e/point"
)

// site is one run on a separate machine: host id, store, scratch and call log are the site's, the server is shared.
// Its methods give errors, so that many sites can be at work in the goroutines of one test.
type site struct {
	root   string // of everything
	dir    string // the run directory
	log    string // of the agent's calls, outside the run directory
	runID  string // once it is started
	def    operations.Definition
	file   string // the definition
	op     operations.Operator
	env    []string
	deaths []death
	watch  *watch
}

// death is the end of a process that was killed or stopped.
type death struct {
	Point    point.Point // where it died
	Left     instant
	Kind     string // of the interruption in a soak
	InFlight bool   // in a soak: a call of the process was in flight
}

// grounds is what sites share: a server, a client of it, and the pipeline.
type grounds struct {
	root   string
	server []string // variables of the server
	client client.Client
	file   string
	def    operations.Definition
	want   outcome  // of an undisturbed run
	builds []string // folders with programs, which upgrades change between
}

// newSite makes the folder of a site. Settings are added to its processes' environment.
func (g *grounds) newSite(name string, settings ...string) (*site, error) {
	s := &site{root: filepath.Join(g.root, name), def: g.def, file: g.file}
	s.dir, s.log = filepath.Join(s.root, "run"), filepath.Join(s.root, "calls.jsonl")
	state := filepath.Join(s.root, "state")
	host, err := host.HostID(state)
	if err != nil {
		return nil, err
	}
	empty := filepath.Join(s.root, "settings.yaml")
	if err := os.WriteFile(empty, []byte("{}\n"), 0o600); err != nil {
		return nil, err
	}
	s.env = append(testenv.CleanEnv(os.Environ()), "PASSBOOK_STATE_DIR="+state,
		"PASSBOOK_HEARTBEAT="+heartbeat.String(), "PASSBOOK_SETTINGS="+empty,
		"PASSBOOK_RUN_ROOT="+filepath.Join(s.root, "runs"),
		"PATH="+programs+":"+os.Getenv("PATH"), scripted.CallLogEnv+"="+s.log)
	s.env = slices.Concat(s.env, g.server, settings, caching())
	s.op = operations.Operator{
		Client: g.client, Namespace: client.DefaultNamespace, Host: host, Build: "test", By: "test",
		Settings: config.Settings{
			StateDir: state, RunRoot: filepath.Join(s.root, "runs"), Store: "file://" + filepath.Join(state, "store"),
			TaskQueue: "passbook", Heartbeat: heartbeat, Environment: "test",
		},
	}
	s.watch = watchDirectory(rundir.At(s.dir))
	return s, nil
}

// heartbeat is after how long without a sign a worker of a test counts as lost: the shortest that the settings allow.
const heartbeat = time.Second

// spoil sets the faults of the site's agent.
func (s *site) spoil(faults string) error {
	name := filepath.Join(s.root, "faults.yaml")
	s.env = append(s.env, scripted.FaultsEnv+"="+name)
	return os.WriteFile(name, []byte(faults), 0o600)
}

// start starts the run, or continues where a starter was killed.
func (s *site) start(ctx context.Context) error {
	st, err := s.op.Start(ctx, s.def, rundir.At(s.dir))
	s.runID = st.RunID
	return err
}

// program starts a process of the site; its output goes to a file beside the run.
func (s *site) program(ctx context.Context, settings []string, name string, args ...string) (*exec.Cmd, error) {
	return s.launch(ctx, settings, filepath.Join(programs, name), args...)
}

// launch starts the program of a path.
func (s *site) launch(ctx context.Context, settings []string, path string, args ...string) (*exec.Cmd, error) {
	out, err := os.OpenFile(filepath.Join(s.root, filepath.Base(path)+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND,
		0o600)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = slices.Concat(s.env, settings), s.root, out, out,
		time.Second
	err = cmd.Start()
	return cmd, errors.Join(err, out.Close())
}

// killStarter has a starter die by a plan. nil: it came through.
func (s *site) killStarter(ctx context.Context, p point.Plan) (*point.Point, error) {
	return s.kill(ctx, p, nil, "start", s.file, s.dir)
}

// killWorker has a worker die by a plan. nil: the run completed before.
func (s *site) killWorker(ctx context.Context, p point.Plan) (*point.Point, error) {
	return s.kill(ctx, p, s.ended, "worker")
}

// kill runs a victim until it dies or over returns, and keeps what it left.
func (s *site) kill(ctx context.Context, p point.Plan, over func(context.Context) error,
	verb ...string) (*point.Point, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p.Died = filepath.Join(s.root, fmt.Sprintf("died-%d.json", len(s.deaths)))
	cmd, err := s.program(ctx, []string{p.Setting()}, "victim", verb...)
	if err != nil {
		return nil, err
	}
	through := make(chan bool, 1)
	if over != nil {
		go func() { // ends the victim when the run has ended and it has not
			if over(ctx) == nil {
				through <- true
				cancel()
			}
		}()
	}
	if err = cmd.Wait(); err == nil { // a starter
		return nil, nil
	}
	raw, missing := os.ReadFile(p.Died)
	if missing != nil && len(through) > 0 {
		return nil, nil
	}
	if missing != nil {
		return nil, fmt.Errorf("the victim ended before the point at which it was to die: %w", err)
	}
	var at point.Point
	if err := json.Unmarshal(raw, &at); err != nil {
		return nil, err
	}
	return &at, s.died(death{Point: at})
}

// died records a death with what it left.
func (s *site) died(d death) (err error) {
	if d.Left, err = look(s.dir, s.log); err != nil {
		return fmt.Errorf("right after the kill: %w", err)
	}
	s.deaths = append(s.deaths, d)
	return nil
}

// finish has the real worker run to the end of the run.
func (s *site) finish(ctx context.Context) error {
	cmd, err := s.program(ctx, nil, "worker")
	if err != nil {
		return err
	}
	err = s.ended(ctx)
	return errors.Join(err, end(cmd))
}

// end kills a process that is no longer needed.
func end(cmd *exec.Cmd) error {
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// ended waits until the run's workflow has closed.
func (s *site) ended(ctx context.Context) error {
	if err := s.op.Client.GetWorkflow(ctx, s.runID, "").Get(ctx, nil); err != nil {
		return fmt.Errorf("wait for run %s to end: %w", s.runID, err)
	}
	return nil
}

// story returns what is left of a site that failed.
func (s *site) story() string {
	var b strings.Builder
	for _, d := range s.deaths {
		fmt.Fprintf(&b, "\nkilled at %d, %s %s", d.Point.N, d.Point.At, d.Point.Path)
	}
	for _, name := range []string{"victim.log", "worker.log", "run/events.jsonl", "calls.jsonl"} {
		raw, err := os.ReadFile(filepath.Join(s.root, name))
		if err == nil {
			fmt.Fprintf(&b, "\n%s: … %s", name, raw[max(0, len(raw)-1500):])
		}
	}
	return b.String()
}

// lines splits a file into its complete lines, and what is left behind the last line feed.
func lines(raw []byte) (complete [][]byte, rest []byte) {
	parts := bytes.Split(raw, []byte("\n"))
	return parts[:len(parts)-1], parts[len(parts)-1]
}
