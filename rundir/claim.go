package rundir

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// ErrNoRun means that a directory contains no run of Passbook.
var ErrNoRun = errors.New("no run here")

// ClaimedError means that a directory belongs to another run.
type ClaimedError struct {
	Dir    string
	Holder run.Claim
}

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s belongs to run %s (%s, started %s); nothing was written. Name another directory", e.Dir,
		e.Holder.RunID, e.Holder.Pipeline, e.Holder.CreatedAt)
}

// AccessError means that this process may not read a run directory. Run directories are readable only by their owner.
type AccessError struct {
	Dir   string
	Owner string // name of the user that it belongs to; empty: this one
	Err   error
}

func (e *AccessError) Unwrap() error { return e.Err }

func (e *AccessError) Error() string {
	if other := (*disk.OwnerError)(nil); errors.As(e.Err, &other) {
		return other.Error()
	}
	why := e.Err
	if cause := errors.Unwrap(why); cause != nil {
		why = cause // without the file's name once more
	}
	if e.Owner == "" {
		return fmt.Sprintf("open run directory %s: %v; make it readable, or name another directory", e.Dir, why)
	}
	return fmt.Sprintf("open run directory %s: %v; it belongs to user %s: run the command as %s, or name another "+
		"directory", e.Dir, why, e.Owner, e.Owner)
}

// UnreadableError means that a file that is required before any write to the run directory cannot be read. Nothing was
// written. The run continues once the file can be read.
type UnreadableError struct {
	File string
	Err  error
	Next string // what to type where the file is damaged and there is no copy of it
}

func (e *UnreadableError) Unwrap() error { return e.Err }

func (e *UnreadableError) Error() string {
	why := e.Err
	if cause := errors.Unwrap(why); cause != nil {
		why = cause // without the file's name once more
	}
	return fmt.Sprintf("read %s: %v; nothing was written. The run continues once the file can be read: restore it, "+
		"or type: %s", e.File, why, e.Next)
}

// unclaimed explains why a directory without run.json is no run: it is another program's, or has lost the file.
func (d Dir) unclaimed() error {
	for _, name := range []string{EventsFile, MetaFile} {
		if d.Has(name) {
			return fmt.Errorf("%s: %w (it has %s, and no %s): Passbook reads only its own runs; if this is one, run: "+
				"starter rebuild RUN-ID --output-dir %s", d.Root, ErrNoRun, name, ClaimFile, shell.Quote(d.Root))
		}
	}
	return fmt.Errorf("%s: %w (it has no %s); name a run, as listed by \"starter list\"", d.Root, ErrNoRun,
		ClaimFile)
}

// Claim reads run.json. The error is [ErrNoRun] if the file is missing or was written by another program.
func (d Dir) Claim() (run.Claim, error) {
	var c run.Claim
	raw, err := d.ReadFile(ClaimFile)
	if errors.Is(err, fs.ErrNotExist) {
		return c, d.unclaimed()
	}
	if errors.Is(err, fs.ErrPermission) {
		return c, &AccessError{Dir: d.Root, Owner: disk.OtherOwner(d.Root), Err: err}
	}
	if err != nil {
		return c, err
	}
	var shape *json.UnmarshalTypeError
	err = json.Unmarshal(raw, &c)
	if v := VersionOf(raw); v > run.ClaimVersion && (err != nil || !run.SingleName(c.RunID)) {
		return run.Claim{}, d.newer(ClaimFile, v, run.ClaimVersion)
	}
	if errors.As(err, &shape) || err == nil && !run.SingleName(c.RunID) {
		return run.Claim{}, fmt.Errorf("%s: %w (its %s is not one of Passbook's)", d.Root, ErrNoRun, ClaimFile)
	}
	if err != nil {
		return c, fmt.Errorf("read %s: %w", d.Path(ClaimFile), err)
	}
	return c, nil
}
