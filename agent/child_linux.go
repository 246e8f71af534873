package agent

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes put the child in its own group and let it die with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// await runs exited while the leader is dead but not reaped, when its group number still belongs to it.
func await(cmd *exec.Cmd, exited func()) error {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	exited()
	return cmd.Wait()
}
