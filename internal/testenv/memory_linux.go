package testenv

import (
	"os"

	"golang.org/x/sys/unix"
)

// memory is where Linux keeps files in memory, and room is what the tests may need there at once.
const (
	memory = "/dev/shm"
	room   = 4 << 30
)

// UseMemory makes this process and its children keep temporary files in memory if there is room, and TMPDIR is not set. Tests kill processes, not
// machines, so no test depends on what fsync promises, and waiting for it takes longer than most tests. Tests of package durable stay on the disk.
func UseMemory() error {
	var fs unix.Statfs_t
	if os.Getenv("TMPDIR") != "" || unix.Statfs(memory, &fs) != nil || fs.Bavail*uint64(fs.Bsize) < room || unix.Access(memory, unix.W_OK) != nil {
		return nil
	}
	return os.Setenv("TMPDIR", memory)
}
