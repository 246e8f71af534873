package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/durable"
)

// Attach says that this process needs the background processes: until release, or its own death, nobody is [Alone]. Attach
// first, ensure then: it waits for one that is alone and is stopping things.
func Attach(ctx context.Context, stateDir string) (release func() error, err error) {
	f, err := openLease(stateDir)
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", stateDir, err)
	}
	tick := time.NewTicker(pollInterval) // flock cannot wait for a context
	defer tick.Stop()
	for {
		ok, err := tryFlock(f, unix.LOCK_SH)
		if ok {
			return f.Close, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("attach to %s: %w", stateDir, err), f.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("attach to %s: %w", stateDir, context.Cause(ctx)), f.Close())
		case <-tick.C:
		}
	}
}

// Alone says whether nobody is attached. If so, nobody can attach before release or the end of this process, and what it
// stops in between is not pulled away under anybody.
func Alone(stateDir string) (release func() error, alone bool, err error) {
	f, err := openLease(stateDir)
	if err != nil {
		return nil, false, fmt.Errorf("see who is attached to %s: %w", stateDir, err)
	}
	alone, err = tryFlock(f, unix.LOCK_EX)
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("see who is attached to %s: %w", stateDir, err), f.Close())
	}
	if !alone {
		return nil, false, f.Close()
	}
	return f.Close, true, nil
}

// NobodyAttached is [Alone] for a moment.
func NobodyAttached(stateDir string) (bool, error) {
	release, alone, err := Alone(stateDir)
	if !alone {
		return false, err
	}
	return true, release()
}

func openLease(stateDir string) (*os.File, error) {
	if err := (durable.Disk{}).Mkdir(stateDir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(stateDir, leaseFile), os.O_RDWR|os.O_CREATE, 0o600)
}

// tryFlock takes the lock if it is free.
func tryFlock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}
