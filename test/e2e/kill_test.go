package e2e_test

import (
	"bytes"
	"math/rand"
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

	"github.com/passbook-run/passbook/run"
)

// slow lets one call think for a while, the first time that it is made.
func slow(at, seconds string) string {
	return "- {at: " + at + ", do: slow, seconds: " + seconds + "}\n"
}

// held returns a fault of a call that answers when release is called.
func (h *environment) held(at string) (fault string, release func()) {
	file := h.dir("release-" + at)
	return "- {at: " + at + ", do: slow, seconds: 600, until: " + strconv.Quote(file) + "}\n",
		func() { require.NoError(h.t, os.WriteFile(file, nil, 0o600)) }
}

// begin starts the small pipeline and does not stay.
func (h *environment) begin(dir string) {
	h.t.Helper()
	h.starter("run", "--config", tiny(), "--output-dir", dir, "--detach")
}

// finish attaches to the run and stays to its end.
func (h *environment) finish(dir string) string {
	h.t.Helper()
	return h.starter("run", "--config", tiny(), "--output-dir", dir)
}

// undisturbed wants what a run without any disturbance gives: the same page, every call answered once, nobody left.
func (h *environment) undisturbed(dir string, kills int) []run.Event {
	h.t.Helper()
	events := complete(h.t, dir)
	require.Equal(h.t, foretell(h.t, tiny()).artifact(), artifactOf(h.t, dir))
	h.oncePerAnswer(tinyCalls, kills)
	h.noAgents()
	return events
}

// tinyCalls is how many calls the small pipeline makes.
const tinyCalls = 25

// TestWorkerEndsInACall ends the worker in the middle of a call, by force and as a service manager does. The agent
// continues under its supervisor, the next worker joins the call, and it is paid for once. A worker that is stopped
// loses no attempt, and is gone within two seconds.
func TestWorkerEndsInACall(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "stopped": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			fault, release := h.held("5")
			h.spoil(fault)
			dir := h.dir("run")
			h.begin(dir)
			agent, worker := h.mid("005"), h.worker()
			before := read(t, dir+"/events.jsonl")
			received := time.Now()
			h.signal(worker, sig)
			until(t, "the worker is gone", func() bool { return !worker.Alive() })
			took := time.Since(received)
			require.True(t, agent.Alive(), "the call continues")
			release()
			h.finish(dir)
			events := h.undisturbed(dir, 0)
			require.Equal(t, 1, h.count("start", "005"))
			require.Equal(t, string(before), string(read(t, dir+"/events.jsonl")[:len(before)]),
				"what was written before is not the beginning of it any more")
			if sig == syscall.SIGTERM {
				require.Less(t, took, 2*time.Second)
				require.Empty(t, of[run.PassAttempt](events, run.KindPassAttempt), "a lost attempt")
			}
		})
	}
}

// TestServerStopLeavesCallsRunning, unless it is told to end them: then the call is made once more.
func TestServerStopLeavesCallsRunning(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		args     []string
		message  string
		starts   int
		attempts []run.Category
	}{
		"stop": {[]string{"server", "stop"}, "Stopped. 1 call still running; the next worker joins it.", 1, nil},
		"stop --now": {[]string{"server", "stop", "--now"}, "Stopped. 1 call ended.", 2,
			[]run.Category{run.CategorySuperseded, run.CategoryLost}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t, "PASSBOOK_HEARTBEAT=5s")
			fault, release := h.held("2")
			h.spoil(fault)
			dir := h.dir("run")
			h.begin(dir)
			agent := h.mid("002")
			require.Contains(t, h.starter(row.args...), row.message)
			require.Equal(t, row.starts == 1, agent.Alive())
			release()
			h.finish(dir)
			var attempts []run.Category
			var messages []string
			for _, p := range of[run.PassAttempt](h.undisturbed(dir, row.starts-1), run.KindPassAttempt) {
				attempts, messages = append(attempts, p.Category), append(messages, p.Message)
			}
			require.Equal(t, row.attempts, attempts, messages)
			require.Equal(t, row.starts-1, metaOf(t, dir).State.UnknownCalls(), "the ended call reported no cost")
			require.Equal(t, row.starts, h.count("start", "002"))
		})
	}
}

// TestDrain stops a worker that waits for its calls: it says for what, and ends when they have ended. A second signal
// ends it and them at once.
func TestDrain(t *testing.T) {
	t.Parallel()
	for name, twice := range map[string]bool{"once": false, "twice": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t, "PASSBOOK_DRAIN=1m")
			fault, release := h.held("2")
			h.spoil(fault)
			dir := h.dir("run")
			h.begin(dir)
			agent, worker := h.mid("002"), h.worker()
			log := func() string { return string(read(t, filepath.Join(h.state(), "worker", "worker.log"))) }
			h.signal(worker, syscall.SIGTERM)
			until(t, "it says what it waits for", func() bool {
				return strings.Contains(log(),
					"Waiting up to 1m0s for 1 call (")
			})
			require.True(t, worker.Alive())
			if twice {
				received := time.Now()
				h.signal(worker, syscall.SIGTERM)
				until(t, "the worker is gone", func() bool { return !worker.Alive() })
				require.Less(t, time.Since(received), 5*time.Second)
				until(t, "the agent is gone", func() bool { return !agent.Alive() })
			} else {
				release()
				until(t, "the worker is gone", func() bool { return !worker.Alive() })
				require.Equal(t, 1, h.count("answered", "002"))
			}
			h.finish(dir)
			events := h.undisturbed(dir, 1)
			require.Equal(t, twice, h.count("start", "002") == 2)
			require.Equal(t, twice, len(of[run.PassAttempt](events, run.KindPassAttempt)) > 0)
		})
	}
}

func TestKillServerAndWorker(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("5", "600"))
	dir := h.dir("run")
	h.begin(dir)
	h.mid("005")
	worker, server := h.worker(), h.server()
	h.kill(server)
	h.crash(worker)
	h.finish(dir)
	h.undisturbed(dir, 1)
	require.Equal(t, 2, h.count("start", "005"))
}

// TestKillEverywhere kills the worker at random moments. Where each kill hit is in the log of a failed test.
func TestKillEverywhere(t *testing.T) {
	t.Parallel()
	const kills = 8
	h := newEnv(t)
	dir := h.dir("run")
	random := rand.New(rand.NewSource(11))
	var faults string
	for _, at := range []string{"2", "4", "6", "9", "12", "15", "auditor-B-1", "weaver-1"} {
		faults += slow(at, "0.4")
	}
	h.spoil(faults)
	var journal []byte
	h.begin(dir)
	for k := 1; k <= kills; k++ {
		progress(h, dir, 1+random.Intn(2))
		after(time.Duration(random.Intn(400)) * time.Millisecond)
		if statusIs(dir, run.Done) {
			break
		}
		t.Logf("kill %d: %d calls started, %d answered", k, h.count("start", ""), h.count("answered", ""))
		h.kill(h.worker())
		whole(t, dir, journal)
		journal = read(t, dir+"/events.jsonl")
		h.starter("server", "start")
	}
	h.finish(dir)
	whole(t, dir, journal)
	h.undisturbed(dir, kills)
}

// progress waits until some more calls were started, or the run is through.
func progress(h *environment, dir string, calls int) {
	h.t.Helper()
	before := h.count("start", "")
	until(h.t, "the run goes on", func() bool {
		return h.count("start", "") >= before+calls ||
			statusIs(dir, run.Done)
	})
}

// after lets a random time pass: not a wait for anything, but the moment of a kill.
func after(d time.Duration) { <-time.After(d) }

// whole looks at a directory in the instant after a crash: both state files can be read, complete lines are events in
// order, and nothing that was written before has changed.
func whole(t *testing.T, dir string, before []byte) {
	t.Helper()
	now, err := look(dir, "")
	require.NoError(t, err)
	require.NotNil(t, now.Meta)
	require.True(t, bytes.HasPrefix(now.Journal, before))
}

// TestFrozen stops server and worker past every timeout, as a closed lid does, and lets them go on.
func TestFrozen(t *testing.T) {
	t.Parallel()
	for name, agentToo := range map[string]bool{"agent goes on": false, "agent frozen too": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newEnv(t)
			h.spoil(slow("4", "8"))
			dir := h.dir("run")
			h.begin(dir)
			agent, worker, server := h.mid("004"), h.worker(), h.server()
			c, id := h.dial(), metaOf(t, dir).RunID
			h.signal(server, syscall.SIGSTOP)
			h.signal(worker, syscall.SIGSTOP)
			if agentToo {
				h.signal(agent, syscall.SIGSTOP)
			}
			after(2 * time.Second) // twice the heartbeat
			h.signal(server, syscall.SIGCONT)
			until(t, "the server gives the delivery up", func() bool { return timedOut(t, c, id) })
			if agentToo {
				h.signal(agent, syscall.SIGCONT)
			}
			h.signal(worker, syscall.SIGCONT)
			h.finish(dir)
			events := h.undisturbed(dir, 0)
			require.Equal(t, 1, h.count("start", "004"))
			for _, p := range of[run.PassEnd](events, run.KindPassEnd) {
				if p.Number == 4 {
					require.True(t, p.Joined || p.Reused, "the journal does not say that the call was found again")
				}
			}
		})
	}
}

// timedOut says whether a delivery of a run has timed out.
func timedOut(t *testing.T, c client.Client, id string) bool {
	t.Helper()
	it := c.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		ev, err := it.Next()
		require.NoError(t, err)
		if ev.GetActivityTaskTimedOutEventAttributes() != nil {
			return true
		}
	}
	return false
}
