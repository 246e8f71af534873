//go:build unix && !linux

package supervisor

import "syscall"

// attributes put the agent in its own group. There is no parent-death signal here: an agent outlives a supervisor that is killed.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// adopt does nothing: no process adopts orphans here.
func adopt() {}

// endLeft kills the agent's group, right after the agent was reaped. What has left the group is left alone.
func (s *supervision) endLeft() int {
	s.signal(syscall.SIGKILL)
	return 0
}
