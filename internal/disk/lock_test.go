package disk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

// TestMain lets a test start this binary as another process that holds a lock.
func TestMain(m *testing.M) {
	if path := os.Getenv("DURABLE_TEST_HOLD"); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

// hold acquires the lock, prints a line, and holds it until the process is killed.
func hold(path string) {
	if _, err := (disk.Disk{}).TryLock(path, disk.Self("the other process", time.Now())); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

// requireHeld asks whether a lock is held: that acquires, makes and changes nothing.
func requireHeld(t *testing.T, path string, want bool) {
	t.Helper()
	before := look(t, filepath.Dir(path))
	held, err := disk.Folder{Root: filepath.Dir(path)}.Held(filepath.Base(path))
	require.NoError(t, err)
	require.Equal(t, want, held)
	require.Equal(t, before, look(t, filepath.Dir(path)))
}

func TestLockRecordsItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	requireHeld(t, path, false)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, err := (disk.Disk{}).TryLock(path, disk.Self("project r-1", now))
	require.NoError(t, err)
	requireHeld(t, path, true)

	_, err = (disk.Disk{}).TryLock(path, disk.Self("second", now))
	held := (*disk.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)
	require.Equal(t, disk.Self("project r-1", now), held.Owner)
	require.ErrorContains(t, err, "project r-1 (pid ")
	require.ErrorContains(t, err, "since 2026-01-02T03:04:05Z")

	require.NoError(t, l.Unlock())
	require.Zero(t, recorded(t, path))
	requireHeld(t, path, false)
	l, err = (disk.Disk{}).TryLock(path, disk.Self("third", now))
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}

func TestDeadProcessHoldsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := startHolder(t, path)
	_, err := (disk.Disk{}).TryLock(path, disk.Self("me", time.Now()))
	held := (*disk.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)
	require.Equal(t, other.Process.Pid, held.Owner.PID)

	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	require.Equal(t, "the other process", recorded(t, path).What,
		"the record stays until the next process acquires the lock")
	l, err := (disk.Disk{}).TryLock(path, disk.Self("me", time.Now()))
	require.NoError(t, err)
	require.Equal(t, "me", recorded(t, path).What)
	require.NoError(t, l.Unlock())
}

// recorded returns the owner that a lock file names.
func recorded(t *testing.T, path string) (o disk.Owner) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	if len(raw) > 0 {
		require.NoError(t, json.Unmarshal(raw, &o))
	}
	return o
}

// TestLockDoesNotDependOnItsRecord: a free lock can be acquired if its record names another boot, another host, or the
// number of another process; and one that a live process holds cannot, although its record was lost or is of a process
// that has ended.
func TestLockDoesNotDependOnItsRecord(t *testing.T) {
	me := disk.Self("me", time.Now())
	otherBoot, otherHost, stranger, dead := me, me, me, me
	otherBoot.Boot, otherHost.Host, stranger.PID, dead.PID = "another boot", "another host", 1, 1<<22
	for name, record := range map[string]any{"another boot": otherBoot, "another host": otherHost,
		"another process": stranger, "a dead process": dead, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			raw, err := json.Marshal(record)
			require.NoError(t, err)
			path := filepath.Join(t.TempDir(), "free")
			require.NoError(t, os.WriteFile(path, raw, 0o600))
			l, err := (disk.Disk{}).TryLock(path, me)
			require.NoError(t, err)
			require.NoError(t, l.Unlock())

			path = filepath.Join(t.TempDir(), "held")
			startHolder(t, path)
			require.NoError(t, os.WriteFile(path, raw, 0o600))
			_, err = (disk.Disk{}).TryLock(path, me)
			held := (*disk.ErrHeld)(nil)
			require.ErrorAs(t, err, &held)
			requireHeld(t, path, true)
		})
	}
}

func startHolder(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "DURABLE_TEST_HOLD="+path)
	_, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "held\n", line)
	return cmd
}

func TestWaitLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := (disk.Disk{}).TryLock(path, disk.Self("first", time.Now()))
	require.NoError(t, err)

	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = (disk.Disk{}).WaitLock(short, path, disk.Self("second", time.Now()))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	held := (*disk.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)

	got := make(chan error, 1)
	go func() {
		l, err := (disk.Disk{}).WaitLock(t.Context(), path, disk.Self("second", time.Now()))
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	require.NoError(t, first.Unlock())
	require.NoError(t, <-got)
}

// TestRemovedLockIsFree: a waiter that has opened the file of a removed lock does not hold that, but takes a new one.
func TestRemovedLockIsFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := (disk.Disk{}).TryLock(path, disk.Self("first", time.Now()))
	require.NoError(t, err)
	require.NoError(t, first.Remove())
	require.NoFileExists(t, path)

	var holders, most atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				l, err := (disk.Disk{}).TryLock(path, disk.Self("one of many", time.Now()))
				if err != nil {
					continue
				}
				if n := holders.Add(1); n > most.Load() {
					most.Store(n)
				}
				runtime.Gosched()
				holders.Add(-1)
				assert.NoError(t, l.Remove())
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, most.Load(), "two held a lock of one name")
}
