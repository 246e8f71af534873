package console

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/internal/console/login"
	"github.com/passbook-run/passbook/internal/durable"
)

// runningFolder has a lock for each running console. Its owner's record has the URL.
func runningFolder(stateDir string) string { return filepath.Join(stateDir, "console", "running") }

// mark records a running console until the lock is removed or the process ends.
func mark(ctx context.Context, stateDir, base string, now time.Time) (*durable.Lock, error) {
	folder := runningFolder(stateDir)
	if err := (durable.Disk{}).Mkdir(folder, 0o700); err != nil {
		return nil, fmt.Errorf("record the console: %w", err)
	}
	name := fmt.Sprintf("%d-%s", os.Getpid(), strconv.FormatInt(now.UnixNano(), 36))
	l, err := durable.WaitLock(ctx, filepath.Join(folder, name), durable.Self(base, now))
	if err != nil {
		return nil, fmt.Errorf("record the console: %w", err)
	}
	return l, nil
}

// running returns the URL of the running console that was started last; empty: none runs. It removes the records of
// consoles that were killed.
func running(stateDir string) (base string, err error) {
	folder := runningFolder(stateDir)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("find the running console: %w", err)
	}
	var last durable.Owner
	for _, e := range entries {
		l, err := durable.TryLock(filepath.Join(folder, e.Name()), durable.Owner{})
		var held *durable.ErrHeld
		switch {
		case errors.As(err, &held):
			if held.Owner.What != "" && !held.Owner.Since.Before(last.Since) {
				last = held.Owner
			}
			continue
		case err == nil:
			err = l.Remove()
		}
		if err != nil {
			return "", fmt.Errorf("find the running console: %w", err)
		}
	}
	return last.What, nil
}

// Link makes a login link for the running console of a state directory that was started last.
func Link(stateDir string, now time.Time) (string, error) {
	base, err := running(stateDir)
	if err != nil {
		return "", err
	}
	if base == "" {
		return "", invalid("make a login link: no console runs with the state directory %s; start it with: "+
			"starter console", stateDir)
	}
	path, err := login.NewLink(stateDir, now)
	if err != nil {
		return "", err
	}
	return base + path, nil
}
