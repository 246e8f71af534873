package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/test/bench/peer"
)

// measureLong executes many steps in a workflow that then waits. It measures the bytes on disk, and the time until the
// next step begins: after a revert by one set, after a restart of the worker, and of a fork.
func measureLong(ctx context.Context, s *session) {
	empty, err := s.weighed(ctx)
	if err != nil {
		s.record(figBytes, 0, err)
		return
	}
	name, err := s.begin(ctx, "long", peer.Work{Steps: s.Steps + 1, Wait: s.Steps, Agent: s.calls(0)})
	if err == nil {
		err = s.waits(ctx, s.Steps, name)
	}
	if err != nil {
		s.record(figBytes, 0, err)
		return
	}
	full, err := s.weighed(ctx)
	if err != nil {
		s.record(figBytes, 0, err)
		return
	}
	var sum int64
	for part, n := range full {
		sum += n - empty[part]
		s.record(figBytes+figure(" "+part), float64(n-empty[part])/float64(s.Steps), nil)
	}
	s.record(figBytes, float64(sum)/float64(s.Steps), nil)
	begun, calls := s.Steps-perSet+1, s.Steps
	next, err := s.next(ctx, calls, func() error {
		_, err := s.one(ctx, peer.DoRevert, name, begun)
		return err
	})
	s.record(figRevert, next.Seconds(), err)
	if err == nil {
		calls += perSet
		err = s.waits(ctx, calls, name)
	}
	if err != nil && !errors.Is(err, peer.ErrNotOffered) {
		return
	}
	next, err = s.next(ctx, calls, func() error {
		if err := errors.Join(s.kill(), s.rework(ctx)); err != nil {
			return err
		}
		_, err := s.one(ctx, peer.DoWake, name, 0)
		return err
	})
	s.record(figRestart, next.Seconds(), err)
	if err != nil {
		return
	}
	s.forked(ctx, name, begun, calls+1)
}

// forked measures a fork of a completed workflow.
func (s *session) forked(ctx context.Context, name string, step, calls int) {
	r, err := s.do(ctx, peer.Request{Do: peer.DoAwait, Names: []string{name}})
	if err == nil && r.Answers < s.Steps+1 {
		err = fmt.Errorf("the workflow has %d answers; %d were expected", r.Answers, s.Steps+1)
	}
	if err != nil {
		s.record(figFork, 0, err)
		return
	}
	next, err := s.next(ctx, calls, func() error {
		_, err := s.one(ctx, peer.DoFork, name, step)
		return err
	})
	if err == nil {
		err = s.waits(ctx, calls+perSet)
	}
	s.record(figFork, next.Seconds(), err)
}

// settle is how long a workflow that waits must not start a call.
const settle = 300 * time.Millisecond

// pauser is an engine that records when a workflow waits, and accepts some requests only then.
type pauser interface {
	paused(ctx context.Context, name string) error
}

// waits waits until a number of calls has started and the workflows wait, and checks that no other call follows.
func (s *session) waits(ctx context.Context, calls int, names ...string) error {
	if _, err := s.log.await(ctx, calls); err != nil {
		return err
	}
	if p, records := s.engine.(pauser); records {
		for _, name := range names {
			if err := p.paused(ctx, name); err != nil {
				return err
			}
		}
	}
	select {
	case <-time.After(settle):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.log.exactly(calls)
}

// next is the time from an action until the next call begins.
func (s *session) next(ctx context.Context, calls int, act func() error) (time.Duration, error) {
	begun := time.Now()
	if err := act(); err != nil {
		return 0, err
	}
	at, err := s.log.await(ctx, calls+1)
	return at.Sub(begun), err
}

// weighed stops the engine, so that its files are complete, and starts it again.
func (s *session) weighed(ctx context.Context) (map[string]int64, error) {
	if err := s.stop(ctx); err != nil {
		return nil, err
	}
	parts, err := s.stored()
	return parts, errors.Join(err, s.start(ctx))
}

// measureWaiting measures the memory of the engine alone, and with workflows that wait.
func measureWaiting(ctx context.Context, s *session) {
	idle, err := memory(s.processes())
	if s.name == bashName {
		idle, err = 0, nil // nothing runs
	}
	s.record(figIdle, float64(idle)/(1<<20), err)
	if err != nil {
		return
	}
	w := peer.Work{Steps: 2, Wait: 1, Agent: s.calls(0)}
	r, err := s.do(ctx, peer.Request{Do: peer.DoStart, Names: names("waits", s.Waiting), Work: w, Parallel: atOnce})
	if err == nil {
		err = s.waits(ctx, s.Waiting, r.Names...)
	}
	if err != nil {
		s.record(figWaiting, 0, err)
		return
	}
	used, err := memory(s.processes())
	s.record(figWaiting, float64(used)/(1<<20), err)
}
