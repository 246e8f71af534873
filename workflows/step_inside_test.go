package workflows

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func number(f float64) *float64 { return &f }

// TestRecordedScore: a score is met from the threshold on.
func TestRecordedScore(t *testing.T) {
	for name, row := range map[string]struct {
		score, threshold *float64
		met              bool
	}{
		"above": {number(4), number(3.5), true}, "equal": {number(3.5), number(3.5), true},
		"below": {number(3), number(3.5), false}, "no score": {nil, number(3.5), false},
		"no threshold": {number(3), nil, false},
	} {
		e := engineOf(run.State{Status: run.Running})
		e.round.Threshold, e.round.Stage = row.threshold, "work"
		p := passOf(e, contract.Step{PlanStep: pipeline.PlanStep{Key: "judge"}}, contract.Role{Score: "quality"}, "")
		p.context.Replies = make([]run.Reply, 3)
		res := &contract.PassResult{Score: row.score, ScoreWhy: "because"}
		inside(t, func(ctx workflow.Context) error { return p.recordScore(ctx, res) })
		require.Equal(t, run.KindScoreRecorded, last(t, e).Kind)
		require.Equal(t, run.ScoreRecorded{Name: "quality", Step: "judge", Round: 2, Score: row.score, Why: "because",
			Threshold: row.threshold, Auditors: 3, Met: row.met}, run.PayloadOf[run.ScoreRecorded](last(t, e)), name)
		p.member = "m"
		require.NoError(t, p.recordScore(nil, res), "a member records none")
		p.member, p.role.Score = "", ""
		require.NoError(t, p.recordScore(nil, res), "a role without a score records none")
	}
}

// TestTextsWithoutSecrets: each text of a message is redacted, and a word that is no action.
func TestTextsWithoutSecrets(t *testing.T) {
	for name, row := range map[string]struct {
		m    Message
		text func(m Message) string
		want string
	}{
		"note":     {Message{Note: "secret"}, func(m Message) string { return m.Note }, "hidden"},
		"feedback": {Message{Feedback: "secret"}, func(m Message) string { return m.Feedback }, "hidden"},
		"reason":   {Message{Reason: "secret"}, func(m Message) string { return m.Reason }, "hidden"},
		"text":     {Message{Text: "secret"}, func(m Message) string { return m.Text }, "hidden"},
		"word":     {Message{Action: "secret"}, func(m Message) string { return m.Action }, "hidden"},
		"action":   {Message{Action: "halt"}, func(m Message) string { return m.Action }, "halt"},
	} {
		e := engineOf(run.State{})
		e.redact = func(s string) string {
			if s == "" {
				return ""
			}
			return "hidden"
		}
		var got Message
		inside(t, func(ctx workflow.Context) (err error) { got, err = e.control.redacted(ctx, row.m); return err })
		require.Equal(t, row.want, row.text(got), name)
	}
}

// TestBudgetWarning: once, as soon as the cost reaches the share.
func TestBudgetWarning(t *testing.T) {
	for name, row := range map[string]struct {
		warn, total float64
		warned      bool
		want        int
	}{
		"below": {8, 7.99, false, 0}, "reached": {8, 8, false, 1}, "again": {8, 9, true, 0}, "none": {0, 9, false, 0},
		"of cents": {0.5, 0.6, false, 1},
	} {
		e := engineOf(run.State{Status: run.Running, Budget: run.Budget{CapUSD: 10, WarnUSD: row.warn}, Warned: row.warned,
			Spent: run.Totals{USD: row.total}})
		inside(t, e.warnBudget)
		require.Len(t, e.j.pending, row.want, name)
		if row.want > 0 {
			require.Equal(t, run.BudgetEvent{Budget: e.j.state.Budget, TotalUSD: row.total},
				run.PayloadOf[run.BudgetEvent](last(t, e)), name)
		}
	}
}

// TestWrittenEventsEndAFullDisk: the next one that is full is tried at once again.
func TestWrittenEventsEndAFullDisk(t *testing.T) {
	e := engineOf(run.State{Seq: 2})
	e.diskFullTries = 3
	e.j.pending = []run.Event{{Seq: 1, TS: now, Kind: run.KindErrorNoted, Payload: []byte("{}")},
		{Seq: 2, TS: now, Kind: run.KindErrorNoted, Payload: []byte("{}")}}
	e.j.markWritten(1, run.Tail{Seq: 1, Chain: "one"})
	require.Zero(t, e.diskFullTries)
	require.Equal(t, written{state: e.j.disk.state, tail: run.Tail{Seq: 1, Chain: "one"}}, e.j.disk)
	require.Equal(t, []int64{1, 1, 2}, []int64{e.j.disk.state.Seq, int64(len(e.j.pending)), e.j.pending[0].Seq})
}

// TestRunsThatAnAccountWakes: as many as its workflow remembers, each once, the last one after all others.
func TestRunsThatAnAccountWakes(t *testing.T) {
	a := &account{}
	for i := range maxWaiting {
		a.pass(fmt.Sprint(i), true)
	}
	require.Len(t, a.Waiting, maxWaiting)
	a.pass("one more", true)
	require.Len(t, a.Waiting, maxWaiting)
	require.NotContains(t, a.Waiting, "one more")
	a.Leased = "0"
	a.pass("0", true)
	require.Equal(t, []any{"", "1", "0"}, []any{a.Leased, a.Waiting[0], a.Waiting[maxWaiting-1]})
	a.Leased = "2"
	a.pass("1", false)
	require.Equal(t, "2", a.Leased)
	require.Len(t, a.Waiting, maxWaiting-1)
	a.pass("", true)
	require.NotContains(t, a.Waiting, "")
}

// TestQuestionOfAGate: about the step, in its stage and round.
func TestQuestionOfAGate(t *testing.T) {
	e := engineOf(run.State{Status: run.Running, Phase: "work", PhaseOpen: true})
	e.round.Stage, e.round.Title = "work", "Work"
	p := passOf(e, testStep, contract.Role{}, "")
	p.result = &contract.PassResult{ExitCode: 2, Reply: &run.Blob{Digest: "output", Size: 9}}
	away := func(contract.ProjectInput) (contract.ProjectResult, error) {
		return contract.ProjectResult{}, temporal.NewNonRetryableApplicationError("it is elsewhere", contract.ErrStale, nil)
	}
	withWorkflow(t, map[string]any{contract.Project: away}, func(ctx workflow.Context) error {
		e.j.mu = workflow.NewMutex(ctx)
		require.ErrorContains(t, e.askGate(ctx, run.Place{Stage: 1, Round: 3}, p), "it is elsewhere")
		return nil
	})
	ask := run.PayloadOf[run.QuestionRequested](e.j.pending[0])
	require.Equal(t, []any{run.QuestionGate.Spec().Requested, "work", 3, run.TriggerCheckFailed, "output"},
		[]any{e.j.pending[0].Kind, ask.Phase, ask.Round, ask.Trigger, ask.Digest})
	require.Equal(t, []run.Attached{{Name: "output", Digest: "output"}}, ask.Artifacts)
}
