// Package volume describes file systems: the mount point and the free space for this user. It only reads.
package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Info is the file system of a path at one moment.
type Info struct {
	Path     string // mount point, as seen from Path
	Mount    string // bytes that this user can write
	Free     uint64 // bytes in total
	Size     uint64 // bytes in all
	NoFiles  bool   // no inodes are free
	ReadOnly bool
}

// minFree is the minimum of free bytes: with less, the files of one projection do not fit.
const minFree = 64 << 10

// readOnly is ST_RDONLY of Linux, and MNT_RDONLY of macOS and the BSDs.
const readOnly = 1

// Of returns the file system of a path, or that of its nearest existing folder.
func Of(path string) (Info, error) {
	there, dev, err := existing(path)
	if err != nil {
		return Info{}, err
	}
	var s unix.Statfs_t
	if err := unix.Statfs(there, &s); err != nil {
		return Info{}, &fs.PathError{Op: "statfs", Path: there, Err: err}
	}
	free := s.Bavail
	if os.Geteuid() == 0 {
		free = s.Bfree // root may use reserved blocks
	}
	return Info{
		Path: there, Mount: mountOf(there, dev), Free: uint64(free) * uint64(s.Bsize),
		Size:    uint64(s.Blocks) * uint64(s.Bsize),
		NoFiles: s.Files > 0 && s.Ffree == 0, ReadOnly: uint64(s.Flags)&readOnly != 0,
	}, nil
}

// existing returns the nearest existing folder, without symlinks, and its device.
func existing(path string) (string, uint64, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", 0, err
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			dev, err := device(real)
			return real, dev, err
		}
		up := filepath.Dir(path)
		if up == path || !errors.Is(err, fs.ErrNotExist) {
			return "", 0, err
		}
		path = up
	}
}

func device(path string) (uint64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: errors.ErrUnsupported}
	}
	return uint64(s.Dev), nil
}

// mountOf returns the topmost folder on the same device.
func mountOf(path string, dev uint64) string {
	for {
		up := filepath.Dir(path)
		if above, err := device(up); up == path || err != nil || above != dev {
			return path
		}
		path = up
	}
}

// Full reports whether almost nothing can be written.
func (i Info) Full() bool { return i.Free < minFree || i.NoFiles || i.ReadOnly }

func (i Info) String() string {
	text := fmt.Sprintf("file system %s: %s of %s free", i.Mount, bytes(i.Free), bytes(i.Size))
	if i.NoFiles {
		text += ", no inodes left"
	}
	if i.ReadOnly {
		text += ", mounted read-only"
	}
	return text
}

func bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	size, unit := float64(n)/(1<<10), "KiB"
	for _, next := range []string{"MiB", "GiB", "TiB"} {
		if size < 1<<10 {
			break
		}
		size, unit = size/(1<<10), next
	}
	return fmt.Sprintf("%.1f %s", size, unit)
}

// Error is a write error with its file system.
type Error struct {
	Err  error
	Info Info
}

func (e *Error) Error() string {
	text := e.Info.String()
	if errors.Is(e.Err, syscall.EDQUOT) {
		text += ", your quota is used up"
	}
	return fmt.Sprintf("%v (%s)", e.Err, text)
}

func (e *Error) Unwrap() error { return e.Err }

// Explain adds the file system to an error caused by a full disk, an exhausted quota or a read-only mount. Other
// errors are unchanged, as are errors without a path.
func Explain(err error) error {
	if errors.As(err, new(*Error)) {
		return err
	}
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, syscall.EDQUOT) && !errors.Is(err, syscall.EROFS) {
		return err
	}
	path := pathIn(err)
	if !filepath.IsAbs(path) {
		return err
	}
	info, unknown := Of(path)
	if unknown != nil {
		return err
	}
	return &Error{Err: err, Info: info}
}

// Message is the text of an error for who sent a request: that of [Explain], and what to do about the file system.
func Message(err error) string {
	err = Explain(err)
	var full *Error
	switch {
	case !errors.As(err, &full):
		return err.Error()
	case full.Info.ReadOnly:
		return err.Error() + ". Make it writable, then try again"
	}
	return err.Error() + ". Free space there, then try again"
}

// pathIn returns the path in an error.
func pathIn(err error) string {
	var link *os.LinkError
	var path *fs.PathError
	switch {
	case errors.As(err, &path):
		return path.Path
	case errors.As(err, &link):
		return link.New
	}
	return ""
}
