package process

import (
	"io"
	"sync"
	"syscall"
)

// Machine is a machine that does not exist. Its name is the boot id of its processes.
type Machine interface {
	// Alive reports whether a process is still running.
	Alive(id Identity) bool
	// Signal signals a running process.
	Signal(id Identity, sig syscall.Signal)
	// Worker returns the worker process that begins.
	Worker() Identity
	// Start starts the supervisor of a delivery for a worker. It waits for one byte in pipe, and closes ended at its end.
	Start(worker Identity, delivery string) (id Identity, pipe io.WriteCloser, ended chan struct{})
}

var machines sync.Map // of Machine, by name

// Simulate makes m answer for all processes of a machine until end is called. No real process has that boot id, so none
// is signalled in place of a simulated one.
func Simulate(name string, m Machine) (end func()) {
	machines.Store(name, m)
	return func() { machines.Delete(name) }
}

// Simulated returns a simulated machine; nil: there is none of that name.
func Simulated(name string) Machine {
	m, ok := machines.Load(name)
	if !ok {
		return nil
	}
	return m.(Machine)
}
