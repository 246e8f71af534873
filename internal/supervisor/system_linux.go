package supervisor

import (
	"fmt"
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
	if r := s.sandboxReport(); r.PID > 0 { // the only child that can be left: its end is the end of all others
		_ = syscall.Kill(r.PID, syscall.SIGKILL)
		return 1
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

// Limits of every process in a sandbox. Memory and the number of files are not limited: agents need much of both.
const (
	mostFiles     = 1 << 16
	mostProcesses = 1 << 13 // of this user in the sandbox; root has no limit
)

// limitResources sets the limits that the agent inherits, and leaves the keyring of the session, which has keys such as
// Kerberos tickets. The supervisor needs less.
func limitResources() error {
	_, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0) // a new one
	if err != nil && err != unix.ENOSYS && err != unix.EPERM {             // these mean that no keyring can be used
		return fmt.Errorf("leave the keyring of the session: %w", err)
	}
	for resource, most := range map[int]uint64{
		syscall.RLIMIT_NOFILE: mostFiles, unix.RLIMIT_NPROC: mostProcesses, syscall.RLIMIT_CORE: 0,
	} {
		var now syscall.Rlimit
		if syscall.Getrlimit(resource, &now) != nil {
			continue
		}
		now.Max = min(now.Max, most)
		now.Cur = min(now.Cur, now.Max)
		if syscall.Setrlimit(resource, &now) != nil {
			continue // the agent keeps the limit of the worker
		}
	}
	return nil
}
