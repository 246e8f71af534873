package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Serve answers requests until the input ends.
func Serve(ctx context.Context, e Engine, steps *Steps, in io.Reader, out io.Writer) error {
	answers, requests := json.NewEncoder(out), json.NewDecoder(in)
	if err := answers.Encode(Reply{}); err != nil {
		return err
	}
	for {
		var q Request
		switch err := requests.Decode(&q); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a request: %w", err)
		}
		r, err := Do(ctx, e, q)
		if err != nil {
			r = Reply{Error: err.Error(), NotOffered: errors.Is(err, ErrNotOffered)}
		}
		r.Executed = steps.executed.Load()
		if err := answers.Encode(r); err != nil {
			return err
		}
	}
}

// Do executes a request.
func Do(ctx context.Context, e Engine, q Request) (Reply, error) {
	if len(q.Names) == 0 {
		return Reply{}, fmt.Errorf("%s: no workflow is named", q.Do)
	}
	switch q.Do {
	case DoRun:
		return timed(q, func(id string) (name string, answers int, err error) {
			if name, err = e.Start(ctx, id, q.Work); err == nil {
				answers, err = e.Await(ctx, name)
			}
			return name, answers, err
		})
	case DoStart:
		return timed(q, func(id string) (string, int, error) {
			name, err := e.Start(ctx, id, q.Work)
			return name, 0, err
		})
	case DoAwait:
		n, err := e.Await(ctx, q.Names[0])
		return Reply{Names: q.Names, Answers: n}, err
	case DoWake:
		return Reply{Names: q.Names}, e.Wake(ctx, q.Names[0])
	case DoFork:
		name, err := e.Fork(ctx, q.Names[0], q.Step)
		return Reply{Names: []string{name}}, err
	case DoRevert:
		return Reply{Names: q.Names}, e.Revert(ctx, q.Names[0], q.Step)
	}
	return Reply{}, fmt.Errorf("%q is not an action", q.Do)
}

// timed does something for each workflow, for a number of them at once, and measures it.
func timed(q Request, do func(id string) (string, int, error)) (Reply, error) {
	r := Reply{Names: make([]string, len(q.Names)), Each: make([]time.Duration, len(q.Names))}
	answers, errs := make([]int, len(q.Names)), make([]error, len(q.Names))
	slots := make(chan struct{}, max(1, q.Parallel))
	var all sync.WaitGroup
	begun := time.Now()
	for i, id := range q.Names {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			started := time.Now()
			r.Names[i], answers[i], errs[i] = do(id)
			r.Each[i] = time.Since(started)
		})
	}
	all.Wait()
	r.Wall = time.Since(begun)
	for _, n := range answers {
		r.Answers += n
	}
	return r, errors.Join(errs...)
}
