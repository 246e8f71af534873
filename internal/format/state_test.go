package format_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/format"
	"github.com/passbook-run/passbook/rundir"
)

var errStop = errors.New("stop")

func idle() error { return nil }

// adds is a step that appends a text to the file "value", unless it has done so.
func adds(text string) format.Step {
	return func(dir string) error {
		path := filepath.Join(dir, "value")
		had, err := os.ReadFile(path)
		if err != nil || len(had) > 0 && string(had[len(had)-1:]) == text {
			return err
		}
		return disk.Disk{}.WriteFile(path, append(had, text...), 0o600)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(raw)
	}
	return out
}

// old is a state directory of version 1 that an earlier build wrote, without a version.
func old(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "value"), []byte("a"), 0o600))
	return dir
}

func versionOf(t *testing.T, dir string) int {
	t.Helper()
	m, err := format.ReadState(dir)
	require.NoError(t, err)
	return m.Version
}

func TestOpenRecordsTheVersionOfANewDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	two := format.Of(disk.Disk{}, adds("b"))
	require.NoError(t, two.Open(t.Context(), dir, idle))
	require.Equal(t, 2, versionOf(t, dir), "there is nothing to upgrade")
	require.NoFileExists(t, filepath.Join(dir, "value"))
	before := contents(t, dir)
	require.NoError(t, two.Open(t.Context(), dir, idle))
	require.Equal(t, before, contents(t, dir))
}

func TestDirectoryWithoutVersionIsVersion1(t *testing.T) {
	dir := old(t)
	require.NoError(t, format.State().Open(t.Context(), dir, idle))
	require.Equal(t, 1, versionOf(t, dir))
	require.Equal(t, "a", contents(t, dir)["value"])
}

func TestOpenUpgradesInPlace(t *testing.T) {
	for _, marked := range []bool{false, true} {
		dir := old(t)
		if marked {
			require.NoError(t, format.State().Open(t.Context(), dir, idle))
		}
		require.NoError(t, format.Of(disk.Disk{}, adds("b"), adds("c")).Open(t.Context(), dir, idle))
		require.Equal(t, 3, versionOf(t, dir))
		require.Equal(t, "abc", contents(t, dir)["value"])
	}
}

// TestUpgradeContinuesAfterACrash stops an upgrade at each step of the disk. The next one completes it.
func TestUpgradeContinuesAfterACrash(t *testing.T) {
	steps := []format.Step{adds("b"), adds("c")}
	for k := 0; ; k++ {
		dir, n := old(t), 0
		d := disk.Disk{Hook: func(disk.Step) error {
			if n++; n > k {
				return errStop
			}
			return nil
		}}
		err := format.Of(d, steps...).Open(t.Context(), dir, idle)
		require.NoError(t, format.Of(disk.Disk{}, steps...).Open(t.Context(), dir, idle), "after step %d", k)
		require.Equal(t, 3, versionOf(t, dir))
		require.Equal(t, "abc", contents(t, dir)["value"], "after step %d", k)
		if err == nil {
			require.Greater(t, k, 3, "the disk has steps")
			return
		}
		require.ErrorIs(t, err, errStop)
	}
}

func TestConcurrentUpgradesAreOne(t *testing.T) {
	dir := old(t)
	var count int
	step := func(string) error { count++; return nil }
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = format.Of(disk.Disk{}, step).Open(t.Context(), dir, idle) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, 1, count)
}

// TestDirectoryInUseIsNotUpgraded keeps a directory as it is while a process of an earlier release writes to it.
func TestDirectoryInUseIsNotUpgraded(t *testing.T) {
	dir := old(t)
	busy := func() error { return errors.New("worker 7 runs") }
	require.NoError(t, format.State().Open(t.Context(), dir, busy), "no upgrade is needed")
	two := format.Of(disk.Disk{}, adds("b"))
	err := two.Open(t.Context(), dir, busy)
	require.EqualError(t, err, "upgrade state directory "+dir+" to version 2: worker 7 runs; nothing was changed")
	require.Equal(t, 1, versionOf(t, dir))
	require.Equal(t, "a", contents(t, dir)["value"])
	require.NoError(t, two.Check(dir), "the program that stops worker 7 may run")
}

func TestNewerDirectoryIsRefused(t *testing.T) {
	for _, text := range []string{
		`{"version": 2, "program": "v9.1.0"}`, `{"version": 2, "program": "v9.1.0", "by": {"name": 1}}`,
	} {
		dir := old(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, format.StateFile), []byte(text), 0o600))
		before := contents(t, dir)
		for _, err := range []error{format.State().Open(t.Context(), dir, idle), format.State().Check(dir)} {
			var newer *rundir.NewerError
			require.ErrorAs(t, err, &newer)
			require.EqualError(t, err, "open state directory "+dir+": format.json has version 2, and this program (devel) "+
				"reads 1; nothing was changed. Use Passbook v9.1.0 or a newer one, or set PASSBOOK_STATE_DIR to "+
				"another directory")
		}
		require.Equal(t, before, contents(t, dir))
	}
}

func TestMarkWithoutVersionIsAnError(t *testing.T) {
	dir := old(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, format.StateFile), []byte(`{"vers`), 0o600))
	require.ErrorContains(t, format.State().Open(t.Context(), dir, idle), "format.json has no version; restore the file")
}
