package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
)

// slow lets a call take some seconds, the first time that it is made.
func slow(at, seconds string) string {
	return "- {at: " + at + ", do: slow, seconds: " + seconds + "}\n"
}

// held returns a fault of a call that answers when release is called.
func (h *environment) held(at string) (fault string, release func()) {
	file := h.dir("release-" + at)
	return "- {at: " + at + ", do: slow, seconds: 600, until: " + strconv.Quote(file) + "}\n",
		func() { require.NoError(h.t, os.WriteFile(file, nil, 0o600)) }
}

// begin starts the small pipeline without attaching.
func (h *environment) begin(dir string) {
	h.t.Helper()
	h.starter("run", "--config", tiny(), "--output-dir", dir, "--detach")
}

// finish attaches to the run until its end.
func (h *environment) finish(dir string) string {
	h.t.Helper()
	return h.starter("run", "--config", tiny(), "--output-dir", dir)
}

// undisturbed requires the result of a run without any disturbance: the same page, every call answered once, and no
// process.
func (h *environment) undisturbed(dir string, kills int) []run.Event {
	h.t.Helper()
	events := complete(h.t, dir)
	require.Equal(h.t, foretell(h.t, tiny()).artifact(), artifactOf(h.t, dir))
	h.oncePerAnswer(tinyCalls, kills)
	h.noAgents()
	return events
}

// tinyCalls is the number of calls of the small pipeline.
const tinyCalls = 25

// holdEach has calls wait until they are released, and starts the small pipeline.
func (h *environment) holdEach(calls ...string) (dir string, release map[string]func()) {
	h.t.Helper()
	faults, release := "", map[string]func(){}
	for _, at := range calls {
		fault, answer := h.held(at)
		faults, release[at] = faults+fault, answer
	}
	h.spoil(faults)
	dir = h.dir("run")
	h.begin(dir)
	return dir, release
}

// TestCallOutlivesWorker ends the worker in the middle of calls: by force, as a service manager does, with the server,
// and while it drains. The agents continue under their supervisors, and each call is started once. Only a worker that
// is killed loses an attempt, and the next one finds that: no heartbeat times out.
func TestCallOutlivesWorker(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=5m")
	dir, release := h.holdEach("2", "3", "4", "5")
	for _, row := range []struct {
		at  string
		end func(worker process.Identity)
	}{
		{"2", func(worker process.Identity) { h.signal(worker, syscall.SIGKILL) }},
		{"3", func(worker process.Identity) { h.signal(worker, syscall.SIGTERM) }},
		{"4", func(process.Identity) {
			require.Contains(t, h.starter("server", "stop"), "Stopped. 1 call still running; the next worker joins it.")
			h.env = append(h.env, "PASSBOOK_DRAIN=1m") // of the next worker
		}},
	} {
		agent, worker := h.mid("00"+row.at), h.worker()
		before := read(t, dir+"/events.jsonl")
		row.end(worker)
		until(t, "the worker is gone", func() bool { return !worker.Alive() })
		require.True(t, agent.Alive(), "call %s ended with its worker", row.at)
		release[row.at]()
		h.starter("server", "start")
		require.True(t, bytes.HasPrefix(read(t, dir+"/events.jsonl"), before), "the journal was changed")
	}
	h.mid("005")
	worker := h.drains()
	release["5"]()
	until(t, "the worker is gone", func() bool { return !worker.Alive() })
	require.Equal(t, 1, h.count("answered", "005"))

	h.finish(dir)
	for _, p := range of[run.PassAttempt](h.undisturbed(dir, 0), run.KindPassAttempt) {
		require.Equal(t, 2, p.Number, "a lost attempt: %s", p.Message)
	}
}

// drains stops a worker that waits for its calls, and returns when it has reported for what.
func (h *environment) drains() process.Identity {
	h.t.Helper()
	worker := h.worker()
	h.signal(worker, syscall.SIGTERM)
	until(h.t, "the worker reports what it waits for", func() bool {
		log := string(read(h.t, filepath.Join(h.state(), "worker", "worker.log")))
		return strings.Contains(log, "Waiting up to 1m0s for 1 call (")
	})
	require.True(h.t, worker.Alive())
	return worker
}

// TestEndedCallIsRepeated ends calls with their worker: by `server stop --now`, with the machine, and by a second
// signal to a worker that drains. Each is made once more.
func TestEndedCallIsRepeated(t *testing.T) {
	t.Parallel()
	h := newEnv(t, "PASSBOOK_HEARTBEAT=5m")
	dir, release := h.holdEach("2", "3", "4")
	for _, row := range []struct {
		at  string
		end func()
	}{
		{"2", func() { require.Contains(t, h.starter("server", "stop", "--now"), "Stopped. 1 call ended.") }},
		{"3", func() {
			worker := h.worker()
			h.kill(h.server())
			h.crash(worker)
			h.env = append(h.env, "PASSBOOK_DRAIN=1m") // of the next worker
		}},
		{"4", func() {
			worker := h.drains()
			h.signal(worker, syscall.SIGTERM)
			until(t, "the worker is gone", func() bool { return !worker.Alive() })
		}},
	} {
		agent := h.mid("00" + row.at)
		row.end()
		until(t, "the agent is gone", func() bool { return !agent.Alive() })
		release[row.at]()
		h.starter("server", "start")
	}
	h.finish(dir)
	attempts, messages := map[int][]run.Category{}, []string{}
	for _, p := range of[run.PassAttempt](h.undisturbed(dir, 1), run.KindPassAttempt) {
		attempts[p.Number] = append(attempts[p.Number], p.Category)
		messages = append(messages, fmt.Sprintf("%d: %s: %s", p.Number, p.Category, p.Message))
	}
	require.Equal(t, []run.Category{run.CategorySuperseded, run.CategoryLost}, attempts[2], messages)
	require.NotEmpty(t, attempts[3])
	require.NotEmpty(t, attempts[4])
	require.Equal(t, 3, metaOf(t, dir).State.UnknownCalls(), "the ended calls reported no cost: %s", messages)
	for _, at := range []string{"002", "003", "004"} {
		require.Equal(t, 2, h.count("start", at))
	}
}

// after lets a random time pass until the moment of a kill. It is no wait for a condition.
func after(d time.Duration) { <-time.After(d) }

// TestFrozen suspends server and worker past every timeout, as a closed laptop lid does, and continues them: once the
// agent answers meanwhile, once it is suspended too.
func TestFrozen(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir, release := h.holdEach("4", "5")
	worker, server, c := h.worker(), h.server(), h.dial()
	for n, at := range []string{"4", "5"} {
		agent, id := h.mid("00"+at), metaOf(t, dir).RunID
		h.signal(server, syscall.SIGSTOP)
		h.signal(worker, syscall.SIGSTOP)
		if at == "4" {
			release[at]()
			until(t, "the agent answers", func() bool { return h.count("answered", "004") == 1 })
		} else {
			h.signal(agent, syscall.SIGSTOP)
		}
		after(2 * time.Second) // twice the heartbeat
		h.signal(server, syscall.SIGCONT)
		until(t, "the delivery times out", func() bool { return timeouts(t, c, id) > n })
		if at == "5" {
			h.signal(agent, syscall.SIGCONT)
		}
		h.signal(worker, syscall.SIGCONT)
		release[at]()
	}
	h.finish(dir)
	for _, p := range of[run.PassEnd](h.undisturbed(dir, 0), run.KindPassEnd) {
		require.True(t, p.Joined || p.Reused || p.Number != 4 && p.Number != 5, "the journal does not record that "+
			"call %d was found again", p.Number)
	}
}

// timeouts returns how many deliveries of a run have timed out.
func timeouts(t *testing.T, c client.Client, id string) (n int) {
	t.Helper()
	it := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(t, err)
		if ev.GetActivityTaskTimedOutEventAttributes() != nil {
			n++
		}
	}
	return n
}
