package rundir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// BenchmarkNow is what `status` reads of a run of that many events: meta.json and the lines behind it, whatever the length of the run.
func BenchmarkNow(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("%d events", n), func(b *testing.B) {
			d := busy(b, n)
			size, err := os.Stat(d.Path(rundir.EventsFile))
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
func busy(b *testing.B, n int) rundir.Dir {
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
			s.add(run.KindDecisionRefused, run.DecisionRefused{Verb: "resume", Reason: "the run is running: only a paused run can be resumed", By: "somebody"})
		default:
			s.add(run.KindBudgetRaised, run.BudgetEvent{Budget: run.Budget{CapUSD: float64(2000 + i), WarnUSD: 900}, TotalUSD: s.state.Total(), By: "somebody"})
		}
	}
	d := rundir.At(filepath.Join(b.TempDir(), "run"))
	const piece = 1000
	for first := 1; first <= n-lagging; first += piece {
		project(b, d, s, batch(s.lines, first, min(first+piece-1, n-lagging)))
	}
	f, err := os.OpenFile(d.Path(rundir.EventsFile), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(b, err)
	for _, line := range s.lines[n-lagging : n] {
		_, err = f.WriteString(line + "\n")
		require.NoError(b, err)
	}
	require.NoError(b, f.Close())
	return d
}

// BenchmarkAppendAndSnapshot holds one batch without evidence, a message that was noted down, against the fsyncs that it needs: the same number of
// them, of as many bytes, on files of the same kind in the same folder.
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
	d := rundir.At(b.TempDir())
	project(b, d, s, batch(s.lines, 1, len(s.lines)))
	message := func() rundir.Batch {
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
