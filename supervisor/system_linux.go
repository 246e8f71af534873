package supervisor

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/process"
)

// attributes put the agent in its own group and let it die with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes this process the parent of whatever loses its own below it.
func adopt() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return // kernels since 3.4 have it; on others the mark finds what is left
	}
}

// endLeft kills the children of this process, and says how many there are. Their own children come to it when they have ended. Background processes
// of Passbook stay.
func (s *supervision) endLeft() (left int) {
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
		return 0 // nothing below this process
	}
	found, err := process.Children()
	if err != nil {
		return 0
	}
	for _, id := range found {
		if process.Carries(id, DaemonEnv, "1") {
			continue
		}
		left++
		_ = syscall.Kill(id.PID, syscall.SIGKILL) // it is not reaped: its number is its own
	}
	return left
}
