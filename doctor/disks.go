package doctor

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/store"
)

// Room on a disk, in bytes.
const (
	littleRoom = 1 << 30
	noRoom     = 64 << 20
)

// disks looks at the places that are written to.
func (e *examiner) disks(ctx context.Context) {
	e.folder("state", e.Settings.StateDir, "PASSBOOK_STATE_DIR")
	e.folder("run root", e.Settings.RunRoot, "PASSBOOK_RUN_ROOT")
	if u, err := url.Parse(e.Settings.Store); err == nil && u.Scheme == "file" {
		e.folder("store", filepath.FromSlash(u.Path), "PASSBOOK_STORE")
		return
	}
	e.bucket(ctx)
}

// folder sees that one can be written, or made, and has room. Nothing is written.
func (e *examiner) folder(name, path, variable string) {
	there, err := existing(path)
	if err != nil {
		e.say(Problem, "disk", name, "see "+variable+": "+e.typed("config"), "%v", err)
		return
	}
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		e.say(Problem, "disk", name, "make "+there+" writable, or set "+variable+" to another folder", "%s cannot be written (%v)", there, err)
		return
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(there, &disk); err != nil {
		e.say(Unchecked, "disk", name, "", "%s is writable; its room is not known (%v)", path, err)
		return
	}
	e.room(name, path, variable, disk.Bavail*uint64(disk.Bsize))
}

func (e *examiner) room(name, path, variable string, free uint64) {
	gib := float64(free) / (1 << 30)
	fix := "make room, or set " + variable + " to a folder of another disk"
	switch {
	case free < noRoom:
		e.say(Problem, "disk", name, fix, "%s: the disk is full (%.2f GiB free); runs pause there", path, gib)
	case free < littleRoom:
		e.say(Warning, "disk", name, fix, "%s: only %.2f GiB are free", path, gib)
	default:
		e.ok("disk", name, "%s is writable, %.0f GiB free", path, gib)
	}
}

// existing is the folder itself, or the one above in which it would be made.
func existing(path string) (string, error) {
	for {
		fi, err := os.Stat(path)
		switch {
		case err == nil && fi.IsDir():
			return path, nil
		case err == nil:
			return "", &fs.PathError{Op: "use", Path: path, Err: errors.New("it is a file, not a folder")}
		case !errors.Is(err, fs.ErrNotExist):
			return "", err
		}
		up := filepath.Dir(path)
		if up == path {
			return "", err
		}
		path = up
	}
}

// bucket sees that a store elsewhere answers.
func (e *examiner) bucket(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	shown := config.Masked(e.Settings.Store)
	s, err := store.Open(ctx, e.Settings.Store)
	if err == nil {
		defer s.Close()
		_, err = s.Has(ctx, store.DigestOf([]byte("doctor")))
	}
	if err != nil {
		e.say(Problem, "disk", "store", "see PASSBOOK_STORE and the bucket's credentials: "+e.typed("config"), "%s cannot be read: %s", shown,
			strings.ReplaceAll(err.Error(), e.Settings.Store, shown))
		return
	}
	e.ok("disk", "store", "%s answers (reading; writing is not tried)", shown)
}
