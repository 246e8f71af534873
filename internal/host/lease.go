package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/disk"
)

// Attach registers that this process needs the background processes. Until release or its end, [Alone] returns false.
// It waits while another process stops the background processes, so attach before you ensure them.
func Attach(ctx context.Context, stateDir string) (release func() error, err error) {
	if err := OpenState(ctx, stateDir); err != nil {
		return nil, err
	}
	f, err := openLease(stateDir)
	if err != nil {
		return nil, fmt.Errorf("attach to %s: %w", stateDir, err)
	}
	tick := time.NewTicker(pollInterval) // flock does not support contexts
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

// Alone reports whether no process is attached. If so, none can attach before release or the end of this process, so
// the caller can stop the background processes.
func Alone(stateDir string) (release func() error, alone bool, err error) {
	f, err := openLease(stateDir)
	if err != nil {
		return nil, false, fmt.Errorf("check for attached processes of %s: %w", stateDir, err)
	}
	alone, err = tryFlock(f, unix.LOCK_EX)
	if err != nil {
		return nil, false, errors.Join(fmt.Errorf("check for attached processes of %s: %w", stateDir, err), f.Close())
	}
	if !alone {
		return nil, false, f.Close()
	}
	return f.Close, true, nil
}

// NoTerminalAttached reports whether no process is attached now.
func NoTerminalAttached(stateDir string) (bool, error) {
	release, alone, err := Alone(stateDir)
	if !alone {
		return false, err
	}
	return true, release()
}

func openLease(stateDir string) (*os.File, error) {
	if err := (disk.Disk{}).Mkdir(stateDir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(filepath.Join(stateDir, leaseFile), os.O_RDWR|os.O_CREATE, 0o600)
}

// tryFlock acquires the lock if it is free.
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
