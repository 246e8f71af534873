package disk

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Boot identifies this boot of the machine: what was written during it survives the death of every process, and may be
// lost with its end. Empty: it is not known, or [Disk.SyncFileSystem] is not one call.
func Boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func syncSystem(f *os.File) error { return supported(unix.Syncfs(int(f.Fd()))) }

// exchange swaps two names atomically. The error is errors.ErrUnsupported if the file system cannot.
func exchange(a, b string) error {
	return supported(unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE))
}

func supported(err error) error {
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return errors.ErrUnsupported
	}
	return err
}
