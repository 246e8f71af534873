// Package disk reads and writes files.
//
// [Disk] writes files that survive a crash. It is the only type in Passbook that renames, truncates or writes files of
// a run directory or of a store. In a run directory it does so through [Disk.In], which never writes outside. Each
// function documents what is on disk when it returns without an error. In any case, a reader never sees part of a file
// at a path that was replaced or created here, and a growing file never loses a byte.
//
// "On disk" means that fsync has returned for the file, and for the folder of a new name. It does not help if the disk
// reports a sync that did not happen. The package does not coordinate writers: two writers of one file need a [Lock].
//
// [Folder] opens what is below a folder that another user may have written. [OpenIn], [OpenFile] and [ReadFile] open
// files that another program, such as an agent, may have replaced by anything: they never block on a pipe, never follow
// a symlink out of the folder, and accept only regular files of this user. They do not judge contents.
package disk

// Disk is the file system with a hook for tests. Its zero value is ready to use. It may be copied, and is safe for
// concurrent use.
type Disk struct {
	// Hook, if set, is called before each step. Its error makes that step fail, and the operation continues as after
	// any failed step. A hook that fails from the k-th call on also fails the cleanup, so it leaves the disk as a crash
	// before that step does. An error of type [Torn] stops a write in its middle.
	Hook func(Step) error
	// Reads, if set, is called before a store on this disk reads a file. Its error is that of the read.
	Reads func(path string) error
	// Folders, if set, remembers folders whose names are on disk, for as long as this process lives: they are not synced
	// again before something is created in them.
	Folders *Folders

	within string // of [Disk.In]
}

// Step is one change or one promise that an operation requests from the file system.
type Step struct {
	Op   Op
	Path string
	Data []byte // of a write: the bytes to append, which the hook must not change
}

// Op is a kind of step.
type Op string

// The kinds of steps. Reading is none, except for the verification of written data.
const (
	OpMkdir      Op = "mkdir"
	OpCreate     Op = "create"
	OpWrite      Op = "write"
	OpSync       Op = "sync"
	OpReadBack   Op = "read back"
	OpRename     Op = "rename"
	OpExchange   Op = "exchange"
	OpLink       Op = "link"
	OpRemove     Op = "remove"
	OpTruncate   Op = "truncate"
	OpSyncFolder Op = "sync folder"
	OpSyncSystem Op = "sync file system"
)
