package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/process"
)

// agentAttributes put the agent in its own group and kill it when the thread that started it ends.
func agentAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// sealed returns the content of a regular file as one that no process can change: an agent can open its standard input
// again, through /proc and for writing, and the prompt is evidence.
func sealed(f *os.File) (*os.File, error) {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return f, err
	}
	fd, err := unix.MemfdCreate("prompt", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	copied := os.NewFile(uintptr(fd), "prompt")
	if _, err = io.Copy(copied, f); err == nil {
		_, err = copied.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(copied.Fd(), unix.F_ADD_SEALS,
			unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK|unix.F_SEAL_SEAL)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errors.Join(err, copied.Close())
	}
	return copied, nil
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
	s.endPasta()
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

// hideSockets keeps a sandbox from abstract sockets of other programs, such as those of X11 and D-Bus, if the kernel
// can: they belong to the network of the host. It restricts this thread, which starts the sandbox. A program that needs
// its set-user-id bit would lose that.
func hideSockets(bwrap string) error {
	if fi, err := os.Stat(bwrap); err != nil || fi.Mode()&os.ModeSetuid != 0 {
		return nil // what is missing is reported when it is started
	}
	const size = 24 // of the attributes up to Scoped: older kernels know no more
	rules := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), size, 0)
	if errno != 0 {
		return nil // before Linux 6.12
	}
	err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	if err == nil {
		if _, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
			err = errno
		}
	}
	if err = errors.Join(err, unix.Close(int(fd))); err != nil {
		return fmt.Errorf("hide abstract sockets: %w", err)
	}
	return nil
}
