//go:build unix

package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/run"
)

// mixed writes a journal of n events, of 300 bytes in the mean: phases of one pass each, every fifth with a failed
// attempt, with artifacts, notes, scores and checkpoints, and a hand-off after each, asked and decided; distinct is how
// many hand-off ids there are.
func mixed(t testing.TB, n, distinct int) []byte {
	s := (&story{t: t}).add(run.KindRunStart, "", opening())
	for i := 1; len(s.events) < n; i++ {
		s.add(run.KindPhaseStart, "write", run.PhaseStart{Key: "write", Title: fmt.Sprintf("Write, round %d", i),
			Round: i})
		s.longPass(i)
		s.add(run.KindPhaseEnd, "write", run.PhaseEnd{Key: "write", Title: "Write", Outcome: "ok", Round: i,
			Repeats: true})
		id := "write:" + hex(i % distinct)[40:]
		s.add(run.KindHandoffRequested, "write", run.QuestionRequested{
			Kind: run.QuestionHandoff,
			ID:   id, Phase: "write", Type: run.HandoffFeedbackAlways, Trigger: run.TriggerApproved, Round: i,
			Actions: []string{"continue", "retry_feedback", "halt"}, Verdict: "APPROVED", Digest: hex(i),
		})
		s.add(run.KindHandoffDecided, "write", run.QuestionDecided{Kind: run.QuestionHandoff, ID: id,
			Action: "continue", DecidedBy: "operator", DecidedAt: moment(int64(i))})
	}
	return lines(t, s.events[:n])
}

func hex(i int) string { return fmt.Sprintf("%064x", i*7919) }

func (s *story) longPass(i int) {
	digest := func(what string) run.Blob {
		return run.Blob{Digest: hex(i + len(what)), Size: int64(40000 + i), Chars: 39000 + i}
	}
	p := run.Pass{
		Step: fmt.Sprintf("%03d", i%800), Number: i, InRound: (i-1)%8 + 1, OfRound: 8,
		Set: fmt.Sprintf("S%d", (i-1)/8+1), Round: (i-1)/8 + 1,
		Role: []string{"builder", "verifier", "auditor"}[i%3], Gives: []string{"artifact", "report"}[i%2],
		Title: "Pass over the set",
		Dir:   fmt.Sprintf("passes/pass-%03d", i),
	}
	call := fmt.Sprintf("run-1/g0.%03d.1.-.1.%s", i, hex(i)[:16])
	cost := run.Spend{USD: 0.18342 + float64(i%100)/1000,
		Tokens: run.Tokens{Input: 41250, Output: 9170, CacheRead: 120034, CacheWrite: 5120}, Model: "claude-opus"}
	s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: call, Agent: "claude -p", Attempt: 1, Attempts: 3,
		Prompt: digest("prompt")})
	if i%5 == 0 {
		s.add(run.KindPassAttempt, "write", run.PassAttempt{
			Pass: p, Call: call, Attempt: 1, Category: "output-empty", Message: "the reply has no artifact",
			Judged: true, RetryInMS: 5000, Spend: &cost,
		})
		s.add(run.KindPassStart, "write", run.PassStart{Pass: p, Call: call + "b", Agent: "claude -p", Attempt: 2,
			Attempts: 3, Prompt: digest("prompt")})
	}
	reply := digest("reply")
	end := run.PassEnd{
		Pass: p, Call: call, Outcome: "ok", StartedAt: moment(int64(i)), CompletedAt: moment(int64(i + 1)),
		DurationMS: 183_000 + int64(i), Attempts: 1,
		Reply: &reply, Spend: cost, LastInRound: i%8 == 0, Next: &run.Place{Round: p.Round, Step: p.InRound},
		Validation: run.Validation{Passed: true, Checks: []run.Check{{Name: "doctype", Passed: true},
			{Name: "size", Passed: true}}, Warnings: []string{}},
	}
	if p.Gives == "artifact" {
		end.Artifact, end.Modified = ptr(digest("artifact")), true
	}
	s.add(run.KindPassEnd, "write", end)
	if end.Artifact != nil {
		s.add(run.KindArtifactUpdated, "write", run.ArtifactUpdated{Step: p.Step, Artifact: *end.Artifact})
	}
	s.add(run.KindNoteAppended, "write", run.NoteAppended{
		Note: "discovery", File: "discovery.md", Step: p.Step, Heading: "What it came to",
		Entry: run.Blob{Digest: hex(i), Size: 300}, Whole: digest("whole"),
	})
	s.add(run.KindScoreRecorded, "write", run.ScoreRecorded{Name: "score", Step: p.Step, Round: p.Round,
		Score: ptr(3.5), Threshold: ptr(4.0)})
	if i%8 == 0 {
		s.add(run.KindCheckpointCreated, "write", run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/8), AtPass: i,
			USD: 12.5, Score: ptr(3.5)})
	}
}

// BenchmarkReadAndFold reads and folds 100,000 events with few and with many hand-offs, and in the same run scans the
// same bytes with encoding/json. events/cpu-s and of-json.Valid count the time of the CPU, garbage collection included:
// on a machine that others use as well the clock says little. MB-live is what the fold and the reader hold in the end.
func BenchmarkReadAndFold(b *testing.B) {
	for _, distinct := range []int{100, 10_000} {
		b.Run(fmt.Sprint(distinct, " hand-offs"), func(b *testing.B) {
			const n = 100_000
			journal := mixed(b, n, distinct)
			b.SetBytes(int64(len(journal)))
			var folding, scanning time.Duration
			for b.Loop() {
				folding += spent(b, func() { readAndFold(b, journal, distinct) })
				b.StopTimer()
				scanning += spent(b, func() { scan(b, journal) })
				b.StartTimer()
			}
			b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(n*float64(b.N)/folding.Seconds(), "events/cpu-s")
			b.ReportMetric(folding.Seconds()/scanning.Seconds(), "of-json.Valid")
			b.ReportMetric(live(b, journal, distinct), "MB-live")
		})
	}
}

// spent is the time of all CPUs that f takes.
func spent(b *testing.B, f func()) time.Duration {
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	f()
	return used() - before
}

func readAndFold(b *testing.B, journal []byte, distinct int) (*run.Fold, *run.Reader) {
	f, r := run.NewFold(run.State{}, run.History{}), run.NewReader(bytes.NewReader(journal), 0)
	for line, err := range r.Lines() {
		if err != nil || line.Err != nil {
			b.Fatal(err, line.Err)
		}
		f.Apply(line.Event)
	}
	if f.InvalidTransitions().Count > 0 || len(f.History().Handoffs) != distinct {
		b.Fatal(f.InvalidTransitions(), len(f.History().Handoffs))
	}
	return f, r
}

func scan(b *testing.B, journal []byte) {
	for rest := journal; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if !json.Valid(rest[:end]) {
			b.Fatal("the journal is not JSON")
		}
		rest = rest[end+1:]
	}
}

// live is what a fold and its reader hold, in MB.
func live(b *testing.B, journal []byte, distinct int) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f, r := readAndFold(b, journal, distinct)
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(f)
	runtime.KeepAlive(r)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / (1 << 20)
}

// BenchmarkRead is the reader alone.
func BenchmarkRead(b *testing.B) {
	const n = 100_000
	journal := mixed(b, n, 10_000)
	b.SetBytes(int64(len(journal)))
	for b.Loop() {
		r := run.NewReader(bytes.NewReader(journal), 0)
		for _, err := r.Next(); err == nil; {
			_, err = r.Next()
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
