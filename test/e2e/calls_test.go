package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
)

// callLine is one line of the agent's own call log: it counts what was really asked, outside every run directory.
type callLine struct {
	Event string `json:"event"` // start, answered
	At    string `json:"at"`
	PID   int    `json:"pid"`
	Dir   string `json:"dir"` // its working directory
}

// calls reads the call log.
func (h *environment) calls() []callLine {
	out, err := readCalls(h.log)
	require.NoError(h.t, err)
	return out
}

// readCalls reads the complete lines of a call log; a missing one is empty. Its last line may be in the middle of being
// written.
func readCalls(log string) ([]callLine, error) {
	raw, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var out []callLine
	for line := range bytes.Lines(raw) {
		var c callLine
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("call log: %w: %s", err, line)
		}
		out = append(out, c)
	}
	return out, nil
}

// count returns how often a call was started or answered; at "" is any.
func (h *environment) count(event, at string) int {
	n := 0
	for _, c := range h.calls() {
		if c.Event == event && (at == "" || c.At == at) {
			n++
		}
	}
	return n
}

// mid waits until a call runs, and returns its process.
func (h *environment) mid(at string) process.Identity {
	h.t.Helper()
	var id process.Identity
	until(h.t, "call "+at+" runs", func() bool {
		for _, c := range h.calls() {
			if found, alive := agentOf(c); c.At == at && c.Event == "start" && alive {
				id = found
			}
		}
		return id.PID != 0 && h.count("start", at) > h.count("answered", at)
	})
	return id
}

// oncePerAnswer requires every call to be answered exactly once, and repeated at most once for each kill.
func (h *environment) oncePerAnswer(calls, kills int) {
	h.t.Helper()
	starts, answers := counts(h.calls())
	require.Len(h.t, answers, calls)
	again := 0
	for at, n := range starts {
		require.Equal(h.t, 1, answers[at], "call %s was answered %d times, started %d times", at, answers[at], n)
		again += n - 1
	}
	require.LessOrEqual(h.t, again, kills*3, "calls that were started again (three run at a time at most)")
	for at, n := range starts {
		require.LessOrEqual(h.t, n, 1+kills, "call %s", at)
	}
}

// noAgents checks that no agent of the environment is alive.
func (h *environment) noAgents() {
	h.t.Helper()
	require.NoError(h.t, processes(instant{Calls: h.calls()}, nil))
}

// endAgents requires that no agent is alive, and ends those that are. The kernel signals an agent when its supervisor
// dies; the agent may end some time later.
func endAgents(t *testing.T, calls []callLine) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, c := range calls {
		id, alive := agentOf(c)
		if !alive || id.AwaitEnd(ctx) == nil {
			continue
		}
		t.Errorf("an agent outlived its supervisor: %s, pid %d", c.At, c.PID)
		_ = id.KillGroup() // best effort: the test has failed already
	}
}

// agentOf finds the process of a call, if its number still belongs to an agent in the call's directory.
func agentOf(c callLine) (process.Identity, bool) {
	dir, err := os.Readlink("/proc/" + strconv.Itoa(c.PID) + "/cwd")
	if err != nil || strings.TrimSuffix(dir, " (deleted)") != c.Dir {
		return process.Identity{}, false
	}
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(c.PID) + "/cmdline")
	if err != nil || !bytes.Contains(raw, []byte("agent")) {
		return process.Identity{}, false
	}
	id, err := process.Of(c.PID)
	return id, err == nil && id.Alive()
}
