package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

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
	w.agent.will(id+"1", goes(contract.PassResult{Outcome: run.CategoryAgentExit, Message: "exit 3", ExitCode: 3,
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

// TestScoreHasItsCircumstances: what it is compared with, and how many replies it is about.
func TestScoreHasItsCircumstances(t *testing.T) {
	w := newHarness(t, aLoop)
	w.agent.scores = []float64{2.5, 3}
	w.agent.will("g0.polish/3.2.-.1", func(ok contract.PassResult) (contract.PassResult, error) {
		ok.Score, ok.ScoreWhy = nil, "no number"
		return ok, nil
	})
	w.done()
	score := func(round int, value *float64, why string) run.ScoreRecorded {
		return run.ScoreRecorded{Name: "score", Step: "polish/3", Round: round, Score: value, Why: why,
			Threshold: new(3.0), Auditors: 2}
	}
	require.Equal(t, []run.ScoreRecorded{score(1, new(2.5), ""), score(2, nil, "no number"), score(3, nil, "")},
		payloads[run.ScoreRecorded](w, run.KindScoreRecorded))
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
