package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/run"
)

// TestCost prints the median CPU of Restore and Save with 20 changed files. PASSBOOK_TEST_COST is the number of files.
func TestCost(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("PASSBOOK_TEST_COST"))
	if n == 0 {
		t.Skip("PASSBOOK_TEST_COST is not set")
	}
	s, ctx := open(t), t.Context()
	w, err := workspace.In(t.TempDir()).Lock(ctx, filepath.Join(t.TempDir(), "w"))
	require.NoError(t, err)
	for i := range n {
		write(t, w.Dir, map[string]string{fmt.Sprintf("d%d/e%d/f%d.txt", i%50, i%7, i): fmt.Sprint("content ", i)})
	}
	first, err := w.Save(ctx, s, tree.Rules{Portable: true})
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond) // the files are older than a tick of the clock
	of := run.Workspace{Tree: workspace.Blob(first)}
	var restores, saves []time.Duration
	for round := range 5 {
		for i := range 20 {
			name := fmt.Sprintf("d%d/e%d/f%d.txt", i%50, i%7, i)
			require.NoError(t, os.WriteFile(filepath.Join(w.Dir, name), fmt.Append(nil, "changed ", round, i), 0o600))
		}
		saves = append(saves, cpu(func() { _, err = w.Save(ctx, s, tree.Rules{Portable: true}) }))
		require.NoError(t, err)
		restores = append(restores, cpu(func() { err = w.Restore(ctx, s, of.Tree, tree.Rules{Portable: true}, nil) }))
		require.NoError(t, err)
	}
	slices.Sort(saves)
	slices.Sort(restores)
	t.Logf("%d files, 20 changed, CPU: Save %s, Restore %s", n, saves[2], restores[2])
}

// cpu is the CPU time of this process in f.
func cpu(f func()) time.Duration {
	at := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := at()
	f()
	return at() - before
}
