package operations

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Index records the directory of a run, so that operators can name the run by its id.
func Index(stateDir, runID, dir string) error {
	return index(disk.Disk{}, stateDir, runID, dir)
}

func index(disk disk.Disk, stateDir, runID, dir string) error {
	path, line := indexEntry(stateDir, runID), []byte(dir+"\n")
	if have, err := os.ReadFile(path); err == nil && bytes.Equal(have, line) {
		return nil // nothing is written: the disk may be full
	}
	if err := disk.Mkdir(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return disk.WriteFile(path, line, 0o600)
}

// indexEntry returns the file that has the directory of a run.
func indexEntry(stateDir, runID string) string { return filepath.Join(stateDir, "index", runID) }

// NameError reports a name that matches no run, or several.
type NameError struct {
	What  string
	Found []string // ids that start with it
	IDs   bool     // runs are named by ids only
	On    bool     // What is a folder that the found runs work on
}

func (e *NameError) Error() string {
	switch {
	case e.On:
		return fmt.Sprintf("%s is no run directory, and several runs work on it: name one of %s", e.What,
			strings.Join(e.Found, ", "))
	case len(e.Found) == 0 && e.IDs:
		return fmt.Sprintf("find run %s: no run of this host has that id, or an id that begins with it; to list the runs, "+
			"run: starter list", e.What)
	case len(e.Found) == 0:
		return e.What + " is not a run directory, and no run id of this machine starts with it: name a directory or a " +
			"run id"
	}
	return fmt.Sprintf("%s is ambiguous: it is the beginning of %s", e.What, strings.Join(e.Found, ", "))
}

// Find returns the directory that a name means: a path, a run's id, or the beginning of one. A directory of another
// user is refused unless trust is set.
func Find(stateDir, what string, trust bool) (rundir.Dir, error) {
	if what == "" {
		what = "."
	}
	if fi, err := os.Stat(what); err == nil && fi.IsDir() {
		abs, err := filepath.Abs(what)
		if err != nil {
			return rundir.Dir{}, err
		}
		d := rundir.At(abs)
		d.Trust = trust
		_, err = d.Claim()
		return d, err
	}
	d, err := byID(stateDir, what)
	d.Trust = trust
	return d, err
}

// FindHere is Find for verbs that need the directory. The error for a moved or deleted one is a [MissingError].
func FindHere(stateDir, what string, trust bool) (rundir.Dir, error) {
	d, err := Find(stateDir, what, trust)
	id, unknown := fullID(stateDir, what)
	if err != nil || unknown != nil {
		return d, err
	}
	if claim, cerr := d.Claim(); errors.Is(cerr, rundir.ErrNoRun) || cerr == nil && claim.RunID != id {
		err = &MissingError{RunID: id, Dir: d.Root}
	}
	return d, err
}

// MissingError reports that the directory of a run is not where this machine has recorded it.
type MissingError struct {
	RunID, Dir string
	IDs        bool // runs are named by ids only
}

func (e *MissingError) Error() string {
	moved := "name its new path"
	if e.IDs {
		moved = "move it back"
	}
	return fmt.Sprintf("find run %s: %s, where it was, has no such run; if the directory was moved, %s; "+
		"if it was deleted, run: starter rebuild %s --output-dir %s", e.RunID, e.Dir, moved, e.RunID, shell.Quote(e.Dir))
}

// CompleteID completes the beginning of the id of a run that this machine has recorded. Another text is returned
// unchanged.
func CompleteID(stateDir, what string) string {
	if id, err := fullID(stateDir, what); err == nil {
		return id
	}
	return what
}

func byID(stateDir, what string) (rundir.Dir, error) {
	if of := run.OfLane(what); of != "" {
		return laneByID(stateDir, of, what)
	}
	id, err := fullID(stateDir, what)
	if err != nil {
		return rundir.Dir{}, err
	}
	raw, err := os.ReadFile(indexEntry(stateDir, id))
	return rundir.At(strings.TrimSpace(string(raw))), err
}

// laneByID returns the directory of a lane, which is in that of its run.
func laneByID(stateDir, of, id string) (rundir.Dir, error) {
	d, err := byID(stateDir, of)
	if err != nil {
		return d, err
	}
	name := id[strings.LastIndexByte(id, '.')+1:]
	stages, err := os.ReadDir(d.Path(run.LanesDir))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	for _, stage := range stages {
		lane := rundir.At(d.Path(run.LanesDir + "/" + stage.Name() + "/" + name))
		if claim, err := lane.Claim(); err == nil && claim.RunID == id {
			return lane, nil
		}
	}
	return d, &NameError{What: id, IDs: true}
}

// fullID completes the beginning of a run's id.
func fullID(stateDir, what string) (string, error) {
	entries, err := os.ReadDir(indexEntry(stateDir, ""))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var found []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), what) && !disk.IsTemp(e.Name()) {
			found = append(found, e.Name())
		}
	}
	if len(found) != 1 {
		return "", &NameError{What: what, Found: found}
	}
	return found[0], nil
}
