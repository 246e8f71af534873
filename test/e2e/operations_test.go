package e2e_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// operationsTable is what may be done with a run of each status, by requirements 001 and 003: a line a way to get
// there, + allowed, - refused. Runs whose question nobody has decided are lines of their own, as decisions are what
// lets them go on.
const operationsTable = `
                             observe diagnose pause resume decide cancel revert replay fork follow_up promote repair remove
unknown                      +       +        -     -      -      -      -      -      -    -         -       +      +
pending                      +       +        -     -      -      +      -      -      -    -         -       -      -
running                      +       +        +     -      -      +      -      +      +    -         -       -      -
replaying                    +       +        +     -      -      +      -      +      +    -         -       -      -
paused:user-requested        +       +        -     +      -      +      +      +      +    -         -       +      -
paused:user-review           +       +        -     +      -      +      +      +      +    -         -       +      -
paused:budget-threshold      +       +        -     +      -      +      +      +      +    -         -       +      -
paused:quality-gate          +       +        -     +      -      +      +      +      +    -         -       +      -
paused:pass-failed           +       +        -     +      -      +      +      +      +    -         -       +      -
paused:consecutive-failures  +       +        -     +      -      +      +      +      +    -         -       +      -
awaiting_phase_handoff       +       +        -     -      +      +      -      +      +    -         -       +      -
awaiting_gate_decision       +       +        -     -      +      +      -      +      +    -         -       +      -
awaiting_human_review        +       +        -     -      +      +      -      +      +    -         -       +      -
done                         +       +        -     -      -      -      -      +      +    +         +       +      +
halted                       +       +        -     -      -      -      -      +      +    +         -       +      +
cancelled                    +       +        -     +      -      -      +      +      +    +         -       +      +
failed                       +       +        -     +      -      -      +      +      +    +         -       +      +
interrupted                  +       +        -     +      -      +      +      +      +    -         -       +      +
interrupted:undecided        +       +        -     -      +      +      +      +      +    -         -       +      +
`

// row is one line of the table.
type row struct {
	name    string
	status  run.Status
	allowed []run.Operation
	refused []run.Operation
}

func operationRows(t *testing.T) []row {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(operationsTable), "\n")
	heads := strings.Fields(lines[0])
	var out []row
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		require.Len(t, cells, 1+len(heads), line)
		status, _, _ := strings.Cut(cells[0], ":")
		r := row{name: cells[0], status: run.Status(status)}
		for i, op := range heads {
			if cells[i+1] == "+" {
				r.allowed = append(r.allowed, run.Operation(op))
			} else {
				r.refused = append(r.refused, run.Operation(op))
			}
		}
		out = append(out, r)
	}
	return out
}

// TestOperations brings a run into every status there is, for real, and asks for everything that can be asked for,
// through the library. What is refused changes nothing and says what is allowed; each operation that is allowed gets a
// run of its own and does what it is for.
func TestOperations(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	o := h.operator(h.dial())
	for _, r := range operationRows(t) {
		reach := ways()[r.name]
		if r.name == "replaying" {
			continue // it needs a worker that does nothing else: TestOperationsOfAReplay
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			require.NotNil(t, reach, "nobody knows how a run gets there")
			r.test(t, func(t *testing.T) *subject { return reach(h.within(t), t, o) })
		})
	}
}

func (r row) test(t *testing.T, reach func(*testing.T) *subject) {
	l := reach(t)
	require.Equal(t, r.status, l.stands(), "observe")
	for _, op := range r.refused {
		if op == run.Promote || op == run.Repair {
			continue // nobody can ask for the first; the other is of the directory
		}
		t.Run("no "+string(op), func(t *testing.T) { r.refuses(t, l, op) })
	}
	for _, op := range r.allowed {
		switch op {
		case run.Replay, run.Fork, run.FollowUp:
			t.Run(string(op), func(t *testing.T) { comesOf(t, l, op) })
		}
	}
	for _, op := range r.changing() {
		t.Run(string(op), func(t *testing.T) { does(t, reach(t), op) })
	}
}

// changing returns the allowed operations that change the run itself. Pause is the last one: it lets a call go on that
// others wait behind.
func (r row) changing() []run.Operation {
	others := []run.Operation{run.Observe, run.Diagnose, run.Promote, run.Repair, run.Replay, run.Fork, run.FollowUp,
		run.Pause, run.Remove}
	ops := slices.DeleteFunc(slices.Clone(r.allowed),
		func(op run.Operation) bool { return slices.Contains(others, op) })
	if slices.Contains(r.allowed, run.Pause) {
		ops = append(ops, run.Pause)
	}
	return ops
}

// refuses wants a typed conflict that names the operation, where the run stands and what is allowed there; and nothing
// may change.
func (r row) refuses(t *testing.T, l *subject, op run.Operation) {
	before := tree(t, l.dir.Root)
	err := l.ask(op)
	if op == run.Cancel && r.status == run.Cancelled {
		require.NoError(t, err, "asked for twice, it is done once")
		sameTree(t, before, tree(t, l.dir.Root))
		return
	}
	var c *run.ConflictError
	require.ErrorAs(t, err, &c)
	require.Equal(t, op, c.Operation)
	if op != run.FollowUp { // that one looks into the directory only, which does not know what became of the workflow
		require.Equal(t, r.status, c.From)
		require.ElementsMatch(t, r.allowed, c.Allowed)
	}
	sameTree(t, before, tree(t, l.dir.Root))
	require.Equal(t, r.status, l.stands())
}

// comesOf makes another run of this one, which stays as it is to the byte.
func comesOf(t *testing.T, l *subject, op run.Operation) {
	before := tree(t, l.dir.Root)
	var next *subject
	var err error
	if op == run.FollowUp {
		next, err = l.followUp()
	} else {
		next, err = l.branch(string(op))
	}
	require.NoError(t, err)
	require.NotEqual(t, l.id, next.id)
	until(t, "the new run has begun", func() bool {
		m, err := next.dir.Meta()
		return err == nil &&
			m.RunID == next.id
	})
	m := metaOf(t, next.dir.Root)
	if op == run.FollowUp {
		require.Equal(t, l.id, m.Parent.RunID)
	} else {
		require.Equal(t, []string{l.id, string(op)}, []string{m.Source.RunID, m.Source.Mode})
	}
	if now, err := next.dir.Now(); err == nil && !now.State.Status.Closed() {
		_ = l.o.Cancel(t.Context(), next.dir) // it may have ended meanwhile
	}
	sameTree(t, before, tree(t, l.dir.Root))
}

// does asks for an operation and waits until it is done.
func does(t *testing.T, l *subject, op run.Operation) {
	was := metaOf0(l)
	if op == run.Resume && l.repair() {
		_, err := l.o.Resume(t.Context(), l.dir, operations.Reopening{Force: true, Reason: "it was mended"})
		require.NoError(t, err)
	} else {
		require.NoError(t, l.ask(op))
	}
	l.work()
	kinds := map[run.Operation][]run.Kind{
		run.Pause: {run.KindRunPaused}, run.Resume: {run.KindRunResumed}, run.Cancel: {run.KindRunEnd},
		run.Revert: {run.KindRunReverted},
		run.Decide: {run.KindHandoffDecided, run.KindGateDecided, run.KindReviewDecided},
	}[op]
	if op == run.Pause {
		l.steerAgents("-hold")
	}
	until(t, string(op)+" is written down", func() bool {
		if metaOf0(l) == 0 {
			return false // it has not begun
		}
		for _, e := range eventsOf(t, l.dir.Root) {
			for _, k := range kinds {
				if e.Seq > was && e.Kind == k {
					return true
				}
			}
		}
		return false
	})
	switch op {
	case run.Cancel:
		l.is(run.Cancelled).closed()
		require.Equal(t, run.KindRunEnd, last(eventsOf(t, l.dir.Root)).Kind, "nothing comes after the end")
	case run.Pause:
		l.is(run.Paused)
	case run.Revert:
		until(t, "the directory is in line", func() bool { return metaOf(t, l.dir.Root).State.Generation == 1 })
	}
}

func last(events []run.Event) run.Event { return events[len(events)-1] }

// metaOf0 is how far the directory is; 0 where it has not begun.
func metaOf0(l *subject) int64 {
	now, err := l.dir.Now()
	require.NoError(l.t, err)
	return now.Tail.Seq
}

// repair removes the cause of a pause if it prevents a resume. force reports whether `resume` still needs --force.
func (l *subject) repair() (force bool) {
	l.t.Helper()
	switch m := metaOf(l.t, l.dir.Root); m.Reason {
	case run.BudgetThreshold:
		l.refusedFor("raise it first")
		l.send(workflows.VerbBudget, workflows.Message{USD: 100})
	case run.PassFailed:
		l.steerAgents("-fail")
	case run.ConsecutiveFailures:
		l.refusedFor("--force --reason")
		l.steerAgents("-fail")
		return true
	}
	return false
}

// refusedFor wants a resume to be refused for another cause than the status.
func (l *subject) refusedFor(words string) {
	l.t.Helper()
	err := l.ask(run.Resume)
	var refused *operations.RefusedError
	require.ErrorAs(l.t, err, &refused)
	require.Nil(l.t, refused.Conflict)
	require.Contains(l.t, refused.Why, words)
}

// ways are how a run gets into a status.
func ways() map[string]func(*environment, *testing.T, operations.Operator) *subject {
	const second, third = "  - name: second\n    steps: [{role: writer}]\n",
		"  - name: third\n    steps: [{role: ender}]\n"
	asks := func(h *environment, t *testing.T, o operations.Operator) *subject {
		return h.subject(t, o, second,
			"  - name: second\n    steps: [{role: writer}, {ask: 'Go on?'}]\n").start().is(run.AwaitingPhaseHandoff)
	}
	runs := func(h *environment, t *testing.T, o operations.Operator) *subject {
		return h.subject(t, o).steerAgents("hold").start().called(1)
	}
	fails := func(h *environment, t *testing.T, o operations.Operator) *subject {
		return h.subject(t, o).steerAgents("fail").start().is(run.Paused)
	}
	return map[string]func(*environment, *testing.T, operations.Operator) *subject{
		"unknown": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := h.subject(t, o)
			require.NoError(t, l.dir.Take(run.Claim{
				Version: run.ClaimVersion, RunID: "11111111-1111-4111-8111-111111111111", Store: o.Settings.Store,
				Host: o.Host, Namespace: o.Namespace,
				TaskQueue: "passbook", Pipeline: "life", Embedded: true,
			}))
			return l
		},
		"pending": func(h *environment, t *testing.T, o operations.Operator) *subject {
			o.Settings.TaskQueue = "nobody-" + strings.ReplaceAll(t.Name(), "/", "-")
			return h.subject(t, o).start()
		},
		"running": runs,
		"paused:user-requested": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return runs(h, t, o).send(workflows.VerbPause, workflows.Message{}).steerAgents("-hold").is(run.Paused)
		},
		"paused:user-review": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o, second, strings.Replace(second, "name: second",
				"name: second\n    pause_after: true", 1)).start().is(run.Paused)
		},
		"paused:budget-threshold": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o, "limits: {attempts: 1}",
				"limits: {attempts: 1}\nbudget: {usd: 0.000001}").start().is(run.Paused)
		},
		"paused:quality-gate": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o, "gives: report}\n  ender", "gives: report, verdict: {find: '(An answer|approved)'}}\n  ender",
				second,
				"  - name: second\n    repeat: {max: 1, until: verdict == approved}\n    quality_gate: verdict == "+
					"approved\n    steps: [{role: writer}]\n").start().is(run.Paused)
		},
		"paused:pass-failed": fails,
		"paused:consecutive-failures": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := fails(h, t, o)
			for n := 2; n <= 3; n++ {
				seq := metaOf0(l)
				require.NoError(t, l.ask(run.Resume))
				until(t, "it fails again", func() bool {
					m, err := l.dir.Meta()
					return err == nil && m.Events.Seq > seq+2 && m.Status == string(run.Paused)
				})
			}
			return l
		},
		"awaiting_phase_handoff": asks,
		"awaiting_gate_decision": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o, second,
				"  - name: second\n    steps: [{run: 'false', if_failing: ask}]\n").start().is(run.AwaitingGateDecision)
		},
		"awaiting_human_review": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o, "pipeline: life\n",
				"pipeline: life\nkind: planning\n").start().is(run.AwaitingHumanReview)
		},
		"done": func(h *environment, t *testing.T, o operations.Operator) *subject {
			return h.subject(t, o).start().is(run.Done).closed()
		},
		"halted": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := asks(h, t, o)
			_, err := o.Decide(t.Context(), l.dir, workflows.Message{Action: run.ActionHalt})
			require.NoError(t, err)
			return l.is(run.Halted).closed()
		},
		"cancelled": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := runs(h, t, o)
			require.NoError(t, l.ask(run.Cancel))
			return l.steerAgents("-hold").is(run.Cancelled).closed()
		},
		"failed": func(h *environment, t *testing.T, o operations.Operator) *subject {
			o.Settings.Store = "file://" + filepath.Join(h.root, "store-"+strings.ReplaceAll(t.Name(), "/", "-"))
			l := runs(h, t, o)
			l.lose("prompts/end.md")
			return l.steerAgents("-hold").is(run.Failed).closed()
		},
		"interrupted": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := runs(h, t, o)
			require.NoError(t, o.Client.TerminateWorkflow(t.Context(), l.id, "", "test"))
			return l.steerAgents("-hold").closed()
		},
		"interrupted:undecided": func(h *environment, t *testing.T, o operations.Operator) *subject {
			l := asks(h, t, o)
			require.NoError(t, o.Client.TerminateWorkflow(t.Context(), l.id, "", "test"))
			return l.closed()
		},
	}
}

// TestOperationsOfAReplay holds a replay in its recorded part: the only call that the worker may make at a time is
// another run's.
func TestOperationsOfAReplay(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_CALLS=1")
	h.starter("server", "start")
	o := h.operator(h.dial())
	source := h.subject(t, o).start().is(run.Done).closed()
	blocks := h.subject(t, o).steerAgents("hold").start().called(1)
	for _, r := range operationRows(t) {
		if r.name != "replaying" {
			continue
		}
		r.test(t, func(t *testing.T) *subject {
			l, err := source.branch(run.ModeReplay)
			require.NoError(t, err)
			l.t, l.steer = t, blocks.steer
			until(t, "the replay waits for the worker", func() bool {
				m, err := l.dir.Meta()
				return err == nil && m.Status == string(run.Replaying) && len(m.State.InFlight) == 1
			})
			return l
		})
	}
	require.Equal(t, 3, source.calls(), "a recorded answer was asked for again")
}
