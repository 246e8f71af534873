//go:build !linux

package disk

import (
	"errors"
	"os"
)

// Boot identifies this boot of the machine: what was written during it survives the death of every process, and may be
// lost with its end. Empty: it is not known, or [Disk.SyncFileSystem] is not one call.
func Boot() string { return "" }

func syncSystem(*os.File) error { return errors.ErrUnsupported }

func exchange(_, _ string) error { return errors.ErrUnsupported }
