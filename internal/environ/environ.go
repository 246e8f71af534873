// Package environ stores, on one host, the environment that a start or resume of a run passes to the run's calls:
// PATH and the variables for its agents.
//
// A reader gets a complete environment or an error; only the user who stored it can read it, and environments of
// other users are not used. It does not decide which variables are allowed, and nothing leaves the host.
//
// \t<state>/environ/<run>.json    0600, in a folder of mode 0700
package environ

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

const (
	folder  = "environ"
	suffix  = ".json"
	version = 1
)

// ErrNotPrivate means that an environment file belongs to another user or is readable by others. It is not used.
var ErrNotPrivate = errors.New("not private to this user")

// Environment is what one start or resume stores.
type Environment struct {
	Version   int        `json:"version"`
	RunID     string     `json:"run_id"`
	By        string     `json:"by"` // start or resume
	At        time.Time  `json:"at"`
	Variables []string   `json:"variables"`         // NAME=value, sorted
	Expires   *time.Time `json:"expires,omitempty"` // of a closed run: its last notices may need it until then
}

// Save replaces the environment of a run. On return it is on disk. undo restores the previous one, unless it was
// replaced again meanwhile.
func Save(stateDir string, e Environment) (undo func() error, err error) {
	path, err := Path(stateDir, e.RunID)
	if err != nil {
		return nil, err
	}
	e.Version = version
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("store the environment of run %s: %w", e.RunID, err)
	}
	if err := (disk.Disk{}).Mkdir(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("store the environment of run %s: %w", e.RunID, err)
	}
	former, missing := os.ReadFile(path)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return nil, fmt.Errorf("store the environment of run %s: %w", e.RunID, missing)
	}
	if err := write(path, data); err != nil {
		return nil, fmt.Errorf("store the environment of run %s: %w", e.RunID, err)
	}
	return func() error {
		now, err := os.ReadFile(path)
		switch {
		case err != nil || !bytes.Equal(now, data):
			return nil //nolint:nilerr // replaced or removed meanwhile
		case missing != nil:
			return Remove(stateDir, e.RunID)
		}
		return write(path, former)
	}, nil
}

func write(path string, data []byte) error { return disk.Disk{}.WriteFile(path, data, 0o600) }

// Load reads the environment of a run. fs.ErrNotExist: there is none, or it has expired.
func Load(stateDir, runID string) (Environment, error) {
	path, err := Path(stateDir, runID)
	if err != nil {
		return Environment{}, err
	}
	e, err := read(path)
	if err == nil && e.Expires != nil && time.Now().After(*e.Expires) {
		err = fmt.Errorf("%s has expired: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return Environment{}, fmt.Errorf("read the environment of run %s: %w", runID, err)
	}
	return e, nil
}

func read(path string) (e Environment, err error) {
	f, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer disk.Close(f)
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	if !isPrivate(info) {
		return e, fmt.Errorf("%s: %w", path, ErrNotPrivate)
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	if e.Version != version {
		return e, fmt.Errorf("%s has version %d; this program reads version %d", path, e.Version, version)
	}
	return e, nil
}

func isPrivate(info fs.FileInfo) bool {
	sys, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid() && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0
}

// Expire keeps the environment of a closed run until a time, if there is one.
func Expire(stateDir, runID string, at time.Time) error {
	path, err := Path(stateDir, runID)
	if err != nil {
		return err
	}
	e, err := read(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && e.Expires != nil {
		return nil
	}
	if err != nil {
		return err
	}
	e.Expires = &at
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	return write(path, data)
}

// Remove deletes the environment of a run, if there is one.
func Remove(stateDir, runID string) error {
	path, err := Path(stateDir, runID)
	if err != nil {
		return err
	}
	if err := (disk.Disk{}).Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the environment of run %s: %w", runID, err)
	}
	return nil
}

// Runs returns the ids of the runs with an environment.
func Runs(stateDir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && !disk.IsTemp(e.Name()) {
			out = append(out, id)
		}
	}
	return out, nil
}

// Path returns the file of a run's environment. An id that is not a valid file name has none.
func Path(stateDir, runID string) (string, error) {
	if runID == "" || strings.HasPrefix(runID, ".") || strings.ContainsAny(runID, `/\`) {
		return "", fmt.Errorf("environment of run %q: %w", runID, fs.ErrNotExist)
	}
	return filepath.Join(stateDir, folder, runID+suffix), nil
}
