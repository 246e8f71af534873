package supervisor

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/process"
)

// agentAttributes put the agent in its own group and kill it when the thread that started it ends.
func agentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// becomeSubreaper makes this process the subreaper of its descendants.
func becomeSubreaper() {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return // kernels since 3.4 have it; on others MarkEnv identifies what is left
	}
}

// killChildren kills the children of this process and returns their number. Grandchildren become children. Background
// processes of Passbook are not killed.
func (s *supervision) killChildren() (left int) {
	if _, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err == syscall.ECHILD {
		return 0
	}
	found, err := process.Children()
	if err != nil {
		return 0
	}
	for _, id := range found {
		if process.HasEnv(id, DaemonEnv, "1") {
			continue
		}
		left++
		_ = syscall.Kill(id.PID, syscall.SIGKILL) // not reaped: the pid is not reused
	}
	return left
}
