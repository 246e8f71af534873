package tree_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
)

const (
	benchFolders = 100
	benchFiles   = 100 // in each
	benchSize    = 4 << 10
	benchChanged = 20 // a turn
	copyEvery    = 20 // turns
)

// BenchmarkTurns: after each turn the tree is saved and its manifest written to
// the run directory. Every twentieth turn the folder is also copied whole, with
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
	count := func(do func()) (ms, wrote, synced float64) {
		bytes.Store(0)
		syncs.Store(0)
		begin := time.Now()
		do()
		return float64(time.Since(begin).Microseconds()) / 1000, float64(bytes.Load()), float64(syncs.Load())
	}
	var last tree.Saved
	snapshot := func() {
		var err error
		last, err = tree.Save(b.Context(), s, work, tree.Rules{}, last.Cache)
		require.NoError(b, err)
		require.NoError(b, disk.WriteFile(filepath.Join(rundir, "manifest.json"), last.Tree.Manifest(), 0o644))
	}
	first, _, _ := count(snapshot)
	var turn, wrote, synced, copied, copyWrote, copySynced []float64
	for b.Loop() {
		b.StopTimer()
		for range benchChanged {
			fill(b, r, work, r.IntN(benchFolders*benchFiles))
		}
		if len(turn)%copyEvery == 0 {
			ms, n, k := count(func() { fullCopy(b, disk, work) })
			copied, copyWrote, copySynced = append(copied, ms), append(copyWrote, n), append(copySynced, k)
		}
		b.StartTimer()
		ms, n, k := count(snapshot)
		turn, wrote, synced = append(turn, ms), append(wrote, n), append(synced, k)
	}
	part := (len(turn) + 4) / 5
	b.ReportMetric(first, "ms-first")
	b.ReportMetric(median(turn), "ms/turn")
	b.ReportMetric(median(turn[:part]), "ms/turn-first-fifth")
	b.ReportMetric(median(turn[len(turn)-part:]), "ms/turn-last-fifth")
	b.ReportMetric(median(wrote), "B/turn")
	b.ReportMetric(median(synced), "syncs/turn")
	b.ReportMetric(median(copied), "ms/copy")
	b.ReportMetric(median(copyWrote), "B/copy")
	b.ReportMetric(median(copySynced), "syncs/copy")
	b.ReportMetric(median(copied)/median(turn), "x-time")
	b.ReportMetric(median(copyWrote)/median(wrote), "x-bytes")
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
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
