package rundir_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// journal folds the events that a test writes, in the order in which a projection does it. Event n is n seconds after
// 10:00.
type journal struct {
	t       *testing.T
	phase   string
	seq     int64
	head    rundir.Header
	state   rundir.PipelineState
	summary rundir.Summary
	logs    map[string]string
	err     error
	lists   map[string]string // blobs
	lines   strings.Builder   // events.jsonl
	size    int64             // of it
}

func newJournal(t *testing.T) *journal {
	return &journal{t: t, state: rundir.NewState(), lists: map[string]string{}, logs: map[string]string{}}
}

func (j *journal) list(digest string) ([]byte, error) {
	if text, ok := j.lists[digest]; ok {
		return []byte(text), nil
	}
	return nil, errors.New("no such blob")
}

// at is the time of an event.
func at(seq int64) string {
	return run.Time(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(seq) * time.Second))
}

func (j *journal) add(kind run.Kind, payload any) {
	j.t.Helper()
	raw, err := run.Payload(payload)
	require.NoError(j.t, err)
	j.seq++
	e := run.Event{Seq: j.seq, TS: at(j.seq), Kind: kind, Payload: raw}
	if j.phase != "" {
		phase := j.phase
		e.Phase = &phase
	}
	line, err := e.Line()
	require.NoError(j.t, err)
	j.lines.WriteString(line + "\n")
	j.size = int64(j.lines.Len())
	before, pending := j.head.State.Clone(), j.state.PendingErrors
	j.head.Fold(e)
	require.Empty(j.t, j.head.State.InvalidTransition)
	rundir.FoldRecords(&j.state, e, &j.head.State)
	j.summary = rundir.Summarize(&j.state)
	rows, err := rundir.RowsOf(e, &before, &j.head.State, &j.state, pending, j.list)
	for file, added := range rows {
		j.logs[file] += string(added)
	}
	if j.err == nil {
		j.err = err
	}
}

// rows are the lines of a log. They are compared as values, without the order of their keys.
func (j *journal) rows(file string) []map[string]any {
	j.t.Helper()
	require.NoError(j.t, j.err)
	var all []map[string]any
	for line := range strings.Lines(j.logs[file]) {
		var row map[string]any
		require.NoError(j.t, json.Unmarshal([]byte(line), &row))
		all = append(all, row)
	}
	return all
}

// logged compares a log with the lines that a test expects.
func (j *journal) logged(file string, want ...string) {
	j.t.Helper()
	rows := j.rows(file)
	require.Len(j.t, rows, len(want))
	for i, line := range want {
		var row map[string]any
		require.NoError(j.t, json.Unmarshal([]byte(line), &row), line)
		require.Equal(j.t, row, rows[i], "line %d of %s", i+1, file)
	}
}

// start begins a run of two sets and a repeated stage on an artifact with two notes.
func (j *journal) start() {
	j.add(run.KindRunStart, corpus())
	j.phase = "write"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
}

func corpus() run.RunStart {
	threshold := 3.5
	return run.RunStart{
		Task: "page", RunKind: "pipeline", Pipeline: "book", RunID: "run-1", ThreadID: "thread-1", Epoch: 1,
		CreatedAt: at(0), ConfigHash: "0123456789abcdef", Definition: "definition", Plan: "plan", Policy: "policy",
		Artifact:    &run.ArtifactRef{File: "page.html", Seed: run.Blob{Digest: "seed", Size: 20, Chars: 18}},
		Notes:       []run.NoteRef{{Name: "conviction", File: "one.md"}, {Name: "discovery", File: "two.md"}},
		Budget:      run.Budget{CapUSD: 50, WarnUSD: 40},
		TotalPasses: 4, MaxRounds: 6, Threshold: &threshold, Tenant: "tenant", Environment: "test", Host: "host",
		Build: "build", Agents: []string{"claude 2.1"},
	}
}

// builder is a numbered pass that outputs the artifact.
func builder(n int) run.Pass {
	return run.Pass{Step: []string{"", "001", "002", "003"}[n], Number: n, InRound: n + 10, OfRound: 12, Set: "S1",
		Round: 1, Order: "B", Role: "builder", Gives: "artifact", Title: "title", Description: "what it does",
		Files: []string{"a.md", "b.md"}, References: []string{"r.md"}}
}

func verifier(n int) run.Pass {
	p := builder(n)
	p.Role, p.Gives, p.Files, p.References = "verifier", "report", nil, nil
	return p
}

// inCycle is a call of a repeated stage.
func inCycle(round int, member, role, gives string) run.Pass {
	return run.Pass{Step: role, Round: round, InRound: 1, Member: member, Role: role, Gives: gives, Title: role,
		Description: role, Dir: "screenshots/cycle-" + string(rune('0'+round))}
}

func (j *journal) begin(p run.Pass, before string) {
	j.add(run.KindPassStart, run.PassStart{Pass: p, Call: "call", Agent: "claude", Attempt: 1, Attempts: 3,
		Prompt: run.Blob{Digest: "prompt"}, Before: before})
}

// spend has another value in each of its fields, and for each number.
func spentCalls(n int64) run.Spend {
	return run.Spend{USD: float64(n) / 4, Model: "opus", Tokens: run.Tokens{Input: 1000 * n, Output: 200 * n,
		CacheRead: 30 * n, CacheWrite: 4 * n}}
}

func endedPass(p run.Pass, n int64) run.PassEnd {
	return run.PassEnd{Pass: p, Call: "call", Outcome: run.CategoryOK, StartedAt: at(100 + n), CompletedAt: at(200 + n),
		DurationMS: 7000 + n, Attempts: 1, Reply: &run.Blob{Digest: "reply"}, Spend: spentCalls(n),
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "whole", Passed: true}}}}
}

func pointer[T any](v T) *T { return &v }

// text reads the log for people.
func (j *journal) text() string { return j.logs[rundir.TextLog] }
