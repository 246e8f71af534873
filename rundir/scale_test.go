package rundir_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

var scale = flag.String("scale.passes", "", "numbers of passes for TestScale, such as 56,1000,10000")

// TestScale prints what it costs to write, export and check directories of some sizes. Every eighth pass has a
// checkpoint, in longer runs 125 of them.
func TestScale(t *testing.T) {
	if *scale == "" {
		t.Skip("directories are measured with -scale.passes only")
	}
	for _, text := range strings.Split(*scale, ",") {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		s := newStory(t)
		s.start()
		for i := range n {
			s.begin(about(i+1), 1)
			if s.end(about(i+1), "ok", 1); (i+1)%max(8, n/125) == 0 {
				s.checkpoint(fmt.Sprintf("cp-S%d", i+1), i+1)
			}
		}
		s.finish(run.Done)
		d, again := rundir.At(filepath.Join(t.TempDir(), "run")), rundir.At(filepath.Join(t.TempDir(), "again"))
		d.Folds = &rundir.Folds{}
		claim := run.Claim{Version: run.ClaimVersion, RunID: "run-1", ThreadID: "thread-1"}
		require.NoError(t, d.Take(claim))
		report := func(what string, times time.Duration, f func()) {
			began, cpu := time.Now(), cpuTime()
			f()
			cpu, wall := cpuTime()-cpu, time.Since(began)
			t.Logf("%6d passes, %6d events: %-18s %v CPU, %v", n, len(s.lines), what, cpu/times, wall/times)
		}
		most := len(s.batches) - min(100, len(s.batches)/2)
		_, err = d.Rebuild(t.Context(), s.blobs, rundir.Source{Claim: claim, Batches: s.batches[:most]})
		require.NoError(t, err)
		report("one batch", time.Duration(len(s.batches)-most), func() {
			for _, b := range s.batches[most:] {
				p, err := d.Project(t.Context(), s.blobs, b)
				require.NoError(t, err)
				require.Equal(t, run.ProjectionWritten, p.Outcome)
			}
		})
		report("the whole export", 1, func() {
			_, err := again.Rebuild(t.Context(), s.blobs, rundir.Source{Claim: claim, Batches: s.batches})
			require.NoError(t, err)
		})
		report("check", 1, func() {
			r, err := rundir.Check(t.Context(), again, rundir.CheckOptions{})
			require.NoError(t, err)
			require.True(t, r.OK, fmt.Sprint(r.Issues))
		})
		for _, name := range []string{rundir.MetaFile, rundir.StateFile} {
			a, err := os.ReadFile(d.Path(name))
			require.NoError(t, err)
			b, err := os.ReadFile(again.Path(name))
			require.NoError(t, err)
			require.Equal(t, string(a), string(b))
		}
	}
}

// cpuTime is the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
