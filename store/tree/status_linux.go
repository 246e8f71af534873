package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// status gives a file's inode and the time of its last change of any kind.
func status(info fs.FileInfo) (inode uint64, ctime time.Time) {
	s := info.Sys().(*syscall.Stat_t)
	return s.Ino, time.Unix(s.Ctim.Unix())
}
