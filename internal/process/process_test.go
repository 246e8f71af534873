package process_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
)

// sleeper starts a process that leads its own group and ends only by a signal.
func sleeper(t *testing.T) (*exec.Cmd, process.Identity) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	id, err := process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	return cmd, id
}

func TestSelfIsAlive(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), self.PID)
	require.True(t, self.Alive())
	again, err := process.Self()
	require.NoError(t, err)
	require.Equal(t, self, again)
}

func TestIdentitySurvivesJSON(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	data, err := json.Marshal(self)
	require.NoError(t, err)
	var read process.Identity
	require.NoError(t, json.Unmarshal(data, &read))
	require.Equal(t, self, read)
	require.True(t, read.Alive())
}

func TestReusedPIDIsNotSignalled(t *testing.T) {
	for name, change := range map[string]func(*process.Identity){
		"pid given again":   func(i *process.Identity) { i.StartTime = "1" },
		"after a reboot":    func(i *process.Identity) { i.BootID = "another boot" },
		"nothing recorded":  func(i *process.Identity) { *i = process.Identity{} },
		"pid only recorded": func(i *process.Identity) { *i = process.Identity{PID: i.PID} },
	} {
		t.Run(name, func(t *testing.T) {
			_, real := sleeper(t)
			named := real
			change(&named)
			require.False(t, named.Alive())
			require.ErrorIs(t, named.Signal(syscall.SIGKILL), process.ErrGone)
			require.ErrorIs(t, named.KillGroup(), process.ErrGone)
			require.NoError(t, named.AwaitEnd(t.Context()))
			require.True(t, real.Alive(), "the stranger was hit")
		})
	}
}

func TestSignalEndsProcess(t *testing.T) {
	cmd, id := sleeper(t)
	require.NoError(t, id.Signal(syscall.SIGTERM))
	require.NoError(t, id.AwaitEnd(t.Context()), "a zombie has ended, though it is not reaped")
	require.ErrorIs(t, id.Signal(syscall.SIGTERM), process.ErrGone)
	_ = cmd.Wait()
	require.False(t, id.Alive())
	_, err := process.Of(id.PID)
	require.ErrorIs(t, err, process.ErrGone)
}

func TestAwaitEndReturnsContextCause(t *testing.T) {
	_, id := sleeper(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, id.AwaitEnd(ctx), context.DeadlineExceeded)
}

// family starts a leader with a child that prints its pid and then waits.
func family(t *testing.T, script string) (leader process.Identity, member process.Identity) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() })
	var pid int
	require.NoError(t, json.NewDecoder(bufio.NewReader(out)).Decode(&pid))
	leader, err = process.Of(cmd.Process.Pid)
	require.NoError(t, err)
	member, err = process.Of(pid)
	require.NoError(t, err)
	return leader, member
}

func TestKillGroupKillsChildren(t *testing.T) {
	leader, member := family(t, "sleep 600 & echo $!; wait")
	require.NoError(t, leader.KillGroup())
	require.NoError(t, leader.AwaitEnd(t.Context()))
	require.NoError(t, member.AwaitEnd(t.Context()))
}

func TestKillGroupOfZombieLeader(t *testing.T) {
	leader, member := family(t, "sleep 600 & echo $!")
	require.NoError(t, leader.AwaitEnd(t.Context()))
	require.True(t, member.Alive())
	require.NoError(t, leader.KillGroup())
	require.NoError(t, member.AwaitEnd(t.Context()))
}

func TestKillGroupNeedsLeader(t *testing.T) {
	leader, member := family(t, "sleep 600 & echo $!; wait")
	require.ErrorContains(t, member.KillGroup(), "does not lead one")
	require.True(t, leader.Alive())
	require.True(t, member.Alive())
}

// table is a simulated machine on which only one process runs.
type table struct {
	runs    process.Identity
	signals []syscall.Signal
}

func (m *table) Alive(id process.Identity) bool { return id == m.runs }
func (m *table) Signal(_ process.Identity, signal syscall.Signal) {
	m.signals = append(m.signals, signal)
}

func (m *table) Worker() process.Identity { return m.runs }

func (m *table) Start(process.Identity, string) (process.Identity, io.WriteCloser, chan struct{}) {
	return process.Identity{}, nil, nil
}

func TestSimulatedProcessIsNotReal(t *testing.T) {
	_, real := sleeper(t)
	same := process.Identity{PID: real.PID, StartTime: real.StartTime, BootID: "simulated"}
	m := &table{runs: same}
	end := process.Simulate("simulated", m)
	require.True(t, same.Alive())
	require.NoError(t, same.Signal(syscall.SIGTERM))
	require.NoError(t, same.KillGroup())
	require.Equal(t, []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}, m.signals)
	m.runs = process.Identity{}
	require.False(t, same.Alive())
	require.ErrorIs(t, same.Signal(syscall.SIGKILL), process.ErrGone)
	require.NoError(t, same.AwaitEnd(t.Context()))
	require.Len(t, m.signals, 2)
	end()
	require.False(t, same.Alive(), "it is of another boot")
	require.True(t, real.Alive(), "the real process got a signal")
}

// TestTextOfAnIdentity: it is read back, and other texts are none.
func TestTextOfAnIdentity(t *testing.T) {
	self, err := process.Self()
	require.NoError(t, err)
	got, ok := process.Parse(self.Text())
	require.True(t, ok)
	require.Equal(t, self, got)
	for _, text := range []string{"", "12@host", "12@host@", "x@host/1/boot", "0@host/1/boot", "12@host/1", "12@host//boot", "12/1/boot", "12@host/1/boot/more"} {
		_, ok := process.Parse(text)
		require.False(t, ok, text)
	}
}
