package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// TestRevertsAndResumes: who may take a run back or let it go on, when several want to at once, and what the settings
// say to that.
func TestRevertsAndResumes(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	o := h.operator(h.dial())
	for name, test := range map[string]func(*testing.T, *environment, operations.Operator){
		"two resumes of a closed run": testTwoResumes, "two reverts of a resting run": testTwoReverts,
		"two reverts of a closed run": testTwoRevertsOfAClosedRun,
		"revert and resume":           testRevertAndResume, "by signal": testRevertBySignal,
		"by update": testRevertByUpdate, "halted": testForcedOutOfAHalt,
		"policy": testPolicy, "fork": testPolicyOfAFork, "approvals": testApprovalsAreNotInherited,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, h.within(t), o)
		})
	}
}

// atOnce asks several things of a run at the same time, and gives what came of each.
func atOnce(asks ...func() error) []error {
	errs := make([]error, len(asks))
	var all sync.WaitGroup
	for i, ask := range asks {
		all.Go(func() { errs[i] = ask() })
	}
	all.Wait()
	return errs
}

// kinds are the payloads of one kind of event in a run's journal.
func kinds[P any](l *subject, kind run.Kind) []P { return of[P](eventsOf(l.t, l.dir.Root), kind) }

func testTwoResumes(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["cancelled"](h, t, o)
	resume := func() error { return l.ask(run.Resume) }
	errs := atOnce(resume, resume, resume)
	require.Contains(t, errs, nil, "one goes through")
	l.is(run.Done).closed()
	require.Len(t, kinds[run.RunResumed](l, run.KindRunResumed), 1, "one execution")
	require.Equal(t, 2, metaOf(t, l.dir.Root).Epoch)
}

func testTwoReverts(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["paused:user-requested"](h, t, o)
	errs := atOnce(func() error { return l.ask(run.Revert) }, func() error { return l.ask(run.Revert) })
	require.Contains(t, errs, nil)
	l.is(run.Done).closed()
	require.Len(t, kinds[run.RunReverted](l, run.KindRunReverted), 1)
	require.Equal(t, 1, metaOf(t, l.dir.Root).State.Generation)
}

func testTwoRevertsOfAClosedRun(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["cancelled"](h, t, o)
	errs := atOnce(func() error { return l.ask(run.Revert) }, func() error { return l.ask(run.Revert) })
	require.Contains(t, errs, nil)
	l.is(run.Done).closed()
	require.Len(t, kinds[run.RunReverted](l, run.KindRunReverted), 1)
	require.Len(t, kinds[run.RunResumed](l, run.KindRunResumed), 1)
}

// testRevertAndResume: whichever comes first, the run goes on once, and every answer that was given away is one that
// was refused.
func testRevertAndResume(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["paused:user-requested"](h, t, o)
	errs := atOnce(func() error { return l.ask(run.Revert) }, func() error { return l.ask(run.Resume) })
	l.is(run.Done).closed()
	events := eventsOf(t, l.dir.Root)
	reverted, resumed := of[run.RunReverted](events, run.KindRunReverted),
		of[run.RunResumed](events, run.KindRunResumed)
	switch {
	case errs[0] == nil:
		require.Len(t, reverted, 1)
		require.Empty(t, resumed)
		require.Error(t, errs[1])
	default:
		require.NoError(t, errs[1])
		require.Len(t, resumed, 1)
		require.Empty(t, reverted)
	}
}

// testRevertBySignal: a signal cannot be refused, so one that cannot be acted on is journaled, and the run goes on
// resting.
func testRevertBySignal(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["paused:user-requested"](h, t, o)
	signal := func(to string) {
		require.NoError(t, o.Client.SignalWorkflow(t.Context(), l.id, "", workflows.VerbRevert,
			map[string]any{"to": to, "by": "bob"}))
	}
	signal("cp-S9")
	until(t, "the refusal is written down", func() bool {
		return len(kinds[run.DecisionRefused](l,
			run.KindDecisionRefused)) == 1
	})
	output := kinds[run.DecisionRefused](l, run.KindDecisionRefused)[0]
	require.Equal(t, []string{workflows.VerbRevert, "bob"}, []string{output.Verb, output.By})
	require.Contains(t, output.Reason, "has no checkpoint cp-S9")
	l.is(run.Paused)
	require.Equal(t, run.Paused, l.stands())
	require.Empty(t, kinds[run.RunReverted](l, run.KindRunReverted))
	signal("cp-1")
	l.is(run.Done).closed()
	went := kinds[run.RunReverted](l, run.KindRunReverted)
	require.Len(t, went, 1)
	require.Equal(t, []any{int64(1), "revert", "cp-1", "bob"},
		[]any{went[0].To, went[0].Cause, went[0].Checkpoint, went[0].By})
	require.Equal(t, 4, l.calls(), "the first call is made again")
}

func testRevertByUpdate(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["paused:user-requested"](h, t, o)
	ack, err := send(t, o.Client, l.id, workflows.VerbRevert, workflows.Message{To: "cp-1", StayPaused: true})
	require.NoError(t, err)
	require.Equal(t, "reverting to cp-1", ack.Message)
	until(t, "it rests there", func() bool {
		m := metaOf(t, l.dir.Root)
		return m.State.Generation == 1 && m.Status == string(run.Paused)
	})
	require.Equal(t, 0, metaOf(t, l.dir.Root).State.Passes.LastSettled)
	require.Equal(t, 1, l.calls(), "nothing is called while it rests")
	require.NoError(t, l.ask(run.Resume))
	l.is(run.Done)
}

// testForcedOutOfAHalt: a halted run goes back, or on, by force alone, with a reason that is recorded, where the
// settings allow force.
func testForcedOutOfAHalt(t *testing.T, h *environment, o operations.Operator) {
	l := ways()["halted"](h, t, o)
	strict := o
	strict.Settings.Policy.Forbid = config.Words{"force"}
	for name, ask := range map[string]func(o operations.Operator, reason string) error{
		"revert": func(o operations.Operator, reason string) error {
			_, err := o.Revert(t.Context(), l.dir,
				operations.Reverting{To: "cp-1", Force: true, Reason: reason, StayPaused: true})
			return err
		},
		"resume": func(o operations.Operator, reason string) error {
			_, err := o.Resume(t.Context(), l.dir, operations.Reopening{Force: true, Reason: reason})
			return err
		},
	} {
		var refused *operations.RefusedError
		require.ErrorAs(t, ask(o, " "), &refused, name)
		require.Contains(t, refused.Why, "--force needs --reason", name)
		var policy *operations.PolicyError
		require.ErrorAs(t, ask(strict, "I want to"), &policy, name)
	}
	_, err := o.Revert(t.Context(), l.dir, operations.Reverting{To: "cp-1", Force: true, Reason: "it was too soon",
		StayPaused: true})
	require.NoError(t, err)
	until(t, "it rests at the checkpoint", func() bool {
		m := metaOf(t, l.dir.Root)
		return m.State.Generation == 1 && m.Status == string(run.Paused)
	})
	back := kinds[run.RunResumed](l, run.KindRunResumed)
	require.Len(t, back, 1)
	require.Equal(t, []any{2, run.Halted, true, "it was too soon"},
		[]any{back[0].Epoch, back[0].From, back[0].Force, back[0].Why})
}

// testPolicy: what a run was allowed is held to today's settings, all differences at once; force overrules that, and is
// recorded.
func testPolicy(t *testing.T, h *environment, o operations.Operator) {
	strict := o
	strict.Settings.Policy = config.Policy{Agents: config.Words{"claude", "codex"}, Env: config.Words{"HOME"},
		Budget: 5}
	differs := func(err error, words ...string) {
		t.Helper()
		var policy *operations.PolicyError
		require.ErrorAs(t, err, &policy)
		require.Len(t, policy.Differences, len(words))
		all := strings.Join(policy.Differences, "\n")
		for _, w := range words {
			require.Contains(t, all, w)
		}
	}
	env := []string{"reply: text,", "reply: text, env: [LANG],"}
	fresh := h.subject(t, strict, env...)
	_, err := strict.Start(t.Context(), fresh.def, fresh.dir)
	differs(err, "policy.agents has claude, codex", "LANG, and policy.env has HOME",
		"it has no budget, and policy.budget_usd is 5.00")
	require.NoDirExists(t, fresh.dir.Root, "nothing was started")

	l := h.subject(t, o, env...).steerAgents("hold").start().called(1)
	require.NoError(t, l.ask(run.Cancel))
	l.steerAgents("-hold").is(run.Cancelled).closed()
	l.o = strict
	before := tree(t, l.dir.Root)
	differs(l.ask(run.Resume), "policy.agents has", "policy.env has", "policy.budget_usd is 5.00")
	sameTree(t, before, tree(t, l.dir.Root))
	strict.Settings.Policy.Forbid = config.Words{"force"}
	_, err = strict.Resume(t.Context(), l.dir, operations.Reopening{Force: true, Reason: "today only"})
	differs(err, "policy.forbid has force")
	_, err = l.o.Resume(t.Context(), l.dir, operations.Reopening{Force: true, Reason: "today only"})
	require.NoError(t, err)
	l.is(run.Done)
	back := kinds[run.RunResumed](l, run.KindRunResumed)
	require.Len(t, back, 1)
	require.Equal(t, []any{true, "today only"}, []any{back[0].Force, back[0].Why})
}

// testPolicyOfAFork: what a fork may change is set; what it may, it has otherwise than its source.
func testPolicyOfAFork(t *testing.T, h *environment, o operations.Operator) {
	l := h.subject(t, o).start().is(run.Done).closed()
	before := tree(t, l.dir.Root)
	from, err := o.Origin(t.Context(), l.id)
	require.NoError(t, err)
	strict := o
	strict.Settings.Policy.Forbid = config.Words{"agent", "model", "budget", "pipeline"}
	_, err = strict.Branch(t.Context(), from, operations.Branching{Mode: run.ModeFork, Task: "x", Budget: 3,
		Model: "m"})
	var policy *operations.PolicyError
	require.ErrorAs(t, err, &policy)
	require.Equal(t, []string{
		"a fork may not change the budget (policy.forbid has agent, model, budget, pipeline)",
		"a fork may not change the model (policy.forbid has agent, model, budget, pipeline)",
	}, policy.Differences)

	other := h.subject(t, o, "  - name: first\n", "  - name: zeroth\n    steps: [{role: ender}]\n  - name: first\n")
	_, err = o.Branch(t.Context(), from, operations.Branching{Mode: run.ModeFork, From: "pass-3", Def: &other.def})
	require.ErrorContains(t, err, "is not the same up to the checkpoint")

	b := operations.Branching{Mode: run.ModeFork, From: "pass-3", Budget: 3, Model: "large", Request: "r1"}
	st, err := o.Branch(t.Context(), from, b)
	require.NoError(t, err)
	again, err := o.Branch(t.Context(), from, b)
	require.NoError(t, err)
	require.Equal(t, []any{st.RunID, false}, []any{again.RunID, again.New}, "the same request makes one run")
	f := *l
	f.dir, f.id = st.Dir, st.RunID
	f.is(run.Done)
	require.Equal(t, 4, l.calls(), "it begins behind the second pass")
	raw := string(read(t, l.steer+"/calls"))
	require.Equal(t, "call \ncall \ncall \ncall --model large\n", raw)
	m := metaOf(t, f.dir.Root)
	require.InDelta(t, 3, m.State.Budget.CapUSD, 1e-9)
	require.Zero(t, m.State.SunkUSD)
	require.Less(t, m.State.Total(), metaOf(t, l.dir.Root).State.Total(), "its money is its own")
	sameTree(t, before, tree(t, l.dir.Root))
}

// testApprovalsAreNotInherited: a waiver is shown to what comes after it in its own run; a fork begun behind it knows
// nothing of it, and a replay asks again.
func testApprovalsAreNotInherited(t *testing.T, h *environment, o operations.Operator) {
	const waived = "The end may be rough."
	l := h.subject(t, o, "gives: report}\n  ender", "gives: report, verdict: {find: '(An answer|approved)'}}\n  ender",
		"  - name: second\n", "  - name: second\n    repeat: {max: 1, until: verdict == approved, otherwise: ask}\n")
	l.start().is(run.AwaitingPhaseHandoff)
	q := metaOf(t, l.dir.Root).State.Questions[0]
	_, err := o.Decide(t.Context(), l.dir, workflows.Message{ID: q.ID, Action: run.ActionContinueWithWaiver,
		Feedback: waived})
	require.NoError(t, err)
	l.is(run.Done).closed()
	shown := func(dir string) bool {
		prompt := string(read(t, fmt.Sprintf("%s/_orchestrator/passes/pass-002/prompt.md", dir)))
		return strings.Contains(prompt, waived)
	}
	require.True(t, shown(l.dir.Root), "the run itself shows it")
	from, err := o.Origin(t.Context(), l.id)
	require.NoError(t, err)
	st, err := o.Branch(t.Context(), from, operations.Branching{Mode: run.ModeFork, From: "pass-2"})
	require.NoError(t, err)
	f := *l
	f.dir, f.id = st.Dir, st.RunID
	if f.is0(run.AwaitingPhaseHandoff) { // the newest place before pass 2 is behind the decision, the oldest before it
		require.NotEqual(t, q.ID, metaOf(t, f.dir.Root).State.Questions[0].ID)
		_, err = o.Decide(t.Context(), f.dir, workflows.Message{Action: run.ActionContinue})
		require.NoError(t, err)
	}
	f.is(run.Done)
	require.False(t, shown(f.dir.Root))
	require.Nil(t, metaOf(t, f.dir.Root).Waiver)

	r, err := l.branch(run.ModeReplay)
	require.NoError(t, err)
	r.is(run.AwaitingPhaseHandoff)
	require.NotEqual(t, q.ID, metaOf(t, r.dir.Root).State.Questions[0].ID)
}

// is0 waits until the run rests with a status or is done; false: it is done.
func (l *subject) is0(want run.Status) bool {
	l.t.Helper()
	got := ""
	until(l.t, "the run rests, or is done", func() bool {
		m, err := l.dir.Meta()
		got = m.Status
		return err == nil && (got == string(want) || got == string(run.Done))
	})
	return got == string(want)
}
