// Package rundir reads, writes, checks and repairs run directories. It needs no server.
//
// A run directory holds the journal of a run, events.jsonl, and files that follow from it: meta.json, state.json, logs
// and evidence. docs/run-directory.md documents every file.
//
// A directory may come from elsewhere. Nothing outside it is read, whatever its links and the names in its events, and
// only regular files are opened.
package rundir

import "github.com/passbook-run/passbook/internal/disk"

// Dir is a run directory on this host. Path returns the path of a file for messages and for other programs; what reads a
// file never leaves the directory.
type Dir struct {
	disk.Folder

	Disk  disk.Disk // for writing; the zero value is the real disk
	Folds *Folds    // of the exports of this process; nil: every one folds the whole journal
}

// At is the run directory at a path.
func At(root string) Dir { return Dir{Folder: disk.Folder{Root: root}} }

// Locked reports whether a process writes the directory.
func (d Dir) Locked() (bool, error) { return d.Held(LockFile) }
