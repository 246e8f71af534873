package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// mixed writes a journal of n events as long runs have them: rounds of eight passes with failed attempts, artifacts, notes, checkpoints, and a
// hand-off asked and decided after each; distinct is how many hand-off ids there are.
func mixed(t testing.TB, n, distinct int) []byte {
	s := (&story{t: t}).add(run.KindRunStart, "", opening())
	var out bytes.Buffer
	for i, round := 1, 1; len(s.events) < n; i++ {
		if i%8 == 1 {
			s.add(run.KindPhaseStart, "write", run.PhaseStart{Key: "write", Title: fmt.Sprintf("Write, round %d", round), Round: round})
		}
		s.longPass(i)
		if i%8 == 0 {
			s.add(run.KindPhaseEnd, "write", run.PhaseEnd{Key: "write", Title: "Write", Outcome: "ok", Round: round, Repeats: true})
			id := fmt.Sprintf("write:%d:%064x", round%distinct, round%distinct)
			s.add(run.KindHandoffRequested, "write", run.HandoffRequested{
				HandoffID: id, Phase: "write", HandoffType: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved, Round: round,
				Actions: []string{"continue", "retry_feedback", "halt"}, Verdict: "APPROVED", Digest: hex(i),
			})
			s.add(run.KindHandoffDecided, "write", run.HandoffDecided{HandoffID: id, Action: "continue", DecidedBy: "operator", DecidedAt: moment(int64(i))})
			round++
		}
	}
	for _, e := range s.events[:n] {
		line, err := e.Line()
		require.NoError(t, err)
		out.WriteString(line)
		out.WriteByte('\n')
	}
	return out.Bytes()
}

func hex(i int) string { return fmt.Sprintf("%064x", i*7919) }

func (s *story) longPass(i int) {
	digest := func(what string) run.Blob {
		return run.Blob{Digest: hex(i + len(what)), Size: int64(40000 + i), Chars: 39000 + i}
	}
	p := run.Pass{
		Step: fmt.Sprintf("%03d", i%800), Number: i, InRound: (i-1)%8 + 1, OfRound: 8, Set: fmt.Sprintf("S%d", (i-1)/8+1), Round: (i-1)/8 + 1,
		Role: []string{"builder", "verifier", "auditor"}[i%3], Gives: []string{"artifact", "report"}[i%2], Title: "Pass over the set",
		Dir: fmt.Sprintf("passes/pass-%03d", i),
	}
	call := fmt.Sprintf("run-1/g0.%03d.1.-.1.%s", i, hex(i)[:16])
	cost := run.Spend{USD: 0.18342 + float64(i%100)/1000, Tokens: run.Tokens{Input: 41250, Output: 9170, CacheRead: 120034, CacheWrite: 5120}, Model: "claude-opus"}
	s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: call, Agent: "claude -p", Attempt: 1, Attempts: 3, Prompt: digest("prompt")})
	if i%5 == 0 {
		s.add(run.KindPassAttempt, "write", run.PassAttempt{
			Pass: p, Call: call, Attempt: 1, Category: "output-empty", Message: "the reply has no artifact", Judged: true, RetryInMS: 5000, Spend: &cost,
		})
		s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: call + "b", Agent: "claude -p", Attempt: 2, Attempts: 3, Prompt: digest("prompt")})
	}
	reply := digest("reply")
	end := run.PassEnd{
		Pass: p, Call: call, Outcome: "ok", StartedAt: moment(int64(i)), CompletedAt: moment(int64(i + 1)), DurationMS: 183_000 + int64(i), Attempts: 1,
		Reply: &reply, Spend: cost, LastInRound: i%8 == 0, Next: &run.Place{Round: p.Round, Step: p.InRound},
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "doctype", Passed: true}, {Name: "size", Passed: true}}, Warnings: []string{}},
	}
	if p.Gives == "artifact" {
		end.Artifact, end.Modified = ptr(digest("artifact")), true
	}
	s.add(run.KindPassEnd, "write", end)
	if end.Artifact != nil {
		s.add(run.KindArtifactUpdated, "write", run.ArtifactUpdated{Step: p.Step, Artifact: *end.Artifact})
	}
	for _, note := range []string{"conviction", "discovery"} {
		s.add(run.KindNoteAppended, "write", run.NoteAppended{
			Note: note, File: note + ".md", Step: p.Step, Heading: "What it came to", Entry: run.Blob{Digest: hex(i), Size: 300}, Whole: digest("whole"),
		})
	}
	if i%8 == 0 {
		s.add(run.KindScoreRecorded, "write", run.ScoreRecorded{Name: "score", Step: p.Step, Round: p.Round, Score: ptr(3.5), Threshold: ptr(4.0)})
		s.add(run.KindCheckpointCreated, "write", run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/8), AtPass: i, USD: 12.5, Score: ptr(3.5)})
	}
}

// BenchmarkReadAndFold reads and folds 100,000 events, and in the same run scans the same bytes with encoding/json.
func BenchmarkReadAndFold(b *testing.B) {
	const n = 100_000
	journal := mixed(b, n, 10_000)
	b.SetBytes(int64(len(journal)))
	b.ReportAllocs()
	var scanning time.Duration
	for b.Loop() {
		f, r := run.NewFold(run.State{}, run.History{}), run.NewReader(bytes.NewReader(journal))
		if err := r.FoldAll(f); err != nil || !r.Tally().Sound() || f.Illegal().Count > 0 {
			b.Fatal(err, r.Tally().Findings, f.Illegal())
		}
		b.StopTimer()
		start := time.Now()
		for rest := journal; len(rest) > 0; {
			end := bytes.IndexByte(rest, '\n')
			if !json.Valid(rest[:end]) {
				b.Fatal("the journal is no JSON")
			}
			rest = rest[end+1:]
		}
		scanning += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(b.Elapsed().Seconds()/scanning.Seconds(), "of-json.Valid")
}

// BenchmarkRead is the reader alone.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	journal := mixed(b, n, 10_000)
	b.SetBytes(int64(len(journal)))
	b.ReportAllocs()
	for b.Loop() {
		r := run.NewReader(bytes.NewReader(journal))
		for {
			if _, err := r.Next(); err == io.EOF {
				break
			}
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
