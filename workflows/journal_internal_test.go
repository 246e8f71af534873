package workflows

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// inside executes a piece of workflow code.
func inside(t *testing.T, do func(ctx workflow.Context) error, before ...func(*testsuite.TestWorkflowEnvironment)) {
	t.Helper()
	env := NewTestEnvironment()
	env.SetStartTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	for _, b := range before {
		b(env)
	}
	env.ExecuteWorkflow(do)
	require.True(t, env.IsWorkflowCompleted())
	require.NoError(t, env.GetWorkflowError())
}

// withWorkflow executes a piece of workflow code that calls these activities.
func withWorkflow(t *testing.T, activities map[string]any, do func(ctx workflow.Context) error) {
	t.Helper()
	inside(t, do, func(env *testsuite.TestWorkflowEnvironment) {
		for name, f := range activities {
			env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
		}
	})
}

// pendingOf are the kinds of the events that are not on disk.
func pendingOf(j *journal) (kinds []run.Kind) {
	for _, e := range j.pending {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestEndStaysTheLastEvent: damage that is found before the end of a run is written is journaled before that end.
func TestEndStaysTheLastEvent(t *testing.T) {
	end := run.Event{TS: "2026-01-02T03:04:04.000Z", Kind: run.KindRunEnd, Payload: []byte(`{"status":"done"}`)}
	paused := run.Event{TS: "2026-01-02T03:04:04.000Z", Kind: run.KindErrorNoted, Payload: []byte("{}")}
	for name, row := range map[string]struct {
		pending []run.Event
		want    []run.Kind
	}{
		"only the end":    {[]run.Event{end}, []run.Kind{run.KindJournalDamaged, run.KindRunEnd}},
		"the end is last": {[]run.Event{paused, end}, []run.Kind{run.KindErrorNoted, run.KindJournalDamaged, run.KindRunEnd}},
		"no end":          {[]run.Event{paused}, []run.Kind{run.KindErrorNoted, run.KindJournalDamaged}},
	} {
		e := engineOf(run.State{Status: run.Running, Seq: 7})
		e.j.disk = written{state: e.j.state, tail: run.Tail{Seq: 7}}
		for i := range row.pending {
			row.pending[i].Seq = int64(8 + i)
			e.j.state = run.Apply(e.j.state, row.pending[i])
		}
		e.j.pending = row.pending
		inside(t, func(ctx workflow.Context) error {
			return e.j.handleDamage(ctx, []run.JournalDamage{{File: "events.jsonl", Line: 3}})
		})
		require.Equal(t, row.want, pendingOf(e.j), name)
		for i, ev := range e.j.pending {
			require.Equal(t, int64(8+i), ev.Seq, name)
			require.GreaterOrEqual(t, ev.TS, e.j.pending[max(0, i-1)].TS, name)
		}
		require.Equal(t, int64(7+len(row.want)), e.j.state.Seq, name)
	}
}

// TestRebaseAfterOtherLines: events that are not on disk follow the lines there, with their lanes, times and order.
func TestRebaseAfterOtherLines(t *testing.T) {
	e := engineOf(run.State{Status: run.Running, Seq: 6})
	e.j.disk = written{state: run.State{Status: run.Running, Seq: 5}, tail: run.Tail{Seq: 5}}
	e.j.archived = 9
	e.j.pending = []run.Event{
		{Seq: 6, TS: "2026-01-02T03:04:04.000Z", Kind: run.KindErrorNoted, Lane: "k", Payload: []byte("{}")},
		{Seq: 7, TS: "2026-01-02T03:04:09.000Z", Kind: run.KindErrorNoted, Payload: []byte("{}")},
	}
	disk := run.Tail{Seq: 9, Chain: "theirs"}
	inside(t, func(ctx workflow.Context) error { return e.j.rebase(ctx, disk) })
	require.Equal(t, []run.Kind{run.KindRunReverted, run.KindErrorNoted, run.KindErrorNoted}, pendingOf(e.j))
	lead, first, second := e.j.pending[0], e.j.pending[1], e.j.pending[2]
	require.Equal(t, []int64{10, 11, 12}, []int64{lead.Seq, first.Seq, second.Seq})
	require.Equal(t, []string{"", "k", ""}, []string{lead.Lane, first.Lane, second.Lane})
	require.Equal(t, []string{"2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05.000Z", "2026-01-02T03:04:09.000Z"},
		[]string{lead.TS, first.TS, second.TS})
	reverted := run.PayloadOf[run.RunReverted](lead)
	require.Equal(t, int64(5), reverted.To)
	require.Equal(t, "reset", reverted.Cause)
	require.Equal(t, run.Range{First: 6, Last: 9}, reverted.Abandoned)
	require.Equal(t, disk, e.j.disk.tail)
	require.Equal(t, int64(12), e.j.state.Seq)
}

// TestGrantsOfAMessage: a message with grants ends the wait for them, and what it does not name stays.
func TestGrantsOfAMessage(t *testing.T) {
	e := engineOf(run.State{})
	e.lacksGrant, e.in.Target.Grant = true, "old"
	e.takeGrants(nil)
	require.True(t, e.lacksGrant)
	e.takeGrants(&contract.Grants{})
	require.False(t, e.lacksGrant)
	require.Equal(t, "old", e.in.Target.Grant)
	e.takeGrants(&contract.Grants{Target: "new"})
	require.Equal(t, "new", e.in.Target.Grant)
}

// TestSizeOfASignal: a signal may have as many bytes as a message, or none.
func TestSizeOfASignal(t *testing.T) {
	raw := func(size int) converter.RawValue {
		const frame = `{"note":""}`
		text := ""
		if size > 0 {
			text = `{"note":"` + strings.Repeat("x", size-len(frame)) + `"}`
		}
		return converter.NewRawValue(&commonpb.Payload{Data: []byte(text),
			Metadata: map[string][]byte{"encoding": []byte("json/plain")}})
	}
	m, err := readMessage(raw(maxMessage))
	require.NoError(t, err)
	require.Len(t, m.Note, maxMessage-11)
	_, err = readMessage(raw(maxMessage + 1))
	require.ErrorContains(t, err, "the message has 32769 bytes; the maximum is 32768")
	m, err = readMessage(raw(0))
	require.NoError(t, err)
	require.Equal(t, Message{}, m)
}

// TestAccountOpenedMeanwhile: a call that waits for an account is due if the account was opened after its request.
func TestAccountOpenedMeanwhile(t *testing.T) {
	const later, now = "2026-01-02T09:00:00.000Z", "2026-01-02T03:04:05.000Z"
	for name, row := range map[string]struct {
		opened, number int64
		kind           run.LimitKind
		until          string
		stays          bool
	}{
		"opened":                {3, 3, run.LimitPlan, now, true},
		"opened the first time": {1, 1, run.LimitPlan, now, true},
		"opened before":         {2, 3, run.LimitPlan, later, true},
		"without a number":      {3, 0, run.LimitPlan, later, true},
		"its turn":              {3, 3, run.LimitAtOnce, now, false},
	} {
		e := engineOf(run.State{})
		e.accountsOpen = map[string]int64{"a": row.opened}
		var got run.LimitedCall
		inside(t, func(ctx workflow.Context) error {
			got = e.openedMeanwhile(ctx, run.LimitedCall{Until: later,
				Limit: run.Limit{Kind: row.kind, AccountID: "a", Number: row.number}})
			return nil
		})
		_, stays := e.accountsOpen["a"]
		require.Equal(t, row.until, got.Until, name)
		require.Equal(t, row.stays, stays, name)
	}
}

// TestOutcomeOfARunWithoutADiff: runs that began before the names were exchanged keep the former ones.
func TestOutcomeOfARunWithoutADiff(t *testing.T) {
	for outcome, former := range map[run.Outcome]run.Outcome{run.OutcomeNoOp: run.OutcomeNoChange,
		run.OutcomeNoChange: run.OutcomeNoOp, run.OutcomeRejected: run.OutcomeRejected} {
		var got run.Outcome
		do := func(ctx workflow.Context) error { got = journaledOutcome(ctx, outcome); return nil }
		inside(t, do)
		require.Equal(t, outcome, got)
		inside(t, do, func(env *testsuite.TestWorkflowEnvironment) {
			env.OnGetVersion("no-diff outcome", workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
		})
		require.Equal(t, former, got)
	}
}

// TestPhaseThatAnAnswerLeaves ends before that of the earlier stage begins; in a run that began before, it stays open.
func TestPhaseThatAnAnswerLeaves(t *testing.T) {
	former := func(env *testsuite.TestWorkflowEnvironment) {
		env.OnGetVersion(changePhases, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
	}
	for name, row := range map[string]struct {
		open   string
		before []func(*testsuite.TestWorkflowEnvironment)
		want   []run.Kind
	}{
		"another phase": {"review", nil, []run.Kind{run.KindPhaseEnd, run.KindPhaseStart}},
		"this phase":    {"work", nil, nil},
		"before":        {"review", []func(*testsuite.TestWorkflowEnvironment){former}, nil},
	} {
		e := engineOf(run.State{Status: run.Running, Phase: row.open, PhaseOpen: true})
		e.round.Stage, e.round.Title = "work", "Work"
		inside(t, func(ctx workflow.Context) error { return e.enterPhase(ctx, run.Place{Round: 1}) }, row.before...)
		require.Equal(t, row.want, pendingOf(e.j), name)
	}
}

// TestMessageIsAcceptedOnlyWhenJournaled: a payload that cannot be encoded is an error of the message.
func TestMessageIsAcceptedOnlyWhenJournaled(t *testing.T) {
	err := engineOf(run.State{}).control.record(nil, run.KindBudgetRaised, math.Inf(1))
	require.ErrorContains(t, err, "journal budget.raised: ")
}

// TestScaledWaits: waits of tests are shorter.
func TestScaledWaits(t *testing.T) { require.Equal(t, 500*time.Millisecond, scaled(time.Second, 0.5)) }

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
	require.Zero(t, a.Leased)
	require.Equal(t, "1", a.Waiting[0])
	require.Equal(t, "0", a.Waiting[maxWaiting-1])
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
	require.Equal(t, run.QuestionGate.Spec().Requested, e.j.pending[0].Kind)
	require.Equal(t, "work", ask.Phase)
	require.Equal(t, 3, ask.Round)
	require.Equal(t, run.TriggerCheckFailed, ask.Trigger)
	require.Equal(t, "output", ask.Digest)
	require.Equal(t, []run.Attached{{Name: "output", Digest: "output"}}, ask.Artifacts)
}
