package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

var roundKinds = []run.Kind{
	run.KindPhaseStart, run.KindScreenshots, run.KindPassEnd, run.KindScoreRecorded, run.KindPhaseEnd,
	run.KindCheckpointCreated,
}

func TestLoopEndsWhenConditionHolds(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{2, 3}
	r := w.done()
	require.Equal(t, []string{
		"phase.start", "pass.end 001", "phase.end",
		"phase.start", "screenshots.captured polish/1", "pass.end polish/2 critic-A", "pass.end polish/2 critic-B",
		"pass.end polish/3",
		"score.recorded polish/3", "pass.end polish/4", "phase.end", "checkpoint.created cp-1",
		"phase.start", "screenshots.captured polish/1", "pass.end polish/2 critic-A", "pass.end polish/2 critic-B",
		"pass.end polish/3",
		"score.recorded polish/3", "phase.end", "checkpoint.created cp-2", // conditionMet: nothing is refined
	}, w.story(roundKinds...))
	require.InDelta(t, 3, *r.Score, 1e-9)
	scores := payloads[run.ScoreRecorded](w, run.KindScoreRecorded)
	require.False(t, scores[0].Met)
	require.True(t, scores[1].Met)
	for _, end := range payloads[run.PhaseEnd](w, run.KindPhaseEnd) {
		require.Empty(t, end.Unmet)
	}
	require.Equal(t, 2, w.dir.state(t).Rounds)
}

// TestLoopEndsWhenScoreStalls compares the scores of rounds.
func TestLoopEndsWhenScoreStalls(t *testing.T) {
	stalls := strings.Replace(aLoop, "{max: 3, until: score >= 3}",
		"{max: 6, until: score >= 3 or score_gain(2) < 0.1}", 1)
	for name, row := range map[string]struct {
		scores []float64
		rounds int
	}{
		"it stalls":       {[]float64{1, 1.5, 1.05, 2}, 3},
		"it falls":        {[]float64{2, 1.9, 1.8}, 3},
		"it rises slowly": {[]float64{1, 1.05, 1.1, 1.2, 1.19, 1.25}, 5},
		"it is reached":   {[]float64{1, 3}, 2},
		"it always rises": {[]float64{0, 0.5, 1, 1.5, 2, 2.5}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, stalls)
			w.agent.scores = row.scores
			w.done()
			require.Equal(t, row.rounds, w.dir.state(t).Rounds)
		})
	}
}

func TestFailedScreenshotsAreSkipped(t *testing.T) {
	tests := []struct {
		name      string
		busy      int
		fails     int
		permanent bool
		taken     int
		degraded  bool
	}{
		{"twice", 0, 2, false, 3, false},
		{"three times", 0, 3, false, 3, true},
		{"no browser here", 0, 1, true, 1, true},
		{"no slot is free for long", 5, 2, false, 3, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newHarness(t, aLoop)
			w.agent.scores = []float64{4}
			w.shots.busy, w.shots.fails, w.shots.permanent = tt.busy, tt.fails, tt.permanent
			var given []bool
			w.composing = func(in contract.ComposeInput) { given = append(given, in.Context.Pictures != nil) }
			w.done()
			shots := payloads[run.Screenshots](w, run.KindScreenshots)
			require.Len(t, shots, 1)
			require.Equal(t, tt.taken, shots[0].Attempts)
			require.Equal(t, tt.degraded, shots[0].Degraded)
			require.Equal(t, tt.taken, w.shots.taken)
			require.Equal(t, []bool{false, !tt.degraded, !tt.degraded, !tt.degraded}, given,
				"builder, two critics, judge")
			require.Len(t, w.waits, tt.taken-1)
		})
	}
}

// TestScreenshotsOutliveTheirWorkers: a lost worker, and a host without the store, use no attempt; other errors do.
func TestScreenshotsOutliveTheirWorkers(t *testing.T) {
	const second = time.Second
	lost := temporal.NewHeartbeatTimeoutError()
	for name, row := range map[string]struct {
		errs     []error
		attempts int
		degraded bool
		waits    []time.Duration
	}{
		"lost ten times":    {slices.Repeat([]error{lost}, 10), 1, false, nil},
		"lost once more":    {slices.Repeat([]error{lost}, 11), 0, false, nil},
		"no store":          {[]error{noStore("far"), noStore("far")}, 1, false, []time.Duration{second, 2 * second}},
		"a broken browser":  {[]error{noProgram(), noProgram()}, 3, false, []time.Duration{5 * second, 10 * second}},
		"a browser in ruin": {slices.Repeat([]error{noProgram()}, 3), 3, true, []time.Duration{5 * second, 10 * second}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, aLoop)
			w.agent.scores = []float64{4}
			w.shots.errs = row.errs
			_, err := w.execute()
			require.Equal(t, row.attempts == 0, err != nil)
			require.Equal(t, row.waits, w.waits)
			if shots := payloads[run.Screenshots](w, run.KindScreenshots); row.attempts > 0 {
				require.Equal(t, row.attempts, shots[0].Attempts)
				require.Equal(t, row.degraded, shots[0].Degraded)
			}
			last := w.shots.inputs[len(w.shots.inputs)-1]
			require.Equal(t, row.attempts == 3, last.Last)
		})
	}
}

// TestScreenshotsOfAReplayAreReused: of the same page, with the place that they were taken from.
func TestScreenshotsOfAReplayAreReused(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{4}
	w.in.Start.Source = &run.Source{RunID: "their-run", Mode: run.ModeReplay, Replay: run.UseRecorded, Generation: 2}
	w.shots.source = "their-run"
	w.done()
	require.Equal(t, []run.Effect{{Step: "polish/1", Class: run.EffectRead, Policy: run.UseRecorded, Status: "reused",
		Source: "their-run", Result: "pictures"}}, payloads[run.Effect](w, run.KindEffectReused))
	in := w.shots.inputs[0]
	require.Equal(t, "run-1", in.RunID)
	require.Equal(t, storeURL, in.Store)
	require.Equal(t, "page of run-1/g0.001.1.-.1", in.Artifact.Digest)
	require.Equal(t, "page.html", in.Name)
	require.Equal(t, int64(10_000), in.HeartbeatMS)
	require.False(t, in.Last)
	require.Equal(t, "run-1/g0.polish/1.1.-.1", in.Call)
	require.Equal(t, "their-run", in.RecordedRun)
	require.Equal(t, 2, in.Generations)
	require.Equal(t, w.in.Plans[0], in.PlanUse)
}

const twoSets = head + `
corpus:
  one: {theme: First, files: [a: a.md]}
  two: {theme: Second, files: [b: b.md]}
stages:
  - name: weave
    for_each: corpus
    orders: {A: 0}
    passes: [{role: builder, order: A}]
    checkpoint: cp-{set}
    pause_after: true
`

func TestReviewPausesAfterEachSet(t *testing.T) {
	w := newHarness(t, twoSets)
	var resume func()
	resume = func() {
		w.onPause(resume)
		w.signal("resume", message{})
	}
	w.onPause(resume)
	w.done()
	require.Equal(t, []string{
		"pass.end 001", "checkpoint.created cp-one", "run.paused", "run.resumed", "pass.end 002",
		"checkpoint.created cp-two", "run.paused", "run.resumed",
	}, w.story(run.KindPassEnd, run.KindCheckpointCreated, run.KindRunPaused, run.KindRunResumed))
	require.Equal(t, run.UserReview, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
}

// answersAnyway gives calls their answers although the run was cancelled meanwhile, as a server does with
// WaitForCancellation. The test environment does not.
type answersAnyway struct {
	interceptor.WorkerInterceptorBase
	interceptor.WorkflowInboundInterceptorBase
	interceptor.WorkflowOutboundInterceptorBase
}

func (a *answersAnyway) InterceptWorkflow(_ workflow.Context,
	next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &answersAnyway{}
	i.WorkflowInboundInterceptorBase.Next = next
	return i
}

func (a *answersAnyway) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &answersAnyway{}
	o.WorkflowOutboundInterceptorBase.Next = out
	return a.WorkflowInboundInterceptorBase.Next.Init(o)
}

func (a *answersAnyway) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	if name == contract.RunPass || name == contract.Turn {
		ctx, _ = workflow.NewDisconnectedContext(ctx)
	}
	return a.WorkflowOutboundInterceptorBase.Next.ExecuteActivity(ctx, name, args...)
}

func TestCancelAtSetEndKeepsReview(t *testing.T) {
	w := newHarness(t, twoSets)
	workflows.SetInterceptors(w.env, &answersAnyway{})
	w.agent.will(call(1, 1), after(w.env.CancelWorkflow))
	_, err := w.execute()
	var cancelled *temporal.CanceledError
	require.ErrorAs(t, err, &cancelled)
	require.Equal(t, []string{"pass.end 001", "checkpoint.created cp-one", "run.end"},
		w.story(run.KindPassEnd, run.KindCheckpointCreated, run.KindRunPaused, run.KindRunEnd))
	w.reopened(workflows.Reopen{Epoch: 2, From: run.Cancelled})
	var resume func()
	resume = func() {
		w.onPause(resume)
		w.signal("resume", message{})
	}
	w.onPause(resume)
	w.done()
	require.Equal(t, []string{
		"pass.end 001", "checkpoint.created cp-one", "run.end", "run.resumed", "run.paused", "run.resumed",
		"pass.end 002",
		"checkpoint.created cp-two", "run.paused", "run.resumed", "run.end",
	}, w.story(run.KindPassEnd, run.KindCheckpointCreated, run.KindRunPaused, run.KindRunResumed, run.KindRunEnd))
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Equal(t, run.RunPaused{Reason: run.UserReview, Detail: "review requested after weave one"}, paused[0])
	require.Equal(t, 1, w.agent.calls[call(1, 1)], "an answered pass was called again")
}

func TestQualityGatePauses(t *testing.T) {
	w := newHarness(
		t, strings.Replace(aLoop, "    dir: cycle-{n}\n", "    dir: cycle-{n}\n    quality_gate: score >= 2\n", 1),
	)
	w.agent.scores = []float64{1, 2, 3}
	w.onPause(func() { w.signal("resume", nil) })
	w.done()
	paused := payloads[run.RunPaused](w, run.KindRunPaused)
	require.Len(t, paused, 1, "only the first round is below the gate")
	require.Equal(t, run.QualityGate, paused[0].Reason)
	require.Equal(t, "round 1 returned score 1, the gate requires score >= 2", paused[0].Detail)
}

func TestScreenshotAttemptsAreJournaled(t *testing.T) {
	w := newHarness(t, aLoop)
	w.shots.fails = 2
	w.done()
	attempts := payloads[run.ShotsAttempt](w, run.KindShotsAttempt)
	require.Len(t, attempts, 2)
	for i, want := range []int64{5000, 10000} {
		require.Equal(t, run.ShotsAttempt{
			Step: attempts[0].Step, Round: 1, Dir: "cycle-1", Attempt: i + 1, Message: "the browser died",
			DurationMS: 10,
			RetryInMS:  want,
		}, attempts[i])
	}
	require.Equal(t, 3, payloads[run.Screenshots](w, run.KindScreenshots)[0].Attempts)
	require.Contains(t, w.waits, 10*time.Second)
}
