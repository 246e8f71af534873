//go:build unix && !linux

package supervisor

import (
	"os"
	"syscall"
)

// agentAttributes put the agent in its own group. Without a parent-death signal the agent outlives a killed supervisor.
func agentAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// sealed does nothing: a process cannot open its standard input for writing here.
func sealed(f *os.File) (*os.File, error) { return f, nil }

// becomeSubreaper does nothing: there are no subreapers here.
func becomeSubreaper() {}

// killChildren kills the agent's group right after the agent was reaped. Processes in other groups are not killed.
func (s *supervision) killChildren() int {
	s.signal(syscall.SIGKILL)
	return 0
}

// limitResources does nothing: there are no sandboxes here.
func limitResources() error { return nil }

// hideSockets does nothing, likewise.
func hideSockets(string) error { return nil }
