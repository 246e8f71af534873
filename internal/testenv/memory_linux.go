package testenv

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryDir is the folder for files in memory; minMemory is the space that the tests need there.
const (
	memoryDir = "/dev/shm"
	minMemory = 4 << 30
)

// UseMemory sets TMPDIR to memory if it has enough space and TMPDIR is unset. Tests kill processes and not
// machines, so they do not need fsync. Tests of package disk use the disk.
func UseMemory() error {
	var fs unix.Statfs_t
	if os.Getenv("TMPDIR") != "" || unix.Statfs(memoryDir, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < minMemory ||
		unix.Access(memoryDir, unix.W_OK) != nil {
		return nil
	}
	return os.Setenv("TMPDIR", memoryDir)
}
