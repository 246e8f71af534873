package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// amounts are the sizes of the measurements.
type amounts struct {
	Latency  int           // workflows of five steps, one after another
	Many     int           // workflows of five steps, atOnce at a time
	Passes   int           // of the loop
	Steps    int           // before restart, revert and fork
	Waiting  int           // workflows that wait
	Call     time.Duration // of a call during which the worker is killed
	Patience time.Duration
}

const (
	fewSteps = 5
	atOnce   = 50
)

// figure is a row of the table.
type figure string

const (
	figStart   figure = "start"
	figOne     figure = "five"
	figMany    figure = "many"
	figLoop    figure = "loop"
	figKill    figure = "kill"
	figRepeats figure = "repeats"
	figRestart figure = "restart"
	figRevert  figure = "revert"
	figFork    figure = "fork"
	figBytes   figure = "bytes"
	figIdle    figure = "idle"
	figWaiting figure = "waiting"
)

// reading is one value of a figure, or why there is none.
type reading struct {
	value float64
	err   error
}

// trial measures one contender once.
type trial struct {
	amounts
	contender
	agent    string // the program
	dir      string // an empty folder
	readings map[figure]reading
}

// session is an engine in a folder, and the log of its agents.
type session struct {
	*trial
	engine
	log      starts
	executed int64 // steps, as the worker has counted them
}

// record keeps a value, or the error of a measurement.
func (t *trial) record(f figure, value float64, err error) {
	if err == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		err = fmt.Errorf("the value is %v", value)
	}
	if err != nil && !errors.Is(err, peer.ErrNotOffered) {
		fmt.Fprintf(os.Stderr, "bench: %s, %s: %v\n", t.name, f, err)
	}
	t.readings[f] = reading{value, err}
}

// run makes all measurements. Each set of them has its own engine in an empty folder.
func (t *trial) run(ctx context.Context) {
	sets := []struct {
		name    string
		figures []figure
		measure func(context.Context, *session)
	}{
		{"short", []figure{figStart, figOne, figMany, figLoop}, measureShort},
		{"kill", []figure{figKill, figRepeats}, measureKill},
		{"long", []figure{figBytes, figRevert, figRestart, figFork}, measureLong},
		{"waiting", []figure{figIdle, figWaiting}, measureWaiting},
	}
	for _, set := range sets {
		begun := time.Now()
		err := t.open(ctx, set.name, set.measure)
		fmt.Fprintf(os.Stderr, "bench: %s, %s: %.1f s\n", t.name, set.name, time.Since(begun).Seconds())
		for _, f := range set.figures {
			if _, has := t.readings[f]; !has {
				t.record(f, 0, errors.Join(err, errors.New("not measured, because an earlier step failed")))
			}
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s, %s: %v\n", t.name, set.name, err)
		}
	}
}

// open starts an engine, measures, and ends it.
func (t *trial) open(ctx context.Context, name string, measure func(context.Context, *session)) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, t.Patience, fmt.Errorf("no result within %s", t.Patience))
	defer cancel()
	dir, logs := filepath.Join(t.dir, name), filepath.Join(t.dir, "logs")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.MkdirAll(logs, 0o755)); err != nil {
		return err
	}
	s := &session{trial: t, engine: t.contender.open(dir, logs), log: starts(filepath.Join(logs, name))}
	defer func() { err = errors.Join(err, s.stop(ctx), os.RemoveAll(dir)) }()
	if err := s.start(ctx); err != nil {
		return err
	}
	measure(ctx, s)
	return nil
}

// calls is the agent that records its start in a log.
func (s *session) calls(take time.Duration) []string {
	return []string{s.agent, "-log=" + string(s.log), "-take=" + take.String()}
}

// one asks the engine about one workflow.
func (s *session) one(ctx context.Context, do, name string, step int) (string, error) {
	r, err := s.do(ctx, peer.Request{Do: do, Names: []string{name}, Step: step})
	if err != nil || len(r.Names) == 0 {
		return "", err
	}
	return r.Names[0], nil
}

// begin starts a workflow and returns its name.
func (s *session) begin(ctx context.Context, id string, w peer.Work) (string, error) {
	r, err := s.do(ctx, peer.Request{Do: peer.DoStart, Names: []string{id}, Work: w})
	if err != nil {
		return "", err
	}
	return r.Names[0], nil
}

// measureShort measures the start of the engine, workflows of five steps, and the loop.
func measureShort(ctx context.Context, s *session) {
	begun, err := s.ready(ctx)
	s.record(figStart, begun.Seconds(), err)
	if err != nil {
		return
	}
	if _, err := s.five(ctx, "warm", 2, 1); err != nil { // caches and connections
		s.record(figOne, 0, err)
		return
	}
	r, err := s.five(ctx, "one", s.Latency, 1)
	s.record(figOne, median(r.Each).Seconds(), err)
	r, err = s.five(ctx, "many", s.Many, atOnce)
	s.record(figMany, float64(s.Many)/r.Wall.Seconds(), err)
	gap, err := s.loop(ctx)
	s.record(figLoop, gap.Seconds(), err)
}

// ready measures the start of all processes until the first step of a workflow has begun. The folder has been used
// before.
func (s *session) ready(ctx context.Context) (time.Duration, error) {
	if err := s.stop(ctx); err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := s.start(ctx); err != nil {
		return 0, err
	}
	name, err := s.begin(ctx, "first", peer.Work{Steps: 1, Agent: s.calls(0)})
	if err != nil {
		return 0, err
	}
	first, err := s.log.await(ctx, 1)
	if err != nil {
		return 0, err
	}
	r, err := s.do(ctx, peer.Request{Do: peer.DoAwait, Names: []string{name}})
	s.executed = r.Executed
	return first.Sub(begun), err
}

// five executes workflows of five empty steps, and checks that all steps were executed.
func (s *session) five(ctx context.Context, id string, n, parallel int) (peer.Reply, error) {
	w := peer.Work{Steps: fewSteps}
	if s.agents {
		w.Agent = s.calls(0)
	}
	started, err := s.log.count()
	if err != nil {
		return peer.Reply{}, err
	}
	r, err := s.do(ctx, peer.Request{Do: peer.DoRun, Names: names(id, n), Work: w, Parallel: parallel})
	if err != nil {
		return r, err
	}
	if want := n * fewSteps; r.Answers != want {
		return r, fmt.Errorf("the workflows have %d answers; %d were expected", r.Answers, want)
	}
	if s.agents {
		return r, s.log.exactly(started + n*fewSteps)
	}
	done := r.Executed - s.executed
	if s.executed = r.Executed; done != int64(n*fewSteps) {
		return r, fmt.Errorf("%d steps were executed; %d were expected", done, n*fewSteps)
	}
	return r, nil
}

// loop is the median time from the start of one call to that of the next one.
func (s *session) loop(ctx context.Context) (time.Duration, error) {
	before, err := s.log.count()
	if err != nil {
		return 0, err
	}
	r, err := s.do(ctx, peer.Request{Do: peer.DoRun, Names: []string{"loop"},
		Work: peer.Work{Steps: s.Passes, Agent: s.calls(0)}})
	if err != nil {
		return 0, err
	}
	if r.Answers != s.Passes {
		return 0, fmt.Errorf("the loop has %d answers; %d were expected", r.Answers, s.Passes)
	}
	if err := s.log.exactly(before + s.Passes); err != nil {
		return 0, err
	}
	all, err := s.log.read()
	if err != nil {
		return 0, err
	}
	return median(gaps(all[before:])), nil
}

// measureKill kills the worker in the middle of the second of three calls, and starts it again at once.
func measureKill(ctx context.Context, s *session) {
	waited, calls, err := s.killed(ctx)
	s.record(figKill, waited.Seconds(), err)
	s.record(figRepeats, float64(calls), err)
}

func (s *session) killed(ctx context.Context) (waited time.Duration, calls int, err error) {
	if s.detection > s.Patience {
		return 0, 0, fmt.Errorf("detects a killed worker after %s; this run waits for %s", s.detection, s.Patience)
	}
	const steps = 3
	name, err := s.begin(ctx, "killed", peer.Work{Steps: steps, Agent: s.calls(s.Call)})
	if err != nil {
		return 0, 0, err
	}
	second, err := s.log.await(ctx, 2)
	if err != nil {
		return 0, 0, err
	}
	select {
	case <-time.After(time.Until(second.Add(s.Call / 2))):
	case <-ctx.Done():
		return 0, 0, context.Cause(ctx)
	}
	at := time.Now()
	if err := errors.Join(s.kill(), s.rework(ctx)); err != nil {
		return 0, 0, err
	}
	r, err := s.do(ctx, peer.Request{Do: peer.DoAwait, Names: []string{name}})
	if err == nil && r.Answers != steps {
		err = fmt.Errorf("the workflow has %d answers; %d were expected", r.Answers, steps)
	}
	if err != nil {
		return 0, 0, err
	}
	all, err := s.log.read()
	if err == nil && len(all) < steps {
		err = fmt.Errorf("%d calls were started; at least %d were expected", len(all), steps)
	}
	if err != nil {
		return 0, 0, err
	}
	return all[len(all)-1].Sub(at), len(all), nil
}

func names(id string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%d", id, i)
	}
	return out
}
