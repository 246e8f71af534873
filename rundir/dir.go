// Package rundir reads run directories. It needs no server, and it never writes.
//
// A run directory holds the journal of a run, events.jsonl, and files that follow from it: meta.json, state.json, logs
// and evidence. docs/run-directory.md documents every file.
package rundir

import (
	"path/filepath"
)

// Dir is a run directory on this host.
type Dir struct {
	Root string
}

// At is the run directory at a path.
func At(root string) Dir { return Dir{Root: root} }

// Path returns the path of a file of the directory. name is relative to the directory and uses slashes.
func (d Dir) Path(name string) string { return filepath.Join(d.Root, filepath.FromSlash(name)) }
