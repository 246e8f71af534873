package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
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
	require.Equal(t, 2, w.dir.state(t).Rounds)
}

// TestLoopEndsWhenScoreStalls compares the scores of rounds.
func TestLoopEndsWhenScoreStalls(t *testing.T) {
	stalls := strings.Replace(aLoop, "{max: 3, until: score >= 3}",
		"{max: 6, until: 'score >= 3 or len(scores) > 2 and scores[-1] - scores[-3] < 0.1'}", 1)
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
			w.shots.errs, w.shots.fails = slices.Repeat([]error{errNoSlot}, tt.busy), tt.fails
			w.shots.permanent = tt.permanent
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
			for i, a := range payloads[run.ShotsAttempt](w, run.KindShotsAttempt) {
				want := run.ShotsAttempt{Step: "polish/1", Round: 1, Dir: "cycle-1", Attempt: i + 1, Message: "the browser died",
					DurationMS: 10}
				if i < tt.taken-1 {
					want.RetryInMS = []int64{5000, 10000}[i]
				}
				require.Equal(t, want, a)
			}
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
	require.Equal(t, w.planUse(), in.PlanUse)
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
	w.onEachPause(func(int) { w.signal("resume", message{}) })
	w.done()
	require.Equal(t, []string{
		"pass.end 001", "checkpoint.created cp-one", "run.paused", "run.resumed", "pass.end 002",
		"checkpoint.created cp-two", "run.paused", "run.resumed",
	}, w.story(run.KindPassEnd, run.KindCheckpointCreated, run.KindRunPaused, run.KindRunResumed))
	require.Equal(t, run.UserReview, payloads[run.RunPaused](w, run.KindRunPaused)[0].Reason)
}

func TestCancelAtSetEndKeepsReview(t *testing.T) {
	w := newHarness(t, twoSets)
	w.observed().server.answersAnyway = true
	w.agent.will(call(1, 1), after(w.env.CancelWorkflow))
	w.executeCancelled()
	require.Equal(t, []string{"pass.end 001", "checkpoint.created cp-one", "run.end"},
		w.story(run.KindPassEnd, run.KindCheckpointCreated, run.KindRunPaused, run.KindRunEnd))
	w.reopened(contract.Reopen{Epoch: 2, From: run.Cancelled})
	w.onEachPause(func(int) { w.signal("resume", message{}) })
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

// noted is a loop whose builder adds to two notes and continues its session.
var noted = strings.NewReplacer("artifact: {file",
	"notes:\n  log: {file: log.md, marker: DISCOVERY_LOG}\n  todo: {file: todo.md, marker: TODO}\nartifact: {file",
	"builder: {prompt: prompt.md, gives: artifact}", "builder: {prompt: prompt.md, gives: artifact, notes: [log, todo]}",
).Replace(aLoop)

// full is a result with all that a call can have.
func full(ok contract.PassResult) contract.PassResult {
	ok.Envelope, ok.Artifact, ok.Modified = &run.Blob{Digest: "reported"}, &run.Blob{Digest: "page", Chars: 9}, true
	ok.Validation = run.Validation{Passed: true, Checks: []run.Check{{Name: "non-empty", Passed: true}},
		Warnings: []string{"long"}}
	ok.Notes = []run.NoteAppended{{Note: "log", File: "log.md", Step: "polish/4", Heading: "## polish",
		Entry: run.Blob{Digest: "entry", Chars: 5}, Whole: run.Blob{Digest: "whole", Chars: 50}}}
	ok.Tally = []run.Count{{Name: "words", Count: new(7)}}
	ok.Spend = run.Spend{USD: 2, Tokens: run.Tokens{Input: 1, Output: 2}, Known: run.CostExact, Model: "large"}
	ok.StartedAt, ok.DurationMS = "2026-01-02T03:04:06.000Z", 1500
	ok.ResumedFrom, ok.Tools = "session-0", &run.ToolUses{Count: 3}
	ok.Session = &run.KeptSession{ID: "session-1", Host: "here", Call: "call", Digest: "kept"}
	ok.Joined = true
	return ok
}

// TestPassEventsHaveItsResult: what a call was asked and what it answered is in the events of its pass.
func TestPassEventsHaveItsResult(t *testing.T) {
	w := newHarness(t, noted)
	w.agent.scores = []float64{1, 4}
	const id = "g0.polish/4.1.-."
	w.agent.will(id+"1", goes(contract.PassResult{Reading: run.Reading{Outcome: run.CategoryAgentExit, Message: "exit 3"}, ExitCode: 3,
		Diagnostics: "no more memory", Output: &run.Blob{Digest: "half"}, Envelope: &run.Blob{Digest: "reported"},
		ResumedFrom: "session-0", Tools: &run.ToolUses{Count: 1}}))
	w.agent.will(id+"2", func(ok contract.PassResult) (contract.PassResult, error) { return full(ok), nil })
	w.done()
	pass := run.Pass{Step: "polish/4", InRound: 4, OfRound: 4, Round: 1, Role: "builder", Gives: "artifact",
		Title: "[polish] Round {n} — Builder", Description: "[polish] Round 1 — Builder", Dir: "cycle-1"}
	start := payloads[run.PassStart](w, run.KindPassStart)[4]
	require.Equal(t, run.PassStart{Pass: pass, Call: "run-1/" + id + "1", Agent: "claude -p", Attempt: 1, Attempts: 3,
		Prompt: run.Blob{Digest: "prompt", Chars: 8}, Before: "page of run-1/g0.001.1.-.1"}, start)

	attempts := payloads[run.PassAttempt](w, run.KindPassAttempt)
	require.Len(t, attempts, 1)
	require.Positive(t, attempts[0].RetryInMS)
	attempts[0].RetryInMS = 0
	require.Equal(t, run.PassAttempt{Pass: pass, Call: "run-1/" + id + "1", Attempt: 1, Category: run.CategoryAgentExit,
		Message: "exit 3", ExitCode: 3, Diagnostics: "no more memory", Output: &run.Blob{Digest: "half"},
		Prompt: &run.Blob{Digest: "prompt", Chars: 8}, Envelope: &run.Blob{Digest: "reported"},
		StartedAt: run.Time(startTime), DurationMS: 1000, Attempts: 3, Judged: true, Spend: &run.Spend{USD: 1},
		ResumedFrom: "session-0", Tools: &run.ToolUses{Count: 1}}, attempts[0])

	ends := payloads[run.PassEnd](w, run.KindPassEnd)
	want := full(contract.PassResult{Reply: &run.Blob{Digest: "reply of run-1/" + id + "2"}})
	require.Equal(t, run.PassEnd{Pass: pass, Call: "run-1/" + id + "2", Outcome: run.CategoryOK,
		StartedAt: run.Time(startTime), CompletedAt: "2026-01-02T03:04:07.500Z", DurationMS: 2500, Attempts: 2,
		Reply: want.Reply, Envelope: want.Envelope, Artifact: want.Artifact, Before: "page of run-1/g0.001.1.-.1",
		Modified: true, Validation: want.Validation, Notes: []run.Added{{Name: "log", File: "log.md", Chars: 5}},
		Lacks: []string{"todo"}, Tally: want.Tally, Spend: want.Spend, Joined: true, ResumedFrom: "session-0",
		Tools: want.Tools, Session: want.Session, LastInRound: true, Next: &run.Place{Stage: 1, Round: 1, Step: 4}}, ends[4])
	require.Equal(t, []run.NoteAppended{want.Notes[0]}, payloads[run.NoteAppended](w, run.KindNoteAppended))
	require.Equal(t, run.ArtifactUpdated{Step: "polish/4", Call: "run-1/" + id + "2", Artifact: *want.Artifact},
		payloads[run.ArtifactUpdated](w, run.KindArtifactUpdated)[1])
}

// TestPhasesHaveTheirRounds: with the folder of their evidence, and the condition that was not met.
func TestPhasesHaveTheirRounds(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{1, 2, 2.5}
	w.done()
	require.Equal(t, 1, w.agent.calls["g0.polish/4.3.-.1"], "the last round refines too")
	require.Equal(t, 3, w.dir.state(t).Rounds)
	starts, ends := payloads[run.PhaseStart](w, run.KindPhaseStart), payloads[run.PhaseEnd](w, run.KindPhaseEnd)
	require.Equal(t, []run.PhaseStart{
		{Key: "build", Title: "Build", Round: 1}, {Key: "polish", Title: "Polish", Round: 1, Dir: "cycle-1"},
		{Key: "polish", Title: "Polish", Round: 2, Dir: "cycle-2"},
		{Key: "polish", Title: "Polish", Round: 3, Dir: "cycle-3"},
	}, starts)
	end := func(round int, next run.Place, unmet string) run.PhaseEnd {
		return run.PhaseEnd{Key: "polish", Title: "Polish", Outcome: "ok", Round: round, Repeats: true, Unmet: unmet,
			Next: &next}
	}
	for i := range ends {
		ends[i].Progress = nil
	}
	require.Equal(t, []run.PhaseEnd{{Key: "build", Title: "Build", Outcome: "ok", Round: 1,
		Next: &run.Place{Stage: 1, Round: 1}}, end(1, run.Place{Stage: 1, Round: 2}, ""),
		end(2, run.Place{Stage: 1, Round: 3}, ""), end(3, run.Place{Stage: 2, Round: 1}, "score >= 3 (values: score 2.5)")},
		ends)
	checkpoints := payloads[run.CheckpointCreated](w, run.KindCheckpointCreated)
	require.Equal(t, run.CheckpointCreated{ID: "cp-3", AtPass: 1, AtRound: 3, USD: 13, Score: new(2.5)}, checkpoints[2])
	shots := payloads[run.Screenshots](w, run.KindScreenshots)
	require.Equal(t, run.Screenshots{Step: "polish/1", Round: 2, Dir: "cycle-2", Manifest: run.Blob{Digest: "pictures"},
		Count: 2, Attempts: 1, DurationMS: 10, Next: &run.Place{Stage: 1, Round: 2, Step: 1}}, shots[1])
}
