package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestServes(t *testing.T) {
	const a, b = "s3://a", "s3://b"
	qa, qb := contract.StoreQueue("q", a), contract.StoreQueue("q", b)
	all := []need{{a, []string{"scripted", "claude", "/opt/agent.sh", "./tools/agent.sh"}}, {b, []string{"claude"}}}
	for _, row := range []struct {
		name    string
		needs   []need
		has     found
		most    int
		want    []string
		leftOut []string
	}{
		{"everything", all, found{map[string]error{a: nil, b: nil},
			map[string]string{"claude": "/bin/claude", "/opt/agent.sh": "/opt/agent.sh"}, "/bin/chromium", nil}, 32,
			[]string{
				qa, qa + "-calls", qa + "-browser", qb, qb + "-calls", qb + "-browser",
				qa + "-calls-scripted", qa + "-calls-claude", contract.ProgramQueue(qa+"-calls", "/opt/agent.sh"),
				contract.ProgramQueue(qa+"-calls", "./tools/agent.sh"), qb + "-calls-claude",
			}, nil},
		{"no program, no browser", all[:1], found{stores: map[string]error{a: nil}}, 32, []string{
			qa, qa + "-calls", qa + "-calls-scripted", contract.ProgramQueue(qa+"-calls", "./tools/agent.sh"),
		}, nil},
		{"an unreachable store", all, found{map[string]error{a: errors.New("no credentials"), b: nil},
			map[string]string{"claude": "/bin/claude"}, "", nil}, 32, []string{qb, qb + "-calls", qb + "-calls-claude"},
			nil},
		{"over the bound", all[1:], found{map[string]error{b: nil}, map[string]string{"claude": "/bin/claude"}, "",
			nil}, 2, []string{qb, qb + "-calls"}, []string{qb + "-calls-claude"}},
		{"nothing", nil, found{}, 32, nil, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, leftOut := serves("q", row.needs, row.has, row.most)
			require.Equal(t, row.want, names(got))
			require.Equal(t, row.leftOut, names(leftOut))
		})
	}
}

func names(all []queue) (out []string) {
	for _, q := range all {
		out = append(out, q.name)
	}
	return out
}

// fakeRuns is a server with open runs.
type fakeRuns struct {
	client.Client
	needs []operations.Needs
	err   error
}

func (f *fakeRuns) ListWorkflow(context.Context,
	*workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	// one without a memo
	out := &workflowservice.ListWorkflowExecutionsResponse{Executions: []*workflowpb.WorkflowExecutionInfo{{}}}
	for _, n := range f.needs {
		p, err := converter.GetDefaultDataConverter().ToPayload(n)
		if err != nil {
			return nil, err
		}
		out.Executions = append(out.Executions,
			&workflowpb.WorkflowExecutionInfo{
				Memo: &commonpb.Memo{Fields: map[string]*commonpb.Payload{operations.MemoNeeds: p}},
			})
	}
	return out, f.err
}

// fakeWorker polls nothing.
type fakeWorker struct {
	worker.Worker
	stopped *int
}

func (f fakeWorker) Stop() { *f.stopped++ }

func TestHostPollsQueuesThatItCanServe(t *testing.T) {
	url, door := fakes3.StartGated(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	hidden := must(redact.New(redact.Options{}))(t)
	runs := &fakeRuns{}
	h := newShared(WorkerConfig{Operator: operations.Operator{
		Client: runs, Redact: hidden,
		Settings: config.Settings{StateDir: filepath.Join(dir, "state"), Store: "file://" + dir, TaskQueue: "q",
			Browser: "/no/browser"},
	}}, process.Identity{PID: 1})
	stopped := 0
	h.open = func(q queue) (polled, error) {
		p := polled{Worker: fakeWorker{stopped: &stopped}}
		if q.kind != workflowTasks {
			p.gate = &slotGate{pool: newPool(4)}
		}
		return p, nil
	}
	polls := func() []string {
		t.Helper()
		h.check(t.Context())
		c := must(ReadCapabilities(h.o.Settings.StateDir))(t)
		return c.Queues
	}
	require.Empty(t, polls(), "a host without a shared store polls no shared queue")

	q := contract.StoreQueue("q", url)
	agent := filepath.Join(dir, "my agent.sh")
	runs.needs = []operations.Needs{{Queue: q, Store: url, Programs: []string{agent, "scripted"}},
		{Queue: contract.StoreQueue("other base", url), Store: url, Programs: []string{"x"}}}
	base := []string{q, q + "-calls", q + "-calls-scripted"}
	require.Equal(t, base, polls())

	require.NoError(t, os.WriteFile(agent, []byte("#!/bin/sh\n"), 0o700))
	mine := contract.ProgramQueue(q+"-calls", agent)
	with := slices.Sorted(slices.Values(append(slices.Clone(base), mine)))
	require.Equal(t, with, polls(), "an agent that is installed later is found")

	runs.needs, runs.err = nil, errors.New("server unavailable")
	require.Equal(t, with, polls(), "the needs of runs are kept")

	runs.err = nil
	h.needs(url, []string{"scripted", agent})
	<-h.wake
	h.needs(url, []string{"scripted"})
	require.Empty(t, h.wake, "nothing is new")
	require.Equal(t, with, polls(), "the plan of a run names the store")

	busy := h.polled[queue{mine, programCalls}].gate
	permit, _ := busy.try()
	require.NotNil(t, permit)
	door.Close()
	require.Equal(t, []string{mine}, polls(), "a queue with an open poll is still polled")
	require.Equal(t, 3, stopped)
	again, _ := busy.try()
	require.Nil(t, again, "no more polls are admitted")
	c := must(ReadCapabilities(h.o.Settings.StateDir))(t)
	require.Contains(t, c.Stores[0].Missing, "not reachable")
	busy.ReleaseSlot(released{permit: permit})
	require.Empty(t, polls())

	door.Open()
	require.Equal(t, with, polls())
}

// released is a permit that is released or used.
type released struct {
	worker.SlotReleaseInfo
	permit *worker.SlotPermit
}

func (r released) Permit() *worker.SlotPermit { return r.permit }

type marked struct {
	worker.SlotMarkUsedInfo
	permit *worker.SlotPermit
}

func (m marked) Permit() *worker.SlotPermit { return m.permit }

func TestPollsTakeNoSlotFromAnotherQueue(t *testing.T) {
	p := newPool(2)
	a, b := &slotGate{pool: p}, &slotGate{pool: p}
	take := func(g *slotGate) *worker.SlotPermit {
		permit, _ := g.try()
		return permit
	}
	a1, a2, b1 := take(a), take(a), take(b)
	require.NotNil(t, a1)
	require.NotNil(t, a2)
	require.NotNil(t, b1, "queue a has no task yet")
	require.Nil(t, take(a), "a queue has at most as many polls as slots")
	a.MarkSlotUsed(marked{permit: a1})
	a.MarkSlotUsed(marked{permit: a2})
	require.Nil(t, take(b), "both slots are used")
	_, changed := b.try()
	a.ReleaseSlot(released{permit: a1})
	<-changed
	b.ReleaseSlot(released{permit: b1})
	require.NotNil(t, take(b))
	require.False(t, a.empty())
	a.ReleaseSlot(released{permit: a2})
	require.True(t, a.empty())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a.set(false)
	_, err := a.ReserveSlot(ctx, nil)
	require.ErrorIs(t, err, context.Canceled)
}
