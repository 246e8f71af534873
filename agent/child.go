package agent

import (
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/supervisor"
)

// Exit says how a child ended.
type Exit = supervisor.Exit

// ErrLost says that a child's supervisor ended without a record, and the child with it: how the call ended is unknown.
var ErrLost = supervisor.ErrNoExit

// Child is a running agent under its supervisor. It belongs to no worker: whoever finds it may wait for it.
type Child struct{ p *supervisor.Process }

// Start lets a waiting supervisor start the agent. An error means that nothing runs, and the supervisor neither; SpawnFailure classifies it. What
// only the system can refuse is known later, from Result.
func Start(p *supervisor.Process, c Command) (*Child, error) {
	call, err := c.call()
	if err == nil {
		err = c.open()
	}
	if err != nil {
		return nil, errors.Join(err, p.Abandon())
	}
	if err := p.Begin(call, c.Environ()); err != nil {
		return nil, fmt.Errorf("start agent %s: %w", c.Argv[0], err)
	}
	return &Child{p: p}, nil
}

// Join gives the child of a delivery that another worker has started, by its supervisor.
func Join(dir string, id process.Identity) *Child { return &Child{p: supervisor.Attach(dir, id)} }

// Kill asks for the end of the child and of all that it has started: SIGTERM now, SIGKILL after the grace. It does not wait; the first cause counts. An
// error says that the cause is not on disk, or that the child was not told.
func (c *Child) Kill(cause string) error { return c.p.Stop(cause) }

// Done is closed when nothing of the child is left.
func (c *Child) Done() <-chan struct{} { return c.p.Done() }

// Result waits for Done and says how the child ended. The error is [ErrLost], or a [supervisor.SpawnError] if it was never started.
func (c *Child) Result() (Exit, error) {
	<-c.Done()
	return supervisor.ReadExit(c.p.Dir())
}

// Identity names the supervisor.
func (c *Child) Identity() process.Identity { return c.p.Identity() }
