package activities

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// running is a process that runs until the test ends it.
func running(t *testing.T) (*exec.Cmd, process.Identity) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	id := must(process.Of(cmd.Process.Pid))(t)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, id
}

// gone is a process that has ended.
func gone(t *testing.T) process.Identity {
	t.Helper()
	cmd, id := running(t)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return id
}

// leave is what a worker and a supervisor of this host left of a delivery.
func (h *harness) leave(worker, by process.Identity, stdout string) (dir string) {
	h.t.Helper()
	root := filepath.Join(h.dir, "scratch", calls.FolderName(callID(h.in)))
	err := h.ledger().Claim(context.Background(),
		calls.Claim{
			Version: calls.Version, Call: callID(h.in), Host: "here", Worker: worker, Supervisor: by, Scratch: root,
		}, 1)
	require.NoError(h.t, err)
	dir = filepath.Join(root, "1")
	require.NoError(h.t, os.MkdirAll(dir, 0o700))
	write(filepath.Join(dir, calls.StdoutFile), stdout)
	write(filepath.Join(dir, calls.StderrFile), "")
	h.json(dir, supervisor.RecordFile, supervisor.Record{Version: supervisor.Version, Process: by, Delivery: dir})
	require.NoError(h.t, calls.WriteIdentity(dir, worker))
	return dir
}

func (h *harness) json(dir, name string, v any) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, name), must(json.Marshal(v))(h.t), 0o600))
}

// exited is the record of its supervisor that the agent of a delivery has ended.
func (h *harness) exited(dir string, exit supervisor.Exit) {
	h.t.Helper()
	h.json(dir, supervisor.ExitFile, struct {
		Version int `json:"version"`
		supervisor.Exit
	}{supervisor.Version, exit})
}

// answered stores an answer of another worker.
func (h *harness) answered(ans calls.Answer, text string) {
	h.t.Helper()
	if ans.Version == 0 {
		ans.Version = calls.Version
	}
	ans.Call, ans.Stdout, ans.Stderr = callID(h.in), h.put(envelopeOf(text)), h.put("")
	require.True(h.t, must(h.ledger().Put(context.Background(), ans))(h.t))
}

func TestCompleteAnswerOfDeadWorkerCounts(t *testing.T) {
	for name, step := range map[string]string{"call": "{role: reader}", "external action": externalAction} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			h.define("{role: reader}", step)
			h.leave(gone(t), gone(t), envelopeOf("From beyond.")+"\n")
			res := h.accepted()
			require.True(t, res.Reused)
			require.Equal(t, 0, h.started())
			require.Equal(t, "From beyond.", h.text(res.Reply.Digest))
			require.InDelta(t, 0.25, res.Spend.USD, 1e-9)
		})
	}
}

func TestStoppedCallIsLost(t *testing.T) {
	h := newHarness(t, "answer")
	dir := h.leave(gone(t), gone(t), "half")
	h.exited(dir, supervisor.Exit{Code: -1, Killed: true, KillCause: "the test said so"})
	_, err := h.pass(context.Background())
	require.Contains(t, failed(t, err, contract.ErrNoAnswer).Message(), "the test said so")
	require.Equal(t, 0, h.started())
	h.accepted()
	require.Equal(t, 1, h.started())
	h.noScratch()
}

func TestNextWorkerJoinsCall(t *testing.T) {
	for name, leave := range map[string]func(first *Activities, lose func()){
		"handed over": func(first *Activities, _ func()) { first.HandOver() },
		"lost":        func(_ *Activities, lose func()) { lose() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "wait")
			first := h.workerAs(gone(t))
			ctx, lose := context.WithCancel(context.Background())
			done := h.begin(ctx, first)
			h.awaitStart(1)
			leave(first, lose)
			ended := <-done
			if name == "handed over" {
				require.NoError(t, ended.err)
				require.Equal(t, "here", ended.HandedOver)
				first.Stop()
				require.Equal(t, "here", h.resultOf(first).HandedOver, "it accepts no other call")
			} else {
				first.HandOver() // that it watches the call no more is all that is left of it
			}
			require.NoError(t, h.acts.ReapDead(context.Background()), "a worker starts")
			done = h.begin(context.Background(), h.acts)
			h.await(func() bool { return h.acts.isRunning(callID(h.in)) })
			h.letGo()
			joined := <-done
			require.NoError(t, joined.err)
			require.Equal(t, run.CategoryOK, joined.Outcome)
			require.True(t, joined.Joined)
			require.Equal(t, 1, h.started())
			h.noScratch()
		})
	}
}

func TestClaimOfOtherHostIsRespected(t *testing.T) {
	later := run.Time(time.Now().Add(time.Hour))
	for name, row := range map[string]struct {
		deadline string
		ended    bool
		holds    bool
	}{
		"claimed":           {later, false, true},
		"ended":             {later, true, false},
		"past its deadline": {run.Time(time.Now().Add(-time.Second)), false, false},
		"of an old release": {"", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			h := newHarness(t, "answer")
			require.NoError(t, h.ledger().Claim(ctx, calls.Claim{
				Version: calls.Version, Call: callID(h.in), Host: "there", Worker: gone(t), Deadline: row.deadline,
			}, 1))
			if row.ended {
				require.NoError(t, h.ledger().End(ctx, 1, calls.End{}))
			}
			res := h.result()
			if !row.holds {
				require.Equal(t, run.CategoryOK, res.Outcome)
				require.Equal(t, 1, h.started())
				require.Equal(t, name == "past its deadline", len(res.Superseded) == 1, "its cost is unknown")
				return
			}
			require.Equal(t, &contract.HostClaim{Host: "there", Until: later}, res.ClaimedBy)
			require.Equal(t, 0, h.started())
			require.Len(t, h.claims(), 1)
		})
	}
}

func TestLostSupervisorLosesCall(t *testing.T) {
	h := newHarness(t, "wait")
	done := h.begin(context.Background(), h.acts)
	h.awaitStart(1)
	failed(t, h.lose(done), contract.ErrNoAnswer)
	h.letGo()
	h.accepted()
	require.Equal(t, 2, h.started())
}

func TestDescendantsAreKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("environments of other processes are read on Linux only")
	}
	for name, again := range map[string]func(h *harness) error{
		"asked for again": func(h *harness) error { _, err := h.pass(context.Background()); return err },
		"a worker starts": func(h *harness) error { return h.acts.ReapDead(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			dir := h.deliveryDir()
			mine, other := carrying(t, dir), carrying(t, dir+"1")
			h.leave(gone(t), gone(t), "")
			require.NoError(t, again(h))
			require.False(t, mine.Alive())
			require.True(t, other.Alive())
		})
	}
}

// carrying is a process in its own session that carries the mark of a delivery.
func carrying(t *testing.T, dir string) process.Identity {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), agent.MarkEnv+"="+dir), &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	id := must(process.Of(cmd.Process.Pid))(t)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return id
}

func TestFrozenWorkerIsReplaced(t *testing.T) {
	for name, answered := range map[string]bool{"the agent has answered": true, "the supervisor was lost": false} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			frozen, id := running(t)
			require.NoError(t, frozen.Process.Signal(syscall.SIGSTOP))
			dir := h.leave(id, gone(t), "")
			if answered {
				write(filepath.Join(dir, calls.StdoutFile), envelopeOf("From beyond."))
				h.exited(dir, supervisor.Exit{})
			}
			require.Equal(t, answered, h.accepted().Reused)
			require.True(t, id.Alive())
		})
	}
}

func TestCallOfLiveWorkerIsAwaited(t *testing.T) {
	h := newHarness(t, "answer")
	other, id := running(t)
	h.leave(id, gone(t), "")
	done := h.begin(context.Background(), h.acts)
	h.answered(calls.Answer{Delivery: 1, Host: "here"}, "Mine.")
	require.NoError(t, (<-done).err)
	require.Equal(t, 0, h.started())
	require.NoError(t, other.Process.Signal(syscall.Signal(0)), "the other worker continues")
}

// externalAction is the step of the reader.
const externalAction = "{role: reader, effect: external_action}"

// TestLostActionIsNotRepeated: an operator learns whether it had its effect before it is executed again.
func TestLostActionIsNotRepeated(t *testing.T) {
	h := newHarness(t, "answer")
	h.define("{role: reader}", externalAction)
	h.leave(gone(t), gone(t), `{"type":"result","result":"half`)
	res := h.result()
	require.Equal(t, run.CategoryUnknown, res.Outcome)
	require.True(t, res.Permanent)
	require.Equal(t, 0, h.started())

	h.in.Call += "-again" // as after a resume
	res = h.accepted()
	require.Equal(t, 1, h.started())
}

// TestCallWithoutWorkerKeepsMachineAwake: a worker that hands its calls over releases its hold; their supervisors have
// the file open until the calls end.
func TestCallWithoutWorkerKeepsMachineAwake(t *testing.T) {
	h := newHarness(t, "wait")
	hold, file, err := os.Pipe()
	require.NoError(t, err)
	released := make(chan error, 1)
	h.acts.cfg.KeepAwake = func() (*os.File, func()) { return file, func() { released <- file.Close() } }
	done := h.begin(t.Context(), h.acts)
	h.awaitStart(1)
	h.acts.HandOver()
	require.NoError(t, (<-done).err)
	require.NoError(t, <-released)
	require.NoError(t, hold.SetReadDeadline(time.Now()))
	_, err = hold.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it is still open")
	h.letGo()
	require.NoError(t, hold.SetReadDeadline(time.Now().Add(20*time.Second)))
	_, err = hold.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, hold.Close())
}
