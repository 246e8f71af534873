// Package process names a process so that it can be found again later, by another process, and never confused with another
// one: a pid alone is given again to a stranger, after a reboot at the latest.
//
// It promises that no signal goes to a process that is not the one that was named. It knows the processes of this machine's
// current boot; on any other machine, or after a reboot, a named process is gone.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrGone says that the named process has ended. A zombie has ended too.
var ErrGone = errors.New("the process has ended")

// Identity is a process, for ever. All of it is compared but Host.
type Identity struct {
	PID int `json:"pid"`
	// StartTime is the kernel's, to be compared and nothing else: its unit differs between systems.
	StartTime string `json:"start_time"`
	// BootID tells one boot of one machine from all others.
	BootID string `json:"boot_id"`
	// Host is for people: the machine's name when the identity was taken.
	Host string `json:"host,omitempty"`
}

// Self is the identity of this process.
func Self() (Identity, error) { return Of(os.Getpid()) }

// Of gives the identity of the process that has this pid now. A zombie has one: see [Identity.Alive]. Without such a
// process the error is [ErrGone].
func Of(pid int) (Identity, error) {
	e, err := lookup(pid)
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	boot, err := bootID()
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	host, err := os.Hostname()
	if err != nil {
		return Identity{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return Identity{PID: pid, StartTime: e.start, BootID: boot, Host: host}, nil
}

// Alive says whether this very process still runs. A process that cannot be looked at is taken for alive: nobody takes over
// from it by mistake.
func (i Identity) Alive() bool {
	e, err := i.entry()
	return err == nil && !e.zombie || err != nil && !errors.Is(err, ErrGone)
}

// AwaitEnd returns nil when the process has ended, or the context's cause if that ends first.
func (i Identity) AwaitEnd(ctx context.Context) error {
	const every = 10 * time.Millisecond // a process that is not a child can only be asked
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for process %d to end: %w", i.PID, context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

// entry is what the kernel's table says of a pid.
type entry struct {
	start  string
	zombie bool
	parent int // its pid
}

// entry looks the process up. The error is ErrGone when its pid is free, or a stranger's.
func (i Identity) entry() (entry, error) {
	if i.PID <= 0 || i.StartTime == "" {
		return entry{}, ErrGone // a zero identity names nobody, least of all the group that kill(0) means
	}
	boot, err := bootID()
	if err != nil {
		return entry{}, err
	}
	if boot != i.BootID {
		return entry{}, ErrGone
	}
	e, err := lookup(i.PID)
	if err != nil {
		return entry{}, err
	}
	if e.start != i.StartTime {
		return entry{}, ErrGone
	}
	return e, nil
}
