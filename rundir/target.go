package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// TargetError reports why new files cannot be written to a path. Nothing was written or started.
type TargetError struct {
	Path string
	Why  string
	Next string // what to do
	Err  error  // the system's error, or nil
}

func (e *TargetError) Unwrap() error { return e.Err }

func (e *TargetError) Error() string {
	return fmt.Sprintf("write to %s: %s; nothing was written or started. %s", e.Path, e.Why, e.Next)
}

const (
	nameAnother = "Name a missing or empty directory"
	namedFiles  = 10 // maximum number of files in the way that are named; the others are counted
)

// Vacant checks that new files can be written to a directory: it is missing or empty, this process may write to it, and
// no run directory contains it. Any other case is a [*TargetError] with the files in the way. It writes nothing.
func Vacant(path string) error {
	t, err := look(path)
	if err != nil {
		return err
	}
	if err := errors.Join(t.outsideOfRuns(""), t.writable()); err != nil {
		return err
	}
	return t.empty(t.inside)
}

// Writable checks that this process may write to a directory or create it, and that no run directory contains it. It
// writes nothing.
func Writable(path string) error {
	t, err := look(path)
	if err != nil {
		return err
	}
	return errors.Join(t.outsideOfRuns(""), t.writable())
}

// MayWrite checks that this process may write to the directory of a run, and knows its format.
func MayWrite(d Dir) error {
	if err := d.Known(); err != nil {
		return err
	}
	t, err := look(d.Root)
	if err != nil {
		return err
	}
	return t.writable()
}

// Usable checks that the directory contains any run, or can become that of a new run. It writes nothing.
func Usable(d Dir) error {
	err := mayTake(d, "")
	if errors.As(err, new(*ClaimedError)) {
		return nil
	}
	return err
}

// MayTake checks that a run may write to the directory: it belongs to the run or can be claimed by it. It writes
// nothing.
func MayTake(d Dir, runID string) error { return mayTake(d, runID) }

// MayContinue is MayTake for a run that has written to the directory. A worker may have linked the workspace, or a
// lane have restored its directory, before it was noticed that the run's directory was lost.
func MayContinue(d Dir, runID string) error { return mayTake(d, runID, WorkspaceDir, run.LanesDir+"/") }

// mayTake is MayTake, and ignores files with the names in besides. Where another start claims the directory between its
// reads, the claim decides.
func mayTake(d Dir, runID string, besides ...string) error {
	holder, unread := d.Claim()
	if unread == nil {
		return heldBy(d, holder, runID)
	}
	if !errors.Is(unread, ErrNoRun) && runID != "" && leftBy(d) == runID {
		return unreadableClaim(d, runID, unread)
	}
	err := unclaimed(d, unread, runID, besides)
	if err == nil || !errors.Is(unread, ErrNoRun) {
		return err
	}
	if holder, unread := d.Claim(); unread == nil {
		return heldBy(d, holder, runID)
	}
	return err
}

func heldBy(d Dir, holder run.Claim, runID string) error {
	if holder.RunID == runID {
		return nil
	}
	return &ClaimedError{Dir: d.Root, Holder: holder}
}

// unclaimed is mayTake for a directory whose claim could not be read.
func unclaimed(d Dir, unread error, runID string, besides []string) error {
	t, err := look(d.Root)
	if err != nil {
		return err
	}
	if !errors.Is(unread, ErrNoRun) {
		var denied *AccessError
		if errors.As(unread, &denied) {
			return t.refused(unread, nameAnother, "%v%s", denied.Err, ownerOf(d.Root))
		}
		return t.refused(unread, nameAnother, "%v", unread)
	}
	if err := errors.Join(t.outsideOfRuns(runID), t.writable()); err != nil {
		return err
	}
	return free(d, t, runID, besides)
}

// free checks that a directory without a claim can become that of a run, as [Vacant] does. It allows leftovers of an
// interrupted start, an archived run, and files of this run from before its claim was lost.
func free(d Dir, t target, runID string, besides []string) error {
	left := slices.DeleteFunc(slices.Clone(t.inside), func(name string) bool {
		return name == LockFile || slices.Contains(besides, name) || disk.IsTemp(name) &&
			strings.HasPrefix(name, ClaimFile+".")
	})
	if len(left) == 0 || archived(d) {
		return nil
	}
	holder := leftBy(d)
	switch holder {
	case "":
		return t.empty(left)
	case runID:
		return nil
	}
	return t.refused(nil, fmt.Sprintf("%s. To restore that run's directory: starter rebuild %s --output-dir %s",
		nameAnother, shell.Quote(holder), shell.Quote(d.Root)),
		"it holds files of run %s and has no %s (in the way: %s)", holder, ClaimFile, some(left))
}

// archived reports whether a run was archived here, so that the directory is free for the next run.
func archived(d Dir) bool {
	all, err := d.Archived()
	return err == nil && slices.ContainsFunc(all, func(a Dir) bool { return a.Has(ClaimFile) })
}

// leftBy is the run whose files are here without its claim; empty: no run's.
func leftBy(d Dir) string {
	if start, err := d.First(); err == nil && start.RunID != "" {
		return start.RunID
	}
	if m, err := d.Meta(); err == nil && m.RunID != "" {
		return m.RunID
	}
	if o, err := d.Owner(); err == nil && o.RunID != "" {
		return o.RunID
	}
	b, err := Records(d)
	if err != nil {
		return ""
	}
	return b.RunID
}

// target is a path to which new files are to be written.
type target struct {
	path   string   // as given, absolute
	real   string   // without symbolic links
	above  string   // the directory in which it would be created; empty: it exists
	inside []string // a directory's name ends in a slash
}

func (t target) refused(err error, next, format string, args ...any) error {
	return &TargetError{Path: t.path, Why: fmt.Sprintf(format, args...), Next: next, Err: err}
}

// look reads the state of a path. A path that can never be a directory for new files is a [*TargetError].
func look(path string) (target, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return target{}, err
	}
	t := target{path: abs}
	there := abs
	for ; ; there = filepath.Dir(there) {
		fi, err := os.Stat(there)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			if link, lerr := os.Readlink(there); lerr == nil {
				return t, t.refused(err, nameAnother, "%s is a symbolic link to %s, which does not exist", there, link)
			}
			continue
		case err != nil:
			return t, t.refused(err, nameAnother, "%v", err)
		case !fi.IsDir():
			return t, t.refused(syscall.ENOTDIR, nameAnother, "%s is not a directory", there)
		}
		break
	}
	if t.real, err = filepath.EvalSymlinks(there); err != nil {
		return t, err
	}
	if there != abs {
		t.real, t.above = filepath.Join(t.real, strings.TrimPrefix(abs, there)), there
		return t, nil
	}
	entries, err := os.ReadDir(abs)
	if err != nil {
		return t, t.refused(err, nameAnother, "%v%s", err, ownerOf(abs))
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		t.inside = append(t.inside, name)
	}
	return t, nil
}

// writable asks the system whether this process may create files there.
func (t target) writable() error {
	dir := t.path
	if t.above != "" {
		dir = t.above
	}
	err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	if err == nil {
		return nil
	}
	return t.refused(err, afterDenied(err), "%s cannot be written: %v%s", dir, err, ownerOf(dir))
}

// afterDenied names what to do about a directory that cannot be written.
func afterDenied(err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "Name a directory on another file system"
	}
	return "Name a directory that you may write to, or change its permissions"
}

// ownerOf names the owner of a directory of another user.
func ownerOf(path string) string {
	name := disk.OtherOwner(path)
	if name == "" {
		return ""
	}
	return fmt.Sprintf(" (it belongs to %s)", name)
}

// outsideOfRuns refuses a path that is a run directory or is inside one, other than that of a lane of the run.
func (t target) outsideOfRuns(runID string) error {
	for dir := t.real; ; dir = filepath.Dir(dir) {
		claim, err := At(dir).Claim()
		if err == nil && run.OfLane(runID) == claim.RunID {
			return nil
		}
		if err == nil && dir == filepath.Dir(t.real) && slices.Contains(claim.Projects, filepath.Base(t.real)) {
			return nil // the folder is for the run of this project
		}
		if err == nil {
			return t.refused(nil, "Name a directory outside of it", "it is in the directory of run %s, %s", claim.RunID,
				dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (t target) empty(left []string) error {
	if len(left) == 0 {
		return nil
	}
	return t.refused(nil, nameAnother+", or move these files away", "it is not empty (in the way: %s)", some(left))
}

// some names the first of them, and counts the others.
func some(names []string) string {
	more := ""
	if n := len(names) - namedFiles; n > 0 {
		names, more = names[:namedFiles], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// unreadableClaim is the error for a run whose claim cannot be read.
func unreadableClaim(d Dir, runID string, why error) error {
	file := d.Path(ClaimFile)
	return &UnreadableError{File: file, Err: why,
		Next: shell.Sprintf("mv %s %s && starter rebuild %s --output-dir %s", file, file+".damaged", runID, d.Root)}
}
