// Package durable writes files that must survive a crash.
//
// It is the only place in Passbook that renames, cuts or writes files of a run
// directory or of a store. Every function says what is on disk when it returns
// without an error; whatever it returns, a reader never sees half a file at a
// path that was replaced or created here, and a growing file never loses a byte
// that it held before.
//
// "On disk" means that fsync has returned for the file, and for the folder
// where a name was added. It does not help against a disk that lies about that.
//
// It does not arrange who may write: two writers of one file need a [Lock].
package durable

// Disk is the file system with a hook for tests. Its zero value is ready to
// use, and it may be copied and used by any number of goroutines.
type Disk struct {
	// Hook, when set, is called before each step. An error makes that step
	// fail with it, and the operation goes on as after any failed step. A hook
	// that fails from the k-th call on, and so the cleaning up too, leaves the
	// disk as a crash before that step would. An error of type [Torn] makes a
	// write stop in its middle.
	Hook func(Step) error
}

// Step is one change, or one promise, that an operation asks of the file system.
type Step struct {
	Op   Op
	Path string
	Data []byte // of a write: what is to be added at the end of the file; not to be changed
}

// Op names a kind of step.
type Op string

// The steps. Reading is not one of them, except for the check of what was
// written.
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
)
