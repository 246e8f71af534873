// Package rundir reads, writes, checks and repairs run directories. It needs no server.
//
// A run directory holds the journal of a run, events.jsonl, and files that follow from it: meta.json, state.json, logs
// and evidence. docs/run-directory.md documents every file.
//
// A directory may come from elsewhere. Nothing outside it is read, whatever its links and the names in its events, and
// only regular files are opened.
package rundir

import (
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/internal/disk"
)

// Dir is a run directory on this host.
type Dir struct {
	Root string
	// Trust reads also a directory, or files in it, of another user. Without it they are refused.
	Trust bool

	Disk  disk.Disk // for writing; the zero value is the real disk
	Folds *Folds    // of the exports of this process; nil: every one folds the whole journal
}

// At is the run directory at a path.
func At(root string) Dir { return Dir{Root: root} }

// Path returns the path of a file of the directory, for messages and for other programs. name is relative to the
// directory and uses slashes. Read files through the methods of Dir, which never leave the directory.
func (d Dir) Path(name string) string { return d.folder().Path(name) }

func (d Dir) folder() disk.Folder { return disk.Folder{Root: d.Root, Trust: d.Trust} }

// Rel returns the name of a path in the directory; false if it is not below it.
func (d Dir) Rel(path string) (name string, inside bool) { return d.folder().Rel(path) }

// OpenFile opens a regular file of the directory for reading.
func (d Dir) OpenFile(name string) (*os.File, error) { return d.folder().OpenFile(name) }

// ReadFile reads a regular file of the directory.
func (d Dir) ReadFile(name string) ([]byte, error) { return d.folder().ReadFile(name) }

// ReadRaw returns the bytes of a file; nil if it is missing.
func (d Dir) ReadRaw(name string) ([]byte, error) { return disk.ReadRaw(d.folder(), name) }

// ReadJSON decodes a file. The error is [ErrDamaged] if it cannot be parsed.
func (d Dir) ReadJSON(name string, v any) error { return disk.ReadJSON(d.folder(), name, v) }

// DigestOf returns the SHA-256 of a file; empty if it is missing.
func (d Dir) DigestOf(name string) (string, error) { return disk.DigestOf(d.folder(), name) }

// Entries returns the names in a folder of the directory; none if it is missing.
func (d Dir) Entries(name string) ([]string, error) { return disk.Entries(d.folder(), name) }

// Has reports whether a name leads to something in the directory.
func (d Dir) Has(name string) bool { return d.folder().Has(name) }

// Locked reports whether a process writes the directory.
func (d Dir) Locked() (bool, error) { return disk.Held(d.folder(), LockFile) }

// Stat describes a file of the directory, or the target of a link to one.
func (d Dir) Stat(name string) (fs.FileInfo, error) { return d.folder().Stat(name) }

// Lstat describes a file of the directory, or a link.
func (d Dir) Lstat(name string) (fs.FileInfo, error) { return d.folder().Lstat(name) }

// ReadDir lists a folder of the directory.
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) { return d.folder().ReadDir(name) }

// Walk visits everything below a folder of the directory, with names relative to the directory. Links are not followed.
func (d Dir) Walk(name string, visit fs.WalkDirFunc) error { return d.folder().Walk(name, visit) }
