package watch

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// BenchmarkOpen measures the start of `watch` until its first screen, for runs of several lengths, with five events per
// pass.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d events", n), func(b *testing.B) {
			d := long(b, n)
			for b.Loop() {
				require.NoError(b, Print(io.Discard, Options{Dir: d}, time.Now(), 140))
			}
		})
	}
}

// BenchmarkClock measures a second without an event: the screen is redrawn from memory.
func BenchmarkClock(b *testing.B) {
	d := long(b, 100_000)
	first := reader{o: Options{Dir: d}}.read(time.Now())
	require.NoError(b, first.err)
	for b.Loop() {
		s := first.reader.read(time.Now())
		require.NotEmpty(b, Render(s.scene, 140, 50, true))
	}
}

// long writes the files of a run of n events that the reader uses.
func long(b *testing.B, n int) rundir.Dir {
	b.Helper()
	d := rundir.At(b.TempDir())
	require.NoError(b, os.MkdirAll(filepath.Dir(d.Path(layout.DecisionsLog)), 0o755))
	passes := n / 5
	s := story{file: create(b, d.Path(layout.EventsFile)), log: create(b, d.Path(layout.DecisionsLog)),
		at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.add(b, run.KindRunStart, run.RunStart{Pipeline: "long", RunID: "long", ThreadID: "long", TotalPasses: passes + 8,
		Budget: run.Budget{CapUSD: 1e6}, Notes: []run.NoteRef{{Name: "notes", File: "n.md"}}})
	book := rundir.PipelineState{
		SchemaVersion: rundir.StateSchema, RunID: "long", StartedAt: s.state.StartedAt, TotalCorpusPasses: passes + 8,
		LastCompletedCorpusPass: passes, CurrentPhase: "write",
		PassRecords: rundir.ByNumber[rundir.PassRecord]{}, PACycleRecords: rundir.ByNumber[rundir.PACycleRecord]{},
		FailedOutputs: map[string]int{},
		Cost: rundir.CostTracker{ByRole: map[string]rundir.RoleCost{"builder": {PassCount: passes,
			CostUSD: float64(passes)}}, BySubset: map[string]rundir.RoleCost{},
			ByPACycle: rundir.ByNumber[rundir.RoleCost]{}},
	}
	for i := 1; i <= passes; i++ {
		p := run.Pass{Step: fmt.Sprintf("%03d", i), Number: i, InRound: (i-1)%8 + 1, OfRound: 8,
			Set: fmt.Sprintf("S%d", (i+7)/8), Round: 1, Role: "builder", Gives: "artifact",
			Title:       "[S1] Pass 1/8 — Rotation A — Builder",
			Description: "[S1] Pass 1/8 — Rotation A (Base ordering) — Builder — Research",
			Files:       []string{"R1", "R2", "R3", "R4", "R5"}}
		call := "8139ce28-079c-4000-b05e-79b06b248b2e/g0." + p.Step + ".1.-.1"
		s.add(b, run.KindPassStart, run.PassStart{Pass: p, Call: call, Attempt: 1, Attempts: 3})
		valid := run.Validation{Passed: true, Checks: []run.Check{{Name: "non-empty", Passed: true},
			{Name: "html-present", Passed: true}, {Name: "html-complete", Passed: true}}, Warnings: []string{}}
		s.add(b, run.KindPassEnd, run.PassEnd{Pass: p, Call: call, Outcome: "ok", DurationMS: 60_000, Validation: valid,
			Attempts: 1, Spend: run.Spend{USD: 1}, StartedAt: s.state.TS, CompletedAt: s.state.TS})
		for range 3 {
			s.add(b, run.KindNoteAppended, run.NoteAppended{Note: "notes", File: "n.md", Step: p.Step,
				Heading: "## Pass"})
		}
		book.PassRecords[fmt.Sprint(i)] = rundir.PassRecord{
			GlobalPassNumber: i, SubsetPassNumber: p.InRound, SubsetID: p.Set, AgentRole: "builder",
			Description: p.Description, StartedAt: s.state.TS, CompletedAt: s.state.TS, DurationMS: 60_000,
			PromptPath:    "_orchestrator/passes/pass-001/prompt.md",
			RawOutputPath: "_orchestrator/passes/pass-001/raw-output.txt", ValidationPassed: true,
			ValidationDetails: valid,
			Tokens:            rundir.PassTokens{InputTokens: 3429, OutputTokens: 968, EstimatedCostUSD: 1},
			CorpusFilesLoaded: p.Files, ReferenceFilesLoaded: p.Files, Outcome: "ok",
		}
	}
	book.LastSeq = s.state.Seq
	s.close(b)
	size, err := os.Stat(d.Path(layout.EventsFile))
	require.NoError(b, err)
	meta := rundir.Meta{Version: 1, RunID: "long", Events: rundir.EventsMark{Seq: s.state.Seq, Size: size.Size()},
		State: s.state}
	write(b, d.Path(layout.StateFile), book)
	write(b, d.Path(layout.MetaFile), meta)
	src, err := figures.Read(d)
	require.NoError(b, err)
	require.EqualValues(b, 5*passes+1, src.State.Seq)
	require.Len(b, src.Records.PassRecords, passes)
	return d
}

// story writes a journal and its decision log.
type story struct {
	file, log *bufio.Writer
	state     run.State
	at        time.Time
}

func create(b *testing.B, path string) *bufio.Writer {
	f, err := os.Create(path)
	require.NoError(b, err)
	b.Cleanup(func() { f.Close() })
	return bufio.NewWriter(f)
}

func (s *story) add(b *testing.B, kind run.Kind, payload any) {
	raw, err := run.Payload(payload)
	require.NoError(b, err)
	s.at = s.at.Add(time.Second)
	e := run.Event{Seq: s.state.Seq + 1, TS: run.Time(s.at), Kind: kind, Payload: raw}
	s.state = run.Apply(s.state, e)
	line, err := e.Line()
	require.NoError(b, err)
	fmt.Fprintln(s.file, line)
	if kind != run.KindNoteAppended {
		fmt.Fprintf(s.log,
			`{"ts":"%s","decision":"execute-pass","passNumber":1,"role":"builder","subset":"S1","rotation":"A","files":["R1",`+
				`"R2"],"seq":%d}`+"\n", e.TS, e.Seq)
	}
}

func (s *story) close(b *testing.B) {
	require.NoError(b, s.file.Flush())
	require.NoError(b, s.log.Flush())
}

func write(b *testing.B, path string, v any) {
	raw, err := json.Marshal(v)
	require.NoError(b, err)
	require.NoError(b, os.WriteFile(path, raw, 0o644))
}
