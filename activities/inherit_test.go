package activities

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
)

// someone is a process that runs until the test ends it.
func someone(t *testing.T) (*exec.Cmd, process.Identity) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, id
}

// gone is a process that has ended.
func gone(t *testing.T) process.Identity {
	t.Helper()
	cmd, id := someone(t)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return id
}

// leave is what a dead worker of this host left of a delivery.
func (h *house) leave(worker, child process.Identity, stdout string) {
	h.t.Helper()
	root := filepath.Join(h.dir, "scratch", scratchName(asked(h.in)))
	err := h.ledger().claim(context.Background(), claim{Version: callVersion, Call: asked(h.in), Host: "here", Worker: worker, Scratch: root}, 1)
	require.NoError(h.t, err)
	dir := filepath.Join(root, "1")
	require.NoError(h.t, os.MkdirAll(dir, 0o700))
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, stdoutFile), []byte(stdout), 0o600))
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, stderrFile), nil, 0o600))
	require.NoError(h.t, writeIdentity(dir, childFile, child))
	require.NoError(h.t, writeIdentity(dir, workerFile, worker))
}

func TestAWholeAnswerOfADeadWorkerCounts(t *testing.T) {
	h := newHouse(t, "answer")
	h.leave(gone(t), gone(t), envelopeOf("From beyond.")+"\n")
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ok", res.Outcome)
	require.True(t, res.Reused)
	require.Equal(t, 0, h.started())
	reply, err := load(context.Background(), h.s, res.Reply.Digest)
	require.NoError(t, err)
	require.Equal(t, "From beyond.", string(reply))
	require.InDelta(t, 0.25, res.Spend.USD, 1e-9)
}

func TestHalfAnAnswerOfADeadWorkerIsAskedForAgain(t *testing.T) {
	h := newHouse(t, "answer")
	h.leave(gone(t), gone(t), `{"type":"result","result":"From bey`)
	res, err := h.pass(context.Background())
	require.NoError(t, err)
	require.Equal(t, "ok", res.Outcome)
	require.False(t, res.Reused)
	require.Equal(t, 1, h.started())
	claims, err := h.ledger().claims(context.Background())
	require.NoError(t, err)
	require.Len(t, claims, 2)
	h.noScratch()
}

func TestTheChildOfADeadWorkerIsEndedAndNobodyElse(t *testing.T) {
	h := newHouse(t, "answer")
	orphan, id := someone(t)
	h.leave(gone(t), id, "")
	waited := make(chan error, 1)
	go func() { waited <- orphan.Wait() }()
	_, err := h.pass(context.Background())
	require.NoError(t, err)
	select {
	case err := <-waited:
		require.Error(t, err, "killed")
	case <-time.After(20 * time.Second):
		t.Fatal("the orphan goes on")
	}
	require.Equal(t, 1, h.started())
}

// TestWhatTheChildHadStartedIsEndedToo: the child died with its worker, and what it had started lives on, in a session of its own. It is ended before the call
// is made again, and also if nobody ever asks for the call again. Another delivery's is left alone.
func TestWhatTheChildHadStartedIsEndedToo(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("environments of other processes are looked at on Linux only")
	}
	for name, again := range map[string]func(h *house) error{
		"asked for again": func(h *house) error { _, err := h.pass(context.Background()); return err },
		"a worker starts": func(h *house) error { return h.acts.ReapDead(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t, "answer")
			dir := filepath.Join(h.dir, "scratch", scratchName(asked(h.in)), "1")
			mine, other := carrying(t, dir), carrying(t, dir+"1")
			h.leave(gone(t), gone(t), "")
			require.NoError(t, again(h))
			require.False(t, mine.Alive())
			require.True(t, other.Alive())
		})
	}
	t.Run("its worker lives", func(t *testing.T) {
		h := newHouse(t, "answer")
		_, worker := someone(t)
		mine := carrying(t, filepath.Join(h.dir, "scratch", scratchName(asked(h.in)), "1"))
		h.leave(worker, gone(t), "")
		require.NoError(t, h.acts.ReapDead(context.Background()))
		require.True(t, mine.Alive())
	})
}

// carrying is a process in a session of its own that carries the mark of a delivery.
func carrying(t *testing.T, dir string) process.Identity {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), agent.MarkEnv+"="+dir), &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, cmd.Start())
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return id
}

func TestAStrangerWithTheChildsNumberIsLeftAlone(t *testing.T) {
	h := newHouse(t, "answer")
	_, id := someone(t)
	stranger := id
	id.StartTime = "1" // the child had the number before
	h.leave(gone(t), id, "")
	_, err := h.pass(context.Background())
	require.NoError(t, err)
	require.True(t, stranger.Alive())
}

func TestALivingWorkersCallIsWaitedFor(t *testing.T) {
	h := newHouse(t, "answer")
	other, id := someone(t)
	h.leave(id, gone(t), "")
	type outcome struct {
		joined bool
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		res, err := h.pass(context.Background())
		done <- outcome{res.Joined, err}
	}()
	stdout, stderr := h.put(envelopeOf("Mine.")), h.put("")
	_, err := h.ledger().put(context.Background(), answer{Version: callVersion, Call: h.in.Call, Delivery: 1, Host: "here", Stdout: stdout, Stderr: stderr})
	require.NoError(t, err)
	select {
	case o := <-done:
		require.NoError(t, o.err)
	case <-time.After(20 * time.Second):
		t.Fatal("the result of the other worker was not found")
	}
	require.Equal(t, 0, h.started())
	require.NoError(t, other.Process.Signal(syscall.Signal(0)), "the other worker goes on")
}
