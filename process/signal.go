package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Signal sends a signal to this very process; the error is [ErrGone] when it has ended. On Linux it is held by a pidfd while
// it is looked at, so its number cannot pass to a stranger in between.
func (i Identity) Signal(sig syscall.Signal) error {
	if i.PID <= 0 {
		return i.failed(sig, ErrGone)
	}
	p, err := os.FindProcess(i.PID)
	if err != nil {
		return i.failed(sig, err)
	}
	defer p.Release()
	e, err := i.entry()
	if err == nil && e.zombie {
		err = ErrGone
	}
	if err == nil {
		err = p.Signal(sig)
	}
	return i.failed(sig, err)
}

// KillGroup sends SIGKILL to every process in the group that this process leads. A zombie still leads: as long as it is not
// reaped, its number is nobody else's. When the leader is gone the error is [ErrGone], and nothing is sent: what then
// carries its number could be a stranger's group.
func (i Identity) KillGroup() error {
	_, err := i.entry()
	if err != nil {
		return i.failed(syscall.SIGKILL, err)
	}
	group, err := syscall.Getpgid(i.PID)
	if err == nil && group != i.PID {
		return fmt.Errorf("kill the group of process %d: it does not lead one, it is in group %d", i.PID, group)
	}
	if err == nil {
		err = syscall.Kill(-i.PID, syscall.SIGKILL)
	}
	return i.failed(syscall.SIGKILL, err)
}

func (i Identity) failed(sig syscall.Signal, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, os.ErrProcessDone) || errors.Is(err, syscall.ESRCH) {
		err = ErrGone
	}
	return fmt.Errorf("send %s to process %d: %w", sig, i.PID, err)
}
