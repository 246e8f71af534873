package tree

import (
	"io/fs"
	"syscall"
	"time"
)

// status returns a file's inode and ctime.
func status(info fs.FileInfo) (inode uint64, ctime time.Time) {
	s := info.Sys().(*syscall.Stat_t)
	return s.Ino, time.Unix(s.Ctimespec.Unix())
}
