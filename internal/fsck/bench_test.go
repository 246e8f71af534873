package fsck_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/evidence"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// BenchmarkNow is what `status` reads of a run of that many events: meta.json and the lines behind it, whatever the
// length of the run.
func BenchmarkNow(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d events", n), func(b *testing.B) {
			d := busy(b, n)
			size, err := os.Stat(d.Path(layout.EventsFile))
			require.NoError(b, err)
			b.ReportMetric(float64(size.Size())/1e6, "stream-MB")
			for b.Loop() {
				now, err := d.Now()
				require.NoError(b, err)
				require.EqualValues(b, n, now.Tail.Seq)
				require.Equal(b, int64(lagging), now.Lag)
			}
		})
	}
}

// lagging is how many lines meta.json has not seen.
const lagging = 20

// busy is a directory with n events of several kinds, passes with everything they leave behind among them.
func busy(b *testing.B, n int) projector.Dir {
	b.Helper()
	s := newStory(b)
	s.start()
	for i := 1; len(s.lines) < n; i++ {
		switch {
		case i%400 == 0:
			s.pass(i)
		case i%3 == 0:
			s.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Step: "look", Round: i, Auditors: 3})
		case i%3 == 1:
			s.add(run.KindDecisionRefused, run.DecisionRefused{Verb: "resume",
				Reason: "the run is running: only a paused run can be resumed", By: "somebody"})
		default:
			s.add(run.KindBudgetRaised, run.BudgetEvent{Budget: run.Budget{CapUSD: float64(2000 + i), WarnUSD: 900},
				TotalUSD: s.state.Total(), By: "somebody"})
		}
	}
	d := projector.At(filepath.Join(b.TempDir(), "run"))
	require.NoError(b, d.Take(claim()))
	const piece = 1000
	for first := 1; first <= n-lagging; first += piece {
		project(b, d, s, batch(s.lines, first, min(first+piece-1, n-lagging)))
	}
	f, err := os.OpenFile(d.Path(layout.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(b, err)
	for _, line := range s.lines[n-lagging : n] {
		_, err = f.WriteString(line + "\n")
		require.NoError(b, err)
	}
	require.NoError(b, f.Close())
	return d
}

// BenchmarkAppendAndSnapshot holds one batch without evidence, a message that was noted down, against the fsyncs that
// it needs: the same number of them, of as many bytes, on files of the same kind in the same folder.
func BenchmarkAppendAndSnapshot(b *testing.B) {
	for _, passes := range []int{0, 56, 900} {
		b.Run(fmt.Sprintf("%d passes", passes), func(b *testing.B) { appendAndSnapshot(b, passes) })
	}
}

func appendAndSnapshot(b *testing.B, passes int) {
	s := newStory(b)
	s.start()
	for i := 1; i <= passes; i++ {
		s.pass(i)
	}
	s.send()
	d := projector.At(b.TempDir())
	project(b, d, s, batch(s.lines, 1, len(s.lines)))
	message := func() projector.Batch {
		s.add(run.KindBudgetRaised, run.BudgetEvent{Budget: run.Budget{CapUSD: 3000}, By: "somebody"})
		s.send()
		return s.batches[len(s.batches)-1]
	}
	var files, folders int
	counting := d
	counting.Disk = durable.Disk{Hook: func(st durable.Step) error {
		switch st.Op {
		case durable.OpSync:
			files++
		case durable.OpSyncFolder:
			folders++
		}
		return nil
	}}
	project(b, counting, s, message())
	b.Run("project", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			m := message()
			b.StartTimer()
			project(b, d, s, m)
		}
		b.ReportMetric(float64(files), "file-fsyncs/op")
		b.ReportMetric(float64(folders), "folder-fsyncs/op")
	})
	b.Run("its fsyncs alone", func(b *testing.B) { fsyncs(b, b.TempDir(), files, folders) })
}

// fsyncs writes and syncs small files, and syncs their folder, as often as it is told.
func fsyncs(b *testing.B, dir string, files, folders int) {
	folder, err := os.Open(dir)
	require.NoError(b, err)
	defer folder.Close()
	data := make([]byte, 8<<10)
	n := 0
	for b.Loop() {
		for range files {
			n++
			f, err := os.Create(filepath.Join(dir, fmt.Sprint(n%64)))
			require.NoError(b, err)
			_, err = f.Write(data)
			require.NoError(b, err)
			require.NoError(b, f.Sync())
			require.NoError(b, f.Close())
		}
		for range folders {
			require.NoError(b, os.Rename(filepath.Join(dir, fmt.Sprint(n%64)), filepath.Join(dir, "now")))
			require.NoError(b, folder.Sync())
			require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprint(n%64)), nil, 0o600))
		}
	}
}

// working is the journal of a run of passes with n events, in a directory that has nothing else but its claim.
func working(b *testing.B, n int) projector.Dir {
	b.Helper()
	s := newStory(b)
	s.start()
	for i := 1; len(s.lines) < n; i++ {
		s.blobs = fakeBlobs{} // only their names count
		p := about(i)
		p.Step, p.Dir = fmt.Sprintf("%03d", (i-1)%800+1), fmt.Sprintf("passes/pass-%05d", i)
		begin := func(attempt int) {
			s.add(run.KindPassStart, run.PassStart{Pass: p, Agent: "agent", Call: s.call(p, attempt), Attempt: attempt,
				Attempts: 3, Prompt: s.prompt(p), Before: s.state.Artifact.Digest})
		}
		begin(1)
		if i%5 == 0 {
			s.fail(p, 1)
			begin(2)
		}
		s.end(p, "ok", 1+i%5/4)
		s.add(run.KindScoreRecorded, run.ScoreRecorded{Name: "score", Step: p.Step, Round: i, Auditors: 3})
		if i%8 == 0 {
			s.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: fmt.Sprintf("cp-S%d", i/8), AtPass: i})
		}
	}
	d := projector.At(filepath.Join(b.TempDir(), "run"))
	require.NoError(b, d.Take(claim()))
	require.NoError(b, os.WriteFile(d.Path(layout.EventsFile), []byte(strings.Join(s.lines[:n], "\n")+"\n"), 0o600))
	return d
}

// BenchmarkReading compares reading and folding events in the programs with json.Valid over the same lines.
func BenchmarkReading(b *testing.B) {
	d := working(b, 100_000)
	raw, err := os.ReadFile(d.Path(layout.EventsFile))
	require.NoError(b, err)
	for name, read := range map[string]func() error{
		"check":                func() error { return fsck.ReadAndFold(b.Context(), d, false) },
		"check and list files": func() error { return fsck.ReadAndFold(b.Context(), d, true) },
		"report": func() error {
			_, err := evidence.Read(d.Dir)
			return err
		},
		"watch": func() error {
			fold := d.Fold()
			for line, err := range d.Lines(0) {
				if err != nil {
					return err
				}
				fold.Apply(line.Event)
				run.Headline(run.Entry{Event: line.Event, After: fold.Current()})
			}
			return nil
		},
		"rebuild": func() error { // which folds as check does
			_, err := d.Open(b.Context(), nil)
			return err
		},
		"status": func() error {
			_, err := d.Now()
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			var reading, valid time.Duration
			for b.Loop() {
				reading += used(b, func() { require.NoError(b, read()) })
				valid += used(b, func() {
					for line := range bytes.Lines(raw) {
						require.True(b, json.Valid(line))
					}
				})
			}
			b.ReportMetric(float64(reading)/float64(valid), "of-json.Valid")
		})
	}
}

// used is the time of the CPU that f takes: other programs make no difference to it.
func used(b *testing.B, f func()) time.Duration {
	total := func() time.Duration {
		var u syscall.Rusage
		require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := total()
	f()
	return total() - before
}

// foreign is a directory of another program with 100,000 events.
func foreign(b *testing.B) projector.Dir {
	d := projector.At(b.TempDir())
	var lines strings.Builder
	text := strings.Repeat("The change is limited to the planned files. ", 6)
	for seq := 1; seq <= 100_000; seq++ {
		kind, payload := "phase.start", `{"phase_key": "plan", "round": 1, "title": "PLAN", "attempt": 1}`
		switch {
		case seq == 1:
			kind, payload = "run.start", `{"task": "Add a check", "run_kind": "single_project", "profile": "feature"}`
		case seq%4 == 1:
			kind, payload = "subtask.receipt", fmt.Sprintf(`{"id": "fix-%d", "files": ["a.go"], "summary": %q}`, seq, text)
		case seq%4 == 2:
			kind, payload = "artifact.created", fmt.Sprintf(`{"phase_key": "plan", "name": "plan", "summary": %q}`, text)
		case seq%4 == 3:
			kind, payload = "phase.end", fmt.Sprintf(`{"phase_key": "plan", "outcome": "ok", "summary": %q}`, text)
		}
		fmt.Fprintf(&lines, `{"seq": %d, "ts": "2026-11-20T10:35:08.117", "kind": %q, "phase": "PLAN", "payload": %s}`+"\n",
			seq, kind, payload)
	}
	require.NoError(b, os.WriteFile(d.Path(layout.EventsFile), []byte(lines.String()), 0o600))
	return d
}

// BenchmarkForeign is what `status` reads of a directory of another program: every line of events.jsonl.
func BenchmarkForeign(b *testing.B) {
	d := foreign(b)
	fi, err := os.Stat(d.Path(layout.EventsFile))
	require.NoError(b, err)
	b.SetBytes(fi.Size())
	for b.Loop() {
		now, err := d.Now()
		require.NoError(b, err)
		require.EqualValues(b, 100_000, now.Tail.Seq)
		require.Equal(b, run.Running, now.State.Status)
	}
}
