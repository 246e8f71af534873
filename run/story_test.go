package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// story writes a journal as the workflow does: numbered, with increasing times.
type story struct {
	t      testing.TB
	events []run.Event
}

func (s *story) add(kind run.Kind, phase string, payload any) *story {
	s.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(s.t, err)
	seq := int64(len(s.events) + 1)
	e := run.Event{Seq: seq, TS: moment(seq), Kind: kind, Payload: raw}
	if phase != "" {
		e.Phase = &phase
	}
	s.events = append(s.events, e)
	return s
}

// moment is the time of an event: a second apart.
func moment(seq int64) string {
	return run.Time(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(seq) * time.Second))
}

func fold(s run.State, events []run.Event) run.State {
	for _, e := range events {
		s = run.Apply(s, e)
	}
	return s
}

func blob(name string) run.Blob { return run.Blob{Digest: "digest of " + name, Size: int64(len(name))} }

func opening() run.RunStart {
	return run.RunStart{
		Task: "write a page", RunKind: "pipeline", Pipeline: "page", RunID: "run-1", ThreadID: "run-1", Epoch: 1,
		CreatedAt: moment(0),
		Artifact:  &run.ArtifactRef{File: "artifact.html", Seed: blob("seed")},
		Notes: []run.NoteRef{{Name: "conviction", File: "conviction.md"},
			{Name: "discovery", File: "discovery.md"}},
		Budget: run.Budget{CapUSD: 500, WarnUSD: 400}, TotalPasses: 16,
	}
}

// passes is a long run: n numbered passes of two roles, every fifth with a failed attempt, a checkpoint every eight.
func passes(t testing.TB, n int) *story {
	s := (&story{t: t}).add(run.KindRunStart, "", opening())
	s.add(run.KindPhaseStart, "write", run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	for i := 1; i <= n; i++ {
		s.pass(i)
	}
	return s
}

func (s *story) pass(i int) {
	p := run.Pass{
		Step: fmt.Sprintf("%03d", i), Number: i, InRound: (i-1)%8 + 1, OfRound: 8, Set: fmt.Sprintf("S%d", (i-1)/8+1),
		Round: (i-1)/8 + 1,
		Role:  []string{"builder", "verifier"}[i%2], Gives: []string{"artifact", "report"}[i%2],
		Title: "a pass", Description: strings.Repeat("what it is about ", 8),
	}
	cost := run.Spend{USD: 0.1, Tokens: run.Tokens{Input: 1000, Output: 200, CacheRead: 30, CacheWrite: 4}}
	s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: "call", Attempt: 1, Attempts: 3,
		Prompt: blob("prompt")})
	if i%5 == 0 {
		s.add(run.KindPassAttempt, "write", run.PassAttempt{Pass: p, Attempt: 1, Category: "output-empty", Judged: true,
			RetryInMS: 5000, Spend: &cost})
		s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: "call 2", Attempt: 2, Attempts: 3,
			Prompt: blob("prompt")})
	}
	reply := blob(fmt.Sprintf("reply %d", i))
	end := run.PassEnd{
		Pass: p, Outcome: "ok", Attempts: 1, DurationMS: int64(i), Reply: &reply, Modified: true, Spend: cost,
		LastInRound: i%8 == 0,
		Validation:  run.Validation{Passed: i%7 != 0, Warnings: []string{"one"}},
		Next:        &run.Place{Round: p.Round, Step: p.InRound},
	}
	if p.Gives == "artifact" {
		end.Artifact = ptr(blob(fmt.Sprintf("artifact %d", i)))
	}
	s.add(run.KindPassEnd, "write", end)
	if end.Artifact != nil {
		s.add(run.KindArtifactUpdated, "write", run.ArtifactUpdated{Step: p.Step, Artifact: *end.Artifact})
	}
	s.add(run.KindNoteAppended, "write", run.NoteAppended{Note: "conviction", File: "conviction.md", Step: p.Step,
		Whole: blob(fmt.Sprint("whole ", i))})
	if i%8 == 0 {
		s.add(run.KindCheckpointCreated, "write", run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/8), AtPass: i})
	}
}

func ptr[T any](v T) *T { return &v }

// carried takes a state through JSON, as continue-as-new and meta.json do.
func carried(t testing.TB, s run.State) run.State {
	t.Helper()
	raw, err := json.Marshal(s)
	require.NoError(t, err)
	var back run.State
	require.NoError(t, json.Unmarshal(raw, &back))
	return back
}
