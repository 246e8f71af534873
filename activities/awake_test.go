package activities

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/awake"
)

// inhibitor puts a script in place of this system's inhibitor; count returns how often it has logged a word.
func (h *harness) inhibitor() (count func(word string) int) {
	h.t.Helper()
	if awake.Program() == "" {
		h.t.Skip("this system has no inhibitor")
	}
	bin, log := h.t.TempDir(), filepath.Join(h.dir, "inhibitor.log")
	script := "#!/bin/sh\nfor last; do :; done\necho started >>'" + log + "'\n\"$last\"\necho ended >>'" + log + "'\n"
	require.NoError(h.t, os.WriteFile(filepath.Join(bin, awake.Program()), []byte(script), 0o700))
	h.t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	h.acts.cfg.KeepAwake = awake.New(func(err error) { h.t.Error(err) }, time.Millisecond).Hold
	return func(word string) int {
		raw, err := os.ReadFile(log)
		if err != nil {
			return 0
		}
		return strings.Count(string(raw), word)
	}
}

func TestParallelCallsKeepMachineAwake(t *testing.T) {
	h := newHarness(t, "wait")
	count := h.inhibitor()
	other := *h
	other.in.Call = "run-1/g0.003.1.-.1"
	first, second := h.begin(t.Context(), h.acts), other.begin(t.Context(), h.acts)
	h.awaitStart(2)
	require.Eventually(t, func() bool { return count("started") == 1 }, 20*time.Second, 5*time.Millisecond)
	require.Zero(t, count("ended"))
	h.letGo()
	require.NoError(t, (<-first).err)
	require.NoError(t, (<-second).err)
	require.Eventually(t, func() bool { return count("ended") == 1 }, 20*time.Second, 5*time.Millisecond)
	require.Equal(t, 1, count("started"))
}

// A worker that hands its calls over has released its hold; their supervisors have not.
func TestCallWithoutWorkerKeepsMachineAwake(t *testing.T) {
	h := newHarness(t, "wait")
	count := h.inhibitor()
	done := h.begin(context.Background(), h.acts)
	h.awaitStart(1)
	h.acts.HandOver()
	require.NoError(t, (<-done).err)
	require.Eventually(t, func() bool { return !h.acts.isRunning(callID(h.in)) && count("started") == 1 }, 20*time.Second,
		5*time.Millisecond)
	require.Zero(t, count("ended"))
	h.letGo()
	require.Eventually(t, func() bool { return count("ended") == 1 }, 20*time.Second, 5*time.Millisecond)
}
