package operations

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/passbook-run/passbook/rundir"
)

// Rows remembers the rows of run directories for a program that lists runs again and again. A directory is read again
// if one of its files that a row depends on has changed. The zero value is ready, and a nil one remembers nothing. It
// is safe for concurrent use.
type Rows struct {
	mu    sync.Mutex
	known map[string]known // by directory
}

type known struct {
	row   Row
	stamp stamp
}

// rowFiles are the files that a row depends on.
var rowFiles = [...]string{rundir.ClaimFile, rundir.MetaFile, rundir.EventsFile, rundir.OwnerFile}

// stamp identifies versions of the files.
type stamp [len(rowFiles)]struct {
	size int64
	at   time.Time
}

// unsettled is the time after which a change of a file changes its time, on every file system.
const unsettled = 2 * time.Second

// stampOf returns the stamp of a directory. It is of no use if a file has just changed: another change may have the
// same time. Nothing of the files is read, so links are followed.
func stampOf(d rundir.Dir, now time.Time) (s stamp, useful bool) {
	useful = true
	for i, name := range rowFiles {
		fi, err := os.Stat(filepath.Join(d.Root, name))
		if err != nil {
			continue
		}
		s[i].size, s[i].at = fi.Size(), fi.ModTime()
		useful = useful && now.Sub(s[i].at) > unsettled
	}
	return s, useful
}

// Here is the function [Here] with what is remembered.
func (r *Rows) Here(stateDir, runRoot string) (rows []Row, lost []string, err error) {
	if r == nil {
		return Here(stateDir, runRoot)
	}
	now := time.Now()
	return here(stateDir, runRoot, func(d rundir.Dir) (Row, error) {
		at, useful := stampOf(d, now)
		r.mu.Lock()
		have, there := r.known[d.Root]
		r.mu.Unlock()
		if there && have.stamp == at {
			return have.row, nil
		}
		row, err := rowOf(d)
		r.mu.Lock()
		defer r.mu.Unlock()
		if err != nil || !useful || row.why != nil && !errors.Is(row.why, fs.ErrNotExist) { // the disk may recover
			delete(r.known, d.Root)
			return row, err
		}
		if r.known == nil {
			r.known = map[string]known{}
		}
		r.known[d.Root] = known{row, at}
		return row, nil
	})
}
