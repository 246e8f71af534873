package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// script is how a call goes once.
type script func(ok contract.PassResult) (contract.PassResult, error)

// fakeAgent answers calls by their id without the root run; what has no script goes well.
type fakeAgent struct {
	mu      sync.Mutex
	plan    *pipeline.Plan
	scripts map[string][]script
	calls   map[string]int // deliveries by id
	ids     []string       // in the order of delivery
	queues  []string
	times   []time.Duration // timeouts
	scores  []float64       // of the calls that give one, in order
	values  []string        // of the commands, in order: ok or failed; then ok
	words   []string        // verdicts, in order; then approved
	inputs  []contract.PassInput
	usd     float64 // of each call
	note    func(string)
}

// will sets the scripts of the next deliveries of a call.
func (a *fakeAgent) will(call string, s ...script) { a.scripts[call] = append(a.scripts[call], s...) }

func (a *fakeAgent) RunPass(ctx context.Context, in contract.PassInput) (contract.PassResult, error) {
	id := strings.TrimPrefix(in.Call, "run-1/")
	a.note("RunPass " + id)
	a.mu.Lock()
	a.calls[id]++
	a.ids, a.inputs = append(a.ids, id), append(a.inputs, in)
	a.queues = append(a.queues, activity.GetInfo(ctx).TaskQueue)
	a.times = append(a.times, time.Duration(in.TimeoutMS)*time.Millisecond)
	ok := a.good(in)
	var next script
	if s := a.scripts[id]; len(s) > 0 {
		next, a.scripts[id] = s[0], s[1:]
	}
	a.mu.Unlock()
	if next == nil {
		return ok, nil
	}
	return next(ok)
}

// good is the result of a call that goes well.
func (a *fakeAgent) good(in contract.PassInput) contract.PassResult {
	step, _ := a.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
	name := step.Role
	if in.At.Member != "" {
		name = in.At.Member
	}
	role, _ := a.plan.Role(name)
	res := contract.PassResult{
		Reading: run.Reading{Outcome: "ok", Validation: run.Validation{Passed: true}}, Reply: &run.Blob{Digest: "reply of " + in.Call},
		Spend: run.Spend{USD: a.usd}, StartedAt: run.Time(startTime), DurationMS: 1000,
	}
	if role.Gives == pipeline.GivesArtifact {
		res.Artifact, res.Modified = &run.Blob{Digest: "page of " + in.Call}, true
	}
	if role.Score != nil && len(a.scores) > 0 {
		score := a.scores[0]
		res.Score, a.scores = &score, a.scores[1:]
	}
	if role.Gives == pipeline.GivesChanges {
		res.Changes = &run.WorkspaceUpdated{Tree: run.Blob{Digest: "tree of " + in.Call}, Changed: 1}
	}
	if role.Judges() {
		res.Verdict, a.words = first(a.words, "approved")
	}
	if step.Kind == pipeline.KindRun {
		res.Value, a.values = first(a.values, "ok")
		if res.Value != "ok" {
			res.Validation.Passed, res.ExitCode = false, 2
		}
	}
	return res
}

// first returns the first of a list, or the zero value.
func first(list []string, none string) (string, []string) {
	if len(list) == 0 {
		return none, nil
	}
	return list[0], list[1:]
}

// goes is a failure that was judged.
func goes(wrong contract.PassResult) script {
	return func(ok contract.PassResult) (contract.PassResult, error) {
		wrong.StartedAt, wrong.DurationMS, wrong.Spend = ok.StartedAt, ok.DurationMS, ok.Spend
		return wrong, nil
	}
}

// after calls f and then goes well.
func after(f func()) script {
	return func(ok contract.PassResult) (contract.PassResult, error) {
		f()
		return ok, nil
	}
}

// breaks is a delivery that ends with an error of Temporal's.
func breaks(err error) script {
	return func(contract.PassResult) (contract.PassResult, error) { return contract.PassResult{}, err }
}

func times(n int, s script) []script {
	var out []script
	for range n {
		out = append(out, s)
	}
	return out
}

var (
	transient  = contract.PassResult{Reading: run.Reading{Outcome: "claude-p-exit-nonzero", Message: "exit 1"}, ExitCode: 1}
	noSections = contract.PassResult{Reading: run.Reading{Outcome: "output-no-artifact", Message: "no page"}, Structural: true}
	cutShort   = contract.PassResult{Reading: run.Reading{Outcome: "output-truncated", Message: "no end"}, Structural: true}
	permanent  = contract.PassResult{
		Reading: run.Reading{Outcome: "claude-p-spawn-failed", Message: "no such program"}, Permanent: true, ExitCode: 127,
	}
)

// fakeCamera fails a number of times.
type fakeCamera struct {
	mu        sync.Mutex
	fails     int
	errs      []error // in order, before pictures
	source    string  // run that the pictures are taken from
	inputs    []contract.ShotsInput
	permanent bool
	taken     int
	note      func(string)
}

func (c *fakeCamera) TakeScreenshots(_ context.Context, in contract.ShotsInput) (contract.ShotsResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inputs = append(c.inputs, in)
	if len(c.errs) > 0 {
		err := c.errs[0]
		c.errs = c.errs[1:]
		return contract.ShotsResult{}, err
	}
	c.taken++
	c.note(fmt.Sprintf("TakeScreenshots %d", c.taken))
	if c.taken <= c.fails {
		return contract.ShotsResult{Message: "the browser died", Permanent: c.permanent, DurationMS: 10}, nil
	}
	return contract.ShotsResult{Manifest: run.Blob{Digest: "pictures"}, Count: 2, DurationMS: 10, Source: c.source}, nil
}
