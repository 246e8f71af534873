package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// ErrNoRun says that a directory holds no run.
var ErrNoRun = errors.New("no run here")

// ClaimedError says that a directory belongs to another run already.
type ClaimedError struct {
	Dir    string
	Holder run.Claim
}

func (e *ClaimedError) Error() string {
	return fmt.Sprintf("%s belongs to run %s (%s, started %s); nothing was written. Name another directory", e.Dir, e.Holder.RunID, e.Holder.Pipeline, e.Holder.CreatedAt)
}

// UnreadableError says that a file of a run's own directory, without which nobody may write there, cannot be read. Nothing was written; once it can be
// read, the run goes on.
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
	return fmt.Sprintf("read %s: %v; nothing was written. The run continues once the file can be read: restore it, or type: %s", e.File, why, e.Next)
}

// Take claims the directory for a run. The first claim wins; a later one gets a ClaimedError that names the holder, and a directory with other files
// is a TargetError ([Dir.MayTake]): nothing is written then. On return the claim is on disk.
func (d Dir) Take(c run.Claim) error {
	if err := d.MayTake(c.RunID); err != nil {
		return err
	}
	return d.take(c)
}

// take is Take where what is there was checked.
func (d Dir) take(c run.Claim) error {
	if err := d.Disk.Mkdir(d.Root, dirPerm); err != nil {
		return err
	}
	raw, err := marshal(c)
	if err != nil {
		return err
	}
	won, err := d.Disk.CreateExclusive(d.Path(ClaimFile), raw, filePerm)
	if err != nil {
		return fmt.Errorf("claim %s: %w", d.Root, err)
	}
	if won {
		return nil
	}
	holder, err := d.Claim()
	if err != nil {
		return err
	}
	if holder == c {
		return nil
	}
	return &ClaimedError{Dir: d.Root, Holder: holder}
}

// Claim reads run.json. ErrNoRun: there is none, or it is another program's.
func (d Dir) Claim() (run.Claim, error) {
	var c run.Claim
	raw, err := os.ReadFile(d.Path(ClaimFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s: %w (it has no %s)", d.Root, ErrNoRun, ClaimFile)
	}
	if err != nil {
		return c, err
	}
	var shape *json.UnmarshalTypeError
	if err = json.Unmarshal(raw, &c); errors.As(err, &shape) || err == nil && c.RunID == "" {
		return run.Claim{}, fmt.Errorf("%s: %w (its %s is not one of Passbook's)", d.Root, ErrNoRun, ClaimFile)
	}
	if err != nil {
		return c, fmt.Errorf("read %s: %w", d.Path(ClaimFile), err)
	}
	return c, nil
}

// unreadableClaim is the error of a run whose own claim cannot be read.
func (d Dir) unreadableClaim(runID string, why error) error {
	file := d.Path(ClaimFile)
	return &UnreadableError{File: file, Err: why, Next: shell.Sprintf("mv %s %s && starter rebuild %s --output-dir %s", file, file+".damaged", runID, d.Root)}
}

// marshal writes JSON for people: indented, HTML characters as they are, one line feed at the end.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// Unclaim removes the claim of a run that was not started. The claim of another run stays.
func (d Dir) Unclaim(c run.Claim) error {
	if holder, err := d.Claim(); err != nil || holder.RunID != c.RunID {
		return nil //nolint:nilerr // there is nothing of this run's
	}
	return os.Remove(d.Path(ClaimFile))
}
