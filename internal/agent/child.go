package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
)

// Exit is how a child ended.
type Exit = supervisor.Exit

// ErrLost is the error of a child whose supervisor was killed with it: how the call ended is unknown.
var ErrLost = supervisor.ErrNoExit

// Child is a running agent under its supervisor. Any worker that finds it may wait for it.
type Child struct{ p *supervisor.Process }

// Start lets a waiting supervisor start the agent. After an error nothing runs, not even the supervisor;
// SpawnFailure classifies the error. Errors of the system call itself are returned by Result.
func Start(p *supervisor.Process, c Command) (*Child, error) {
	call, err := c.call()
	if err == nil {
		err = c.createFiles()
	}
	if err != nil {
		return nil, errors.Join(err, p.Abandon())
	}
	if err := p.StartAgent(call, c.Environ()); err != nil {
		return nil, fmt.Errorf("start agent %s: %w", c.Argv[0], err)
	}
	return &Child{p: p}, nil
}

// Join returns the child of a delivery that another worker started.
func Join(dir string, id process.Identity) *Child { return &Child{p: supervisor.Attach(dir, id)} }

// Kill ends the child and its descendants: SIGTERM now, SIGKILL after the grace period. It does not wait; the
// first cause counts. An error means that the cause was not stored or the child not signalled.
func (c *Child) Kill(cause string) error { return c.p.Stop(cause) }

// Done is closed when the child and its descendants are gone.
func (c *Child) Done() <-chan struct{} { return c.p.Done() }

// Result waits for Done and returns how the child ended. The error is [ErrLost], or a [supervisor.SpawnError] if
// it never started.
func (c *Child) Result() (Exit, error) {
	<-c.Done()
	return supervisor.ReadExit(c.p.Dir())
}

// Run lets a waiting supervisor run a command until it ends. If ctx ends before, the command is ended for this cause,
// and the error is that of ctx.
func Run(ctx context.Context, p *supervisor.Process, c Command, cause string) (Exit, error) {
	child, err := Start(p, c)
	if err != nil {
		return Exit{}, err
	}
	select {
	case <-child.Done():
		return child.Result()
	case <-ctx.Done():
	}
	if err := child.Kill(cause); err != nil {
		return Exit{}, errors.Join(ctx.Err(), err)
	}
	<-child.Done()
	return Exit{}, ctx.Err()
}
