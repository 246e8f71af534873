// Package process identifies processes so that another process can find them later and never confuses them: a pid
// alone is reused.
//
// No signal goes to another process than the identified one. Identities are valid for one boot of one machine:
// elsewhere or after a reboot the process is gone.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// ErrGone means that the process has ended. A zombie has ended too.
var ErrGone = errors.New("the process has ended")

// Identity identifies a process. All fields except Host are compared.
type Identity struct {
	PID int `json:"pid"`
	// StartTime is the kernel's value, for comparison only: its unit differs between systems.
	StartTime string `json:"start_time"`
	// BootID identifies the boot and the machine.
	BootID string `json:"boot_id"`
	// Host is the machine's name, for display.
	Host string `json:"host,omitempty"`
}

// Self returns the identity of this process.
func Self() (Identity, error) { return Of(os.Getpid()) }

// Of returns the identity of the process that has this pid now, even of a zombie (see [Identity.Alive]). Without
// such a process the error is [ErrGone].
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

// Text names the process for another program of this package, which reads it with [Parse].
func (i Identity) Text() string {
	return fmt.Sprintf("%d@%s/%s/%s", i.PID, i.Host, i.StartTime, i.BootID)
}

// Parse reads the text of an identity; false: it is none.
func Parse(text string) (i Identity, ok bool) {
	parts := strings.Split(text, "/")
	pid, host, at := strings.Cut(parts[0], "@")
	if len(parts) != 3 || !at || parts[1] == "" || parts[2] == "" {
		return i, false
	}
	n, err := strconv.Atoi(pid)
	return Identity{PID: n, Host: host, StartTime: parts[1], BootID: parts[2]}, err == nil && n > 0
}

// Alive reports whether the process is still running. An unreadable process counts as alive, so that it is never
// replaced by mistake.
func (i Identity) Alive() bool {
	e, err := i.entry()
	return err == nil && !e.zombie || err != nil && !errors.Is(err, ErrGone)
}

// AwaitEnd returns nil when the process has ended, or the context's cause if that ends first.
func (i Identity) AwaitEnd(ctx context.Context) error {
	const every = 10 * time.Millisecond // a process that is not a child can only be polled
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

// entry is a row of the kernel's process table.
type entry struct {
	start  string
	zombie bool
	parent int // pid
}

// entry looks the process up. The error is ErrGone if its pid is free or reused.
func (i Identity) entry() (entry, error) {
	if i.PID <= 0 || i.StartTime == "" {
		return entry{}, ErrGone // a zero identity must not match kill(0)'s group
	}
	if m := Simulated(i.BootID); m != nil {
		if !m.Alive(i) {
			return entry{}, ErrGone
		}
		return entry{start: i.StartTime}, nil
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
