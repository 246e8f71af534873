package report_test

import (
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/run"
)

// BenchmarkWrite writes the page of a run with 100,000 events, five for each of its 20,000 passes, without their files.
func BenchmarkWrite(b *testing.B) {
	s := newStory(b)
	s.start()
	for i := 1; len(s.lines) < 100_000; i++ {
		p := run.Pass{Step: "step", Number: i, InRound: 1, OfRound: 1, Round: 1, Role: "builder", Gives: "report",
			Title: "A pass", Description: "a pass"}
		s.add(run.KindPassStart, run.PassStart{Pass: p, Agent: "agent", Call: p.Step, Attempt: 1, Attempts: 3})
		s.add(run.KindPassEnd, run.PassEnd{
			Pass: p, Call: p.Step, Outcome: "ok", StartedAt: s.state.TS, CompletedAt: s.state.TS,
			DurationMS: int64(i % 90), Attempts: 1,
			Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "whole", Passed: true}},
				Warnings: []string{}},
			Tally: []run.Count{{Name: "deep", Count: new(i % 5)}},
			Spend: run.Spend{USD: 0.01, Tokens: run.Tokens{Input: 100, Output: 20}, Model: "m"},
			Next:  &run.Place{Round: 1, Step: i},
		})
		s.add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: p.Step, Call: p.Step, Artifact: s.artifact})
		s.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Step: p.Step, Round: i, Auditors: 3})
		s.add(run.KindBudgetRaised, run.BudgetEvent{Budget: run.Budget{CapUSD: float64(2000 + i), WarnUSD: 900},
			TotalUSD: s.state.Total(), By: "somebody"})
	}
	s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-1", AtPass: 1, USD: s.state.Total()})
	d := s.dir()
	for b.Loop() {
		require.NoError(b, report.Write(io.Discard, d.Dir, report.Options{}))
	}
}
