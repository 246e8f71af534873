package workflows

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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
		e := loopIn(run.State{Status: run.Running, Seq: 7})
		e.journal.written = written{state: e.journal.now, tail: run.Tail{Seq: 7}}
		for i := range row.pending {
			row.pending[i].Seq = int64(8 + i)
			e.journal.now = run.Apply(e.journal.now, row.pending[i])
		}
		e.journal.pending = row.pending
		inside(t, func(ctx workflow.Context) error {
			return e.journal.handleDamage(ctx, []run.JournalDamage{{File: "events.jsonl", Line: 3}})
		})
		require.Equal(t, row.want, pendingOf(e.journal), name)
		for i, ev := range e.journal.pending {
			require.Equal(t, int64(8+i), ev.Seq, name)
			require.GreaterOrEqual(t, ev.TS, e.journal.pending[max(0, i-1)].TS, name)
		}
		require.Equal(t, int64(7+len(row.want)), e.journal.now.Seq, name)
	}
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
	require.Equal(t, contract.Message{}, m)
}

// TestPhaseThatAnAnswerLeaves ends before that of the earlier stage begins.
func TestPhaseThatAnAnswerLeaves(t *testing.T) {
	for name, row := range map[string]struct {
		open string
		want []run.Kind
	}{
		"another phase": {"review", []run.Kind{run.KindPhaseEnd, run.KindPhaseStart}},
		"this phase":    {"work", nil},
	} {
		e := loopIn(run.State{Status: run.Running, Phase: row.open, PhaseOpen: true})
		e.round.Stage, e.round.Title = "work", "Work"
		inside(t, func(ctx workflow.Context) error {
			e.enterPhase(ctx, run.Place{Round: 1})
			return nil
		})
		require.Equal(t, row.want, pendingOf(e.journal), name)
	}
}

// TestMessageIsAcceptedOnlyWhenJournaled: a payload that cannot be encoded is an error of the message.
func TestMessageIsAcceptedOnlyWhenJournaled(t *testing.T) {
	err := loopIn(run.State{}).record(nil, run.KindBudgetRaised, math.Inf(1))
	require.ErrorContains(t, err, "journal budget.raised: ")
}

// TestScaledWaits: waits of tests are shorter.
func TestScaledWaits(t *testing.T) { require.Equal(t, 500*time.Millisecond, scaled(time.Second, 0.5)) }

// TestTextsWithoutSecrets: each text of a message is redacted, and a word that is no action.
func TestTextsWithoutSecrets(t *testing.T) {
	e := loopIn(run.State{})
	e.inbox.redact = func(s string) string { return strings.ReplaceAll(s, "secret", "hidden") }
	for action, want := range map[string]string{"secret": "hidden", "halt": "halt"} {
		m := contract.Message{Note: "secret note", Feedback: "secret feedback", Reason: "secret reason", Text: "secret text",
			Action: action}
		var got contract.Message
		inside(t, func(ctx workflow.Context) (err error) { got, err = e.inbox.redacted(ctx, m); return err })
		require.Equal(t, contract.Message{Note: "hidden note", Feedback: "hidden feedback", Reason: "hidden reason",
			Text: "hidden text", Action: want}, got)
	}
}

// TestWrittenEventsEndAFullDisk: the next one that is full is tried at once again.
func TestWrittenEventsEndAFullDisk(t *testing.T) {
	e := loopIn(run.State{Seq: 2})
	e.journal.fullTries = 3
	e.journal.pending = []run.Event{{Seq: 1, TS: now, Kind: run.KindErrorNoted, Payload: []byte("{}")},
		{Seq: 2, TS: now, Kind: run.KindErrorNoted, Payload: []byte("{}")}}
	e.journal.markWritten(1, run.Tail{Seq: 1, Chain: "one"})
	require.Zero(t, e.journal.fullTries)
	require.Equal(t, written{state: e.journal.written.state, tail: run.Tail{Seq: 1, Chain: "one"}}, e.journal.written)
	require.Equal(t, []int64{1, 1, 2}, []int64{e.journal.written.state.Seq, int64(len(e.journal.pending)), e.journal.pending[0].Seq})
}

// TestReceiversOfANotice: those that asked for the occasion, by their number in the definition.
func TestReceiversOfANotice(t *testing.T) {
	e := loopIn(run.State{})
	all := []run.Receiver{{Name: "a", On: []string{"question"}}, {Name: "b", On: []string{"end", "pause"}},
		{Name: "c", On: []string{"pause"}}}
	e.in.Start.Receivers = all
	paused := run.Event{Kind: run.KindRunPaused, Seq: 4}
	require.Equal(t, []contract.Receiver{{Index: 1, Receiver: all[1]}, {Index: 2, Receiver: all[2]}}, e.notices.receivers(paused, run.State{Status: run.Paused}))
	require.Empty(t, e.notices.receivers(paused, run.State{Status: run.Paused, InvalidTransition: "x"}))
	require.Empty(t, e.notices.receivers(run.Event{Kind: run.KindErrorNoted}, run.State{Status: run.Running}))
	ids := map[string]bool{}
	for range 2 {
		ids[e.notices.receiversID()] = true
	}
	e.in.Start.Receivers = all[1:]
	ids[e.notices.receiversID()] = true
	require.Len(t, ids, 2)
	require.Equal(t, []string{"2026-11-25T14", "x", ""}, []string{hourOf("2026-11-25T14:05:00.000Z"), hourOf("x"),
		hourOf("")})
	limited := run.State{RunID: "r", Status: run.WaitingLimit, Limited: run.NewLimited([]run.LimitedCall{{
		Limit: run.Limit{Kind: run.LimitPlan, Account: "max"}, Since: "2026-11-25T14:05:00.000Z",
		Until: "2026-11-25T15:05:00.000Z"}})}
	n := e.notices.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited)
	require.Equal(t, "limit/max/2026-11-25T14/"+e.notices.receiversID()[:8], n.ID, "one for the hour if no reset is known")
	require.Contains(t, n.Detail, "waits until 2026-11-25 15:05")
	limited.Limited.Reset = "2026-11-25T15:00:00.000Z"
	require.Equal(t, "limit/max/2026-11-25T15:00:00.000Z/"+e.notices.receiversID()[:8],
		e.notices.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited).ID)
	limited.Limited.Account = ""
	require.Equal(t, "r/4", e.notices.newNotice("limit", run.Event{Kind: run.KindRunLimited, Seq: 4}, limited).ID)
	asks := run.State{Questions: []run.Question{{Kind: run.QuestionHandoff, ID: "h", Text: "Good?",
		Actions:   []string{"halt"},
		Deadlines: run.Deadlines{ExpiresAt: "noon"}}}, Status: run.AwaitingPhaseHandoff}
	n = e.notices.newNotice("question", run.Event{Kind: run.KindHandoffRequested, TS: "now"}, asks)
	require.Equal(t, "Good?", n.Question)
	require.Equal(t, "h", n.QuestionID)
	require.Equal(t, []string{"halt"}, n.Actions)
	require.Equal(t, "noon", n.ExpiresAt)
	require.Equal(t, "now", n.At)
}

// TestDamagedSegmentsAreArchivedAgain from the directory, which repairs them if it has all lines.
func TestDamagedSegmentsAreArchivedAgain(t *testing.T) {
	segment := run.JournalDamage{File: run.SegmentFile + "abc", Line: 2}
	line := run.JournalDamage{File: "events.jsonl", Line: 3}
	for name, row := range map[string]struct {
		found    []run.JournalDamage
		last     int64 // that is archived
		repaired []bool
		head     string
		archived int64
	}{
		"a line only":   {[]run.JournalDamage{line}, 9, []bool{false}, "old", 7},
		"a segment":     {[]run.JournalDamage{segment, line}, 9, []bool{true, false}, "new", 9},
		"not all lines": {[]run.JournalDamage{segment}, 4, []bool{false}, "new", 4},
		"no line":       {[]run.JournalDamage{segment}, 0, []bool{false}, "old", 7},
	} {
		e := loopIn(run.State{Status: run.Running})
		e.journal.head, e.journal.archived, e.journal.written.tail = "old", 7, run.Tail{Seq: 9}
		var in contract.ArchiveSegmentInput
		var got []run.JournalDamage
		inside(t, func(ctx workflow.Context) (err error) { got, err = e.journal.rearchive(ctx, row.found); return err },
			func(env *testsuite.TestWorkflowEnvironment) {
				env.RegisterActivityWithOptions(func(asked contract.ArchiveSegmentInput) (contract.ArchiveSegmentResult, error) {
					in = asked
					return contract.ArchiveSegmentResult{Head: "new", Last: row.last}, nil
				}, activity.RegisterOptions{Name: contract.ArchiveSegment})
			})
		var repaired []bool
		for _, d := range got {
			repaired = append(repaired, d.Repaired)
		}
		require.Equal(t, row.repaired, repaired, name)
		require.Equal(t, row.head, e.journal.head, name)
		require.Equal(t, row.archived, e.journal.archived, name)
		if name != "a line only" {
			require.Zero(t, in.Head, name)
			require.Equal(t, int64(1), in.First, name)
			require.Equal(t, int64(9), in.Tail.Seq, name)
		}
	}
}

// TestBatchesDoNotSplitPasses: a batch ends before the events of a pass that do not fit.
func TestBatchesDoNotSplitPasses(t *testing.T) {
	event := func(kind run.Kind, kib int) run.Event {
		return run.Event{TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: text(kib)}
	}
	start, end, changed := run.KindPassStart, run.KindPassEnd, run.KindArtifactUpdated
	for name, row := range map[string]struct {
		pending []run.Event
		want    int
	}{
		"all fit":                   {[]run.Event{event(end, 20), event(changed, 20)}, 2},
		"the next pass does not":    {[]run.Event{event(end, 20), event(changed, 20), event(start, 20)}, 2},
		"a part of a pass does not": {[]run.Event{event(start, 5), event(end, 20), event(changed, 30)}, 1},
		"one that is too large":     {[]run.Event{event(end, 60), event(changed, 1)}, 1},
		"a whole pass is too large": {[]run.Event{event(end, 30), event(changed, 30)}, 1},
	} {
		e := loopIn(run.State{Epoch: 3})
		e.journal.head, e.journal.written.tail = "segment", run.Tail{Seq: 6, Chain: "chain"}
		for i := range row.pending {
			row.pending[i].Seq = int64(7 + i)
		}
		e.journal.pending = row.pending
		batch, n, err := e.journal.batch()
		require.NoError(t, err)
		require.Equal(t, row.want, n, name)
		require.Len(t, batch.Lines, row.want, name)
		require.Equal(t, int64(7), batch.First, name)
		require.Equal(t, 3, batch.Epoch, name)
		require.Equal(t, run.Chain("chain"), batch.Prev, name)
		require.Equal(t, "segment", batch.Head, name)
		require.Equal(t, "events 7 to "+string(rune('6'+n)), batchSummary(batch))
	}
}

// TestTurnsTakeWhatFits: a turn takes small events without a notice, while no other projection is in progress.
func TestTurnsTakeWhatFits(t *testing.T) {
	for name, row := range map[string]struct {
		change func(j *journal)
		fits   bool
	}{
		"an event":          {func(*journal) {}, true},
		"nothing":           {func(j *journal) { j.pending = nil }, false},
		"a newer directory": {func(j *journal) { j.newer = true }, false},
		"another writes":    {func(j *journal) { j.waiting = 1 }, false},
		"large events":      {func(j *journal) { j.pending[0].Payload = text(33) }, false},
		"just small enough": {func(j *journal) { j.pending[0].Payload = text(31) }, true},
		"a notice": {func(j *journal) {
			j.in.Start.Receivers = []run.Receiver{{On: []string{"pause"}}}
			j.written.state.Status, j.pending[0].Kind = run.Running, run.KindRunPaused
		}, false},
	} {
		e := loopIn(run.State{})
		e.journal.mu = unlocked{}
		e.journal.pending = []run.Event{{Seq: 1, TS: "2026-01-02T03:04:05.000Z", Kind: run.KindErrorNoted,
			Payload: []byte("{}")}}
		row.change(e.journal)
		require.Equal(t, row.fits, e.journal.fitTurn(), name)
		if name != "an event" {
			continue
		}
		e.in.Options.Turns, e.in.Target.Store = true, "file:///store"
		require.True(t, passOf(e, contract.Step{}, contract.Role{}, "").takesTurn())
		require.False(t, passOf(e, contract.Step{}, contract.Role{}, "m").takesTurn(), "a member")
		e.in.Target.Store = "s3://store"
		require.False(t, passOf(e, contract.Step{}, contract.Role{}, "").takesTurn(), "on any host")
	}
}

// text is a payload of that size in KiB.
func text(kib int) []byte { return []byte(`{"text":"` + strings.Repeat("x", kib<<10) + `"}`) }

// unlocked is a mutex that no coroutine holds.
type unlocked struct{ workflow.Mutex }

func (unlocked) IsLocked() bool { return false }

// TestEventThatCannotBeEncoded: nothing is journaled after it until the run ends, and the next write returns the error.
func TestEventThatCannotBeEncoded(t *testing.T) {
	e := loopIn(run.State{Status: run.Running})
	inside(t, func(ctx workflow.Context) error {
		e.journal.mu = workflow.NewMutex(ctx)
		e.journal.emit(ctx, run.KindErrorNoted, "", math.NaN())
		e.journal.emit(ctx, run.KindErrorNoted, "", run.ErrorNoted{})
		require.ErrorContains(t, e.journal.flush(ctx), "journal error.noted: ")
		require.False(t, e.journal.whole())
		require.Error(t, e.record(ctx, run.KindErrorNoted, run.ErrorNoted{}), "a message is refused")
		require.Empty(t, e.journal.pending)
		e.journal.forgive()
		e.journal.emit(ctx, run.KindRunEnd, "", run.RunEnd{Status: run.Failed})
		return nil
	})
	require.Equal(t, []run.Kind{run.KindRunEnd}, pendingOf(e.journal))
}
