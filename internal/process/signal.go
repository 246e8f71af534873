package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Signal signals exactly this process; the error is [ErrGone] if it has ended. On Linux a pidfd prevents that the
// pid is reused meanwhile.
func (i Identity) Signal(sig syscall.Signal) error {
	if i.PID <= 0 {
		return i.signalError(sig, ErrGone)
	}
	if m := Simulated(i.BootID); m != nil {
		_, err := i.entry()
		if err == nil {
			m.Signal(i, sig)
		}
		return i.signalError(sig, err)
	}
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return i.signalError(sig, err)
	}
	defer p.Release()
	e, err := i.entry()
	if err == nil && e.zombie {
		err = ErrGone
	}
	if err == nil {
		err = p.Signal(sig)
	}
	return i.signalError(sig, err)
}

// KillGroup sends SIGKILL to the group that this process leads. A zombie still leads its group: its pid is not
// reused until it is reaped. If the leader is gone the error is [ErrGone] and nothing is sent.
func (i Identity) KillGroup() error {
	_, err := i.entry()
	if err != nil {
		return i.signalError(syscall.SIGKILL, err)
	}
	if m := Simulated(i.BootID); m != nil {
		m.Signal(i, syscall.SIGKILL)
		return nil
	}
	group, err := syscall.Getpgid(i.PID)
	if err == nil && group != i.PID {
		return fmt.Errorf("kill the group of process %d: it does not lead one, it is in group %d", i.PID, group)
	}
	if err == nil {
		err = syscall.Kill(-i.PID, syscall.SIGKILL)
	}
	return i.signalError(syscall.SIGKILL, err)
}

func (i Identity) signalError(sig syscall.Signal, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		err = ErrGone
	}
	return fmt.Errorf("send %s to process %d: %w", sig, i.PID, err)
}
