package durable_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/durable"
)

// TestMain lets a test start this binary as another process that holds a lock.
func TestMain(m *testing.M) {
	if path := os.Getenv("DURABLE_TEST_HOLD"); path != "" {
		hold(path)
	}
	os.Exit(m.Run())
}

// hold takes the lock, says so, and keeps it until it is killed.
func hold(path string) {
	if _, err := durable.TryLock(path, durable.Self("the other process", time.Now())); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("held\n")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
}

func TestALockNamesItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l, err := durable.TryLock(path, durable.Self("project r-1", now))
	require.NoError(t, err)

	_, err = durable.TryLock(path, durable.Self("second", now))
	held := (*durable.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)
	require.Equal(t, durable.Self("project r-1", now), held.Owner)
	require.ErrorContains(t, err, "project r-1 (pid ")
	require.ErrorContains(t, err, "since 2026-01-02T03:04:05Z")

	require.NoError(t, l.Unlock())
	require.Zero(t, durable.ReadOwner(path))
	l, err = durable.TryLock(path, durable.Self("third", now))
	require.NoError(t, err)
	require.NoError(t, l.Unlock())
}

func TestADeadProcessHoldsNoLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	other := startHolder(t, path)
	_, err := durable.TryLock(path, durable.Self("me", time.Now()))
	held := (*durable.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)
	require.Equal(t, other.Process.Pid, held.Owner.PID)

	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	require.Equal(t, "the other process", durable.ReadOwner(path).What, "the record of the dead stays until somebody takes over")
	l, err := durable.TryLock(path, durable.Self("me", time.Now()))
	require.NoError(t, err)
	require.Equal(t, "me", durable.ReadOwner(path).What)
	require.NoError(t, l.Unlock())
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
	first, err := durable.TryLock(path, durable.Self("first", time.Now()))
	require.NoError(t, err)

	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = durable.WaitLock(short, path, durable.Self("second", time.Now()))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	held := (*durable.ErrHeld)(nil)
	require.ErrorAs(t, err, &held)

	got := make(chan error, 1)
	go func() {
		l, err := durable.WaitLock(t.Context(), path, durable.Self("second", time.Now()))
		if err == nil {
			err = l.Unlock()
		}
		got <- err
	}()
	require.NoError(t, first.Unlock())
	require.NoError(t, <-got)
}
