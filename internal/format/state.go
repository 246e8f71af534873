package format

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/build"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/rundir"
)

// StateFile records the format of a state directory. A directory without it has version 1.
const StateFile = "format.json"

const upgradeLock = "format.lock" // held during an upgrade

// Mark is the content of StateFile.
type Mark struct {
	Version int    `json:"version"`
	Program string `json:"program"` // the release that wrote this version
}

// Step turns a state directory of one version into the next one. It may be interrupted, and is then executed again.
type Step func(dir string) error

// Directories is how a program reads and writes state directories.
type Directories struct {
	steps []Step // steps[i] turns version i+1 into i+2
	disk  disk.Disk
}

// State returns the format of state directories of this program.
func State() Directories { return Directories{} }

// Version returns the version that this program writes.
func (f Directories) Version() int { return len(f.steps) + 1 }

// Open is called by every program before it writes to a state directory. It records the version of a directory that has
// none, and upgrades an older one in place: an interrupted upgrade is continued by the next call. idle returns an error
// while processes of an older version may write there. A newer version is a [*rundir.NewerError], and nothing is
// changed.
func (f Directories) Open(ctx context.Context, dir string, idle func() error) error {
	m, err := f.check(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f.first(ctx, dir, idle)
	case err == nil && m.Version < f.Version():
		return f.upgrade(ctx, dir, idle)
	}
	return err
}

// Check is Open for a program that stops processes of an older version: it upgrades nothing.
func (f Directories) Check(dir string) error {
	if _, err := f.check(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (f Directories) check(dir string) (Mark, error) {
	m, err := ReadState(dir)
	if err == nil && m.Version > f.Version() {
		err = &rundir.NewerError{Op: "open state directory", Object: dir, File: StateFile, Version: m.Version,
			Known: f.Version(), Program: m.Program, Else: ", or set PASSBOOK_STATE_DIR to another directory"}
	}
	return m, err
}

// first records the version of a directory without one: of a new directory the current one, else version 1.
func (f Directories) first(ctx context.Context, dir string, idle func() error) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("open state directory: %w", err)
	}
	version := 1
	if len(entries) == 0 {
		version = f.Version()
	}
	if err := f.disk.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if _, err := f.disk.CreateExclusive(filepath.Join(dir, StateFile), encode(version), 0o600); err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if version < f.Version() {
		return f.upgrade(ctx, dir, idle)
	}
	return nil
}

func (f Directories) upgrade(ctx context.Context, dir string, idle func() error) (err error) {
	lock, err := f.disk.WaitLock(ctx, filepath.Join(dir, upgradeLock), disk.Self("upgrade", time.Now()))
	if err != nil {
		return fmt.Errorf("upgrade state directory %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	m, err := ReadState(dir)
	if err != nil {
		return err
	}
	if m.Version < f.Version() {
		if err := idle(); err != nil {
			return fmt.Errorf("upgrade state directory %s to version %d: %w; nothing was changed", dir, f.Version(), err)
		}
	}
	for v := m.Version; v < f.Version(); v++ {
		if err = f.steps[v-1](dir); err == nil {
			err = f.disk.WriteFile(filepath.Join(dir, StateFile), encode(v+1), 0o600)
		}
		if err != nil {
			return fmt.Errorf("upgrade state directory %s to version %d: %w; the next start continues", dir, v+1, err)
		}
	}
	return nil
}

func encode(version int) []byte {
	raw, err := disk.Marshal(Mark{Version: version, Program: build.Version()})
	if err != nil {
		panic(err) // a number and a text
	}
	return raw
}

// ReadState reads the format of a state directory. fs.ErrNotExist: it has none, which is version 1.
func ReadState(dir string) (Mark, error) {
	path := filepath.Join(dir, StateFile)
	raw, err := os.ReadFile(path)
	if err != nil {
		return Mark{}, fmt.Errorf("open state directory: %w", err)
	}
	m := Mark{Version: rundir.VersionOf(raw)}
	if m.Version < 1 {
		return m, fmt.Errorf("open state directory: %s has no version; restore the file, or remove it: a directory "+
			"without it has version 1", path)
	}
	var rest struct {
		Program string `json:"program"`
	}
	if json.Unmarshal(raw, &rest) == nil { // a newer version may have another shape
		m.Program = rest.Program
	}
	return m, nil
}
