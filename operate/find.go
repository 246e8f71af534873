package operate

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/rundir"
)

// Index remembers where a run's directory is, so that people can name the run by its id.
func Index(stateDir, runID, dir string) error {
	return index(durable.Disk{}, stateDir, runID, dir)
}

func index(disk durable.Disk, stateDir, runID, dir string) error {
	folder := filepath.Join(stateDir, "runs")
	path, line := filepath.Join(folder, runID), []byte(dir+"\n")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, line) {
		return nil // nothing is written: the disk may be full
	}
	if err := disk.Mkdir(folder, 0o700); err != nil {
		return err
	}
	return disk.WriteFile(path, line, 0o600)
}

// NameError says that a name means no run, or more than one.
type NameError struct {
	What  string
	Found []string // the runs that it is the beginning of
}

func (e *NameError) Error() string {
	if len(e.Found) == 0 {
		return e.What + " is no run directory, and no run of this machine begins with it: give a directory or a run id"
	}
	return fmt.Sprintf("%s is ambiguous: it is the beginning of %s", e.What, strings.Join(e.Found, ", "))
}

// Find gives the directory that a person means: a path, or a run's id or the beginning of one. A directory that another program wrote in this
// format is found too; what needs a claim refuses it.
func Find(stateDir, what string) (rundir.Dir, error) {
	if what == "" {
		what = "."
	}
	if fi, err := os.Stat(what); err == nil && fi.IsDir() {
		abs, err := filepath.Abs(what)
		if err != nil {
			return rundir.Dir{}, err
		}
		d := rundir.At(abs)
		if _, err = d.Claim(); errors.Is(err, rundir.ErrNoRun) && d.Foreign() {
			err = nil
		}
		return d, err
	}
	return byID(stateDir, what)
}

func byID(stateDir, what string) (rundir.Dir, error) {
	id, err := fullID(stateDir, what)
	if err != nil {
		return rundir.Dir{}, err
	}
	raw, err := os.ReadFile(filepath.Join(stateDir, "runs", id))
	return rundir.At(strings.TrimSpace(string(raw))), err
}

// fullID completes the beginning of a run's id.
func fullID(stateDir, what string) (string, error) {
	entries, err := os.ReadDir(filepath.Join(stateDir, "runs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), what) && !durable.IsTemp(e.Name()) {
			found = append(found, e.Name())
		}
	}
	if len(found) != 1 {
		return "", &NameError{What: what, Found: found}
	}
	return found[0], nil
}
