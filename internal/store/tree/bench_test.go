package tree_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

const (
	benchFolders = 100
	benchFiles   = 100 // in each
	benchSize    = 4 << 10
	benchChanged = 20 // a turn
	copyEvery    = 20 // turns
)

// BenchmarkTurns: after each turn the tree is saved, and its manifest made from
// the store and written to the run directory. Every twentieth turn the folder is also copied whole, with
// as many files at once, each file synced and each folder once.
func BenchmarkTurns(b *testing.B) {
	var bytes, syncs atomic.Int64
	disk := durable.Disk{Hook: func(s durable.Step) error {
		bytes.Add(int64(len(s.Data)))
		if s.Op == durable.OpSync || s.Op == durable.OpSyncFolder {
			syncs.Add(1)
		}
		return nil
	}}
	s, err := store.OpenOn(b.Context(), disk, "file://"+b.TempDir())
	require.NoError(b, err)
	work, rundir, r := b.TempDir(), b.TempDir(), rand.New(rand.NewPCG(1, 2))
	for n := range benchFolders * benchFiles {
		fill(b, r, work, n)
	}
	count := func(do func()) cost {
		bytes.Store(0)
		syncs.Store(0)
		begin, cpu := time.Now(), cpuTime(b)
		do()
		return cost{
			ms: millis(time.Since(begin)), cpu: millis(cpuTime(b) - cpu), bytes: float64(bytes.Load()),
			syncs: float64(syncs.Load()),
		}
	}
	var last tree.Saved
	snapshot := func() {
		var err error
		last, err = tree.Save(b.Context(), s, work, tree.Rules{}, last.Cache)
		require.NoError(b, err)
		stored, err := tree.Load(b.Context(), s, last.Digest)
		require.NoError(b, err)
		require.NoError(b, disk.WriteFile(filepath.Join(rundir, "manifest.json"), stored.Manifest(), 0o644))
	}
	b.ReportMetric(count(snapshot).ms, "ms-first")
	var turns, copies []cost
	for b.Loop() {
		b.StopTimer()
		for range benchChanged {
			fill(b, r, work, r.IntN(benchFolders*benchFiles))
		}
		if len(turns)%copyEvery == 0 {
			copies = append(copies, count(func() { fullCopy(b, disk, work) }))
		}
		b.StartTimer()
		turns = append(turns, count(snapshot))
	}
	part := (len(turns) + 4) / 5
	all, early, late, whole := medians(turns), medians(turns[:part]), medians(turns[len(turns)-part:]), medians(copies)
	for unit, n := range map[string]float64{
		"ms/turn": all.ms, "B/turn": all.bytes, "syncs/turn": all.syncs, "ms/copy": whole.ms, "B/copy": whole.bytes,
		"syncs/copy": whole.syncs,
		"x-time":     whole.ms / all.ms, "x-bytes": whole.bytes / all.bytes,
		"ms/turn-first-fifth": early.ms, "ms/turn-last-fifth": late.ms, "cpu-ms/turn-first-fifth": early.cpu,
		"cpu-ms/turn-last-fifth": late.cpu,
	} {
		b.ReportMetric(n, unit)
	}
}

// cost is what one snapshot or copy took.
type cost struct{ ms, cpu, bytes, syncs float64 }

func medians(all []cost) cost {
	of := func(what func(cost) float64) float64 {
		var values []float64
		for _, c := range all {
			values = append(values, what(c))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return cost{
		ms: of(func(c cost) float64 { return c.ms }), cpu: of(func(c cost) float64 { return c.cpu }),
		bytes: of(func(c cost) float64 { return c.bytes }), syncs: of(func(c cost) float64 { return c.syncs }),
	}
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// cpuTime is what this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fill gives a file of the work new content.
func fill(b *testing.B, r *rand.Rand, dir string, n int) {
	b.Helper()
	data := make([]byte, benchSize)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	dir = filepath.Join(dir, fmt.Sprintf("folder-%02d", n/benchFiles))
	require.NoError(b, os.MkdirAll(dir, 0o755))
	require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file-%02d.txt", n%benchFiles)), data, 0o644))
}

// fullCopy copies the folder into one of its own.
func fullCopy(b *testing.B, disk durable.Disk, from string) {
	b.Helper()
	to, names := b.TempDir(), disk.Names()
	all := errgroup.Group{}
	all.SetLimit(8)
	for n := range benchFolders * benchFiles {
		name := filepath.Join(fmt.Sprintf("folder-%02d", n/benchFiles), fmt.Sprintf("file-%02d.txt", n%benchFiles))
		if n%benchFiles == 0 {
			require.NoError(b, disk.Mkdir(filepath.Join(to, filepath.Dir(name)), 0o755))
		}
		all.Go(func() error { return copyFile(disk, names, filepath.Join(from, name), filepath.Join(to, name)) })
	}
	require.NoError(b, all.Wait())
	require.NoError(b, names.Sync())
}

func copyFile(disk durable.Disk, names *durable.Names, from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	p, err := disk.Create(to, 0o644)
	if err != nil {
		return err
	}
	defer p.Discard()
	if _, err := io.Copy(p, in); err != nil {
		return err
	}
	return names.Commit(p)
}

// BenchmarkCheckout lays the tree of [BenchmarkTurns] down in an empty folder.
func BenchmarkCheckout(b *testing.B) {
	s, err := store.Open(b.Context(), "file://"+b.TempDir())
	require.NoError(b, err)
	work, r := b.TempDir(), rand.New(rand.NewPCG(1, 2))
	for n := range benchFolders * benchFiles {
		fill(b, r, work, n)
	}
	saved, err := tree.Save(b.Context(), s, work, tree.Rules{}, nil)
	require.NoError(b, err)
	for b.Loop() {
		_, err := tree.Checkout(b.Context(), s, saved.Digest, b.TempDir(), tree.Rules{})
		require.NoError(b, err)
	}
}
