package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// BenchmarkCheckpoint compares a checkpoint after a number of passes with one that copies the whole state, in bytes and
// time. Both are stored in the same way.
func BenchmarkCheckpoint(b *testing.B) {
	for _, passes := range []int{1, 100, 500, 1000} {
		ctx := context.Background()
		s, err := store.Open(ctx, "file://"+b.TempDir())
		require.NoError(b, err)
		dir, state := busyRun(b, s, passes)
		whole, err := os.ReadFile(dir.Path(layout.StateFile))
		require.NoError(b, err)
		mine, ok := run.NewCheckpoint(state, "")
		require.True(b, ok)
		raw, err := json.Marshal(mine)
		require.NoError(b, err)
		n := 0
		b.Run(fmt.Sprintf("reference/%d passes", passes), func(b *testing.B) {
			for b.Loop() {
				n++
				mine.Seq = int64(n)
				require.NoError(b, projector.KeepCheckpoint(ctx, blobs.Of(s), mine))
			}
			b.ReportMetric(float64(len(raw)), "bytes/checkpoint")
		})
		b.Run(fmt.Sprintf("whole state/%d passes", passes), func(b *testing.B) {
			for b.Loop() {
				n++
				require.NoError(b, blobs.Of(s).Name(ctx, fmt.Sprintf("checkpoints/whole/%012d", n), whole))
			}
			b.ReportMetric(float64(len(whole)), "bytes/checkpoint")
		})
	}
}

// busyRun is a directory of a run that has been through so many passes.
func busyRun(b *testing.B, s *store.Store, passes int) (projector.Dir, run.State) {
	b.Helper()
	text, err := blobs.Of(s).Put(context.Background(), []byte("what the agent said"))
	require.NoError(b, err)
	output := run.Blob{Digest: text, Size: 19, Chars: 19}
	var state run.State
	var batch projector.Batch
	dir := projector.At(filepath.Join(b.TempDir(), "run"))
	dir.FullRecords = 2 * passes
	tail := run.Tail{}
	add := func(kind run.Kind, payload any) {
		raw, err := run.Payload(payload)
		require.NoError(b, err)
		phase := "write"
		e := run.Event{Seq: state.Seq + 1, TS: "2026-01-02T03:04:05.000Z", Kind: kind, Phase: &phase, Payload: raw}
		line, err := e.Line()
		require.NoError(b, err)
		state = run.Apply(state, e)
		batch.Lines = append(batch.Lines, line)
	}
	send := func() {
		batch.Epoch, batch.First, batch.Prev = 1, tail.Seq+1, tail.Chain
		res, err := dir.Project(context.Background(), blobs.Of(s), batch)
		require.NoError(b, err)
		require.Equal(b, run.ProjectionWritten, res.Outcome)
		tail, batch = res.Tail, projector.Batch{}
	}
	add(run.KindRunStart, run.RunStart{
		RunID: "busy", ThreadID: "busy", Pipeline: "page", Epoch: 1, TotalPasses: passes, Artifact: &run.ArtifactRef{
			File: "page.html", Seed: output,
		},
		Notes: []run.NoteRef{{Name: "notes", File: "notes.md"}}, Stages: []run.StageRef{{Name: "write", Kind: "each"}},
	})
	add(run.KindPhaseStart, run.PhaseStart{Key: "write", Title: "Write", Round: 1})
	for i := 1; i <= passes; i++ {
		p := run.Pass{
			Step: fmt.Sprintf("%03d", i), Number: i, InRound: 1 + (i-1)%8, OfRound: 8, Set: fmt.Sprintf("S%d", 1+i/8),
			Round: 1 + i/8, Role: "builder", Gives: "artifact", Title: "Builder",
		}
		add(run.KindPassStart, run.PassStart{
			Pass: p, Call: "busy/" + p.Step, Agent: "scripted", Attempt: 1, Attempts: 3, Prompt: output, Before: text,
		})
		add(run.KindPassEnd, run.PassEnd{
			Pass: p, Call: "busy/" + p.Step, Outcome: "ok", StartedAt: "2026-01-02T03:04:05.000Z",
			CompletedAt: "2026-01-02T03:04:06.000Z", DurationMS: 1000, Attempts: 1,
			Reply: &output, Artifact: &output, Modified: true, Before: text, Spend: run.Spend{
				USD: 1, Tokens: run.Tokens{Input: 1000, Output: 100},
			},
			Validation: run.Validation{
				Passed: true, Checks: []run.Check{{Name: "doctype", Passed: true}, {Name: "end-tag", Passed: true}},
				Warnings: []string{},
			},
			Notes: []run.Added{{Name: "notes", File: "notes.md", Chars: 19}},
			Next:  &run.Place{Round: 1 + i/8, Step: i % 8},
		})
		add(run.KindArtifactUpdated, run.ArtifactUpdated{Step: p.Step, Artifact: output})
		add(run.KindNoteAppended, run.NoteAppended{Note: "notes", File: "notes.md", Step: p.Step, Entry: output,
			Whole: output})
		if i%100 == 0 {
			send()
		}
	}
	if len(batch.Lines) > 0 {
		send()
	}
	return dir, state
}

// BenchmarkNamedCheckpoint projects an event and then a named checkpoint of a long run, whose directory form contains
// the whole state (requirement 002 §5).
func BenchmarkNamedCheckpoint(b *testing.B) {
	for _, passes := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprintf("%d passes", passes), func(b *testing.B) {
			ctx := context.Background()
			s, err := store.Open(ctx, "file://"+b.TempDir())
			require.NoError(b, err)
			dir, state := busyRun(b, s, passes)
			dir.FullRecords, dir.Memory = 0, new(projector.Memory)
			meta, err := dir.Meta()
			require.NoError(b, err)
			tail := run.Tail{Seq: meta.Events.Seq, Chain: meta.Events.Chain}
			project := func(events ...run.Event) {
				batch := projector.Batch{Epoch: 1, First: tail.Seq + 1, Prev: tail.Chain}
				for i, e := range events {
					e.Seq = batch.First + int64(i)
					line, err := e.Line()
					require.NoError(b, err)
					batch.Lines = append(batch.Lines, line)
				}
				res, err := dir.Project(ctx, blobs.Of(s), batch)
				require.NoError(b, err)
				require.Equal(b, run.ProjectionWritten, res.Outcome)
				tail = res.Tail
			}
			event := func(kind run.Kind, payload any) run.Event {
				raw, err := run.Payload(payload)
				require.NoError(b, err)
				return run.Event{TS: "2026-01-02T03:04:05.000Z", Kind: kind, Payload: raw}
			}
			n, updated := 0, event(run.KindArtifactUpdated, run.ArtifactUpdated{Step: "x", Artifact: *state.Artifact})
			for b.Loop() {
				n++
				project(updated)
				project(updated, event(run.KindCheckpointCreated,
					run.CheckpointCreated{ID: fmt.Sprintf("cp-%d", n), AtPass: passes}))
			}
			size, err := os.Stat(dir.Path(layout.StateFile))
			require.NoError(b, err)
			b.ReportMetric(float64(size.Size())/1e6, "MB/state")
		})
	}
}
