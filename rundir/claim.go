package rundir

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
