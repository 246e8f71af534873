//go:build unix && !linux

package agent

import (
	"os/exec"
	"syscall"
)

// attributes put the child in its own group. There is no parent-death signal here: a redelivery ends what a lost worker left.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// await runs exited right after the leader was reaped.
func await(cmd *exec.Cmd, exited func()) error {
	err := cmd.Wait()
	exited()
	return err
}
