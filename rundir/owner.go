package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// OwnerFile says which execution writes the directory since its run went on in a new epoch.
const OwnerFile = orchestrator + "/owner.json"

// Owner is owner.json. It closes the time between the opening of an epoch and its first event to whoever is left of the epoch before.
type Owner struct {
	Epoch     int    `json:"epoch"`
	RunID     string `json:"run_id"`
	Execution string `json:"execution"` // Temporal's id of the first execution of the epoch; a reset and continue-as-new keep it
	Host      string `json:"host"`
	Cluster   string `json:"cluster"`  // id of the Temporal cluster that the epoch was opened on
	Embedded  bool   `json:"embedded"` // the cluster is the embedded server of that host
	Address   string `json:"address,omitempty"`
	OpenedAt  string `json:"opened_at"`
}

// StaleError says that a directory is not where an execution thinks it is, or that another one owns it. Nothing was written.
type StaleError struct {
	Dir string
	Why string
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("%s is not this start's: %s. Look with `starter status %s`", e.Dir, e.Why, shell.Quote(e.Dir))
}

// TakeOver makes the directory a new epoch's, under its lock: its journal must be what was written ([Dir.Continue]), end at tail, and not be that of a run
// that is done; and it must be no other start's. Who owns it already may ask again, wherever it ends: after a reset the journal continues behind what is
// there. On return the owner is on disk, and projections of earlier epochs are stale.
func (d Dir) TakeOver(ctx context.Context, o Owner, tail run.Tail) error {
	lock, err := d.lock(ctx, "open")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	have, err := d.owner()
	if err != nil {
		return err
	}
	if have.Epoch > o.Epoch || have.Epoch == o.Epoch && have.Execution != o.Execution {
		return &StaleError{Dir: d.Root, Why: fmt.Sprintf("epoch %d is that of execution %s", have.Epoch, have.Execution)}
	}
	if have.Epoch == o.Epoch {
		return nil
	}
	end, err := d.End(ctx, nil)
	if err != nil {
		return err
	}
	if end != nil {
		return &StaleError{Dir: d.Root, Why: "its run is done, and done is final: fork it or follow it up"}
	}
	c, err := d.Continue(ctx, nil, nil)
	if err != nil {
		return err
	}
	if now := c.Tail; now != tail {
		return &StaleError{Dir: d.Root, Why: fmt.Sprintf("it ends at event %d (chain %.8s), not at event %d (chain %.8s)", now.Seq, now.Chain, tail.Seq, tail.Chain)}
	}
	raw, err := marshal(o)
	if err != nil {
		return err
	}
	if err := d.Disk.Mkdir(d.Path(orchestrator), dirPerm); err != nil {
		return err
	}
	return d.Disk.WriteFile(d.Path(OwnerFile), raw, filePerm)
}

// Seat is where the run is at work: what its claim says, or, since it went on in a new epoch, its owner. It is to be asked about, and nothing else.
func (d Dir) Seat(claim run.Claim) run.Claim {
	o, err := d.owner()
	if err != nil || o.RunID != claim.RunID || o.Cluster == "" {
		return claim // check names a damaged owner.json where it matters: when somebody writes
	}
	claim.Host, claim.Cluster, claim.Embedded, claim.Address = o.Host, o.Cluster, o.Embedded, o.Address
	return claim
}

// owner reads owner.json; a run in its first epoch has none. The journal names its epoch too, but for the moment between [Dir.TakeOver] and the epoch's
// first event, so an operator may move a damaged one away.
func (d Dir) owner() (Owner, error) {
	var o Owner
	raw, err := os.ReadFile(d.Path(OwnerFile))
	if errors.Is(err, fs.ErrNotExist) {
		return o, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		file := d.Path(OwnerFile)
		return Owner{}, &UnreadableError{File: file, Err: err, Next: shell.Sprintf("mv %s %s", file, file+".damaged")}
	}
	return o, nil
}
