package rundir

import (
	"encoding/json"
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// Owner is owner.json. Between the opening of an epoch and its first event it keeps executions of the previous epoch
// from writing.
type Owner struct {
	Epoch int    `json:"epoch"`
	RunID string `json:"run_id"`
	// Temporal's id of the first execution of the epoch; a reset and continue-as-new keep it
	Execution string `json:"execution"`
	Host      string `json:"host"`
	Cluster   string `json:"cluster"`  // id of the Temporal cluster that the epoch was opened on
	Embedded  bool   `json:"embedded"` // the cluster is the embedded server of that host
	Address   string `json:"address,omitempty"`
	OpenedAt  string `json:"opened_at"`
}

// CurrentClaim returns the host and cluster that execute the run: those of its claim, or of its owner after a later
// epoch started.
func (d Dir) CurrentClaim(claim run.Claim) run.Claim {
	o, err := d.Owner()
	if err != nil || o.RunID != claim.RunID || o.Cluster == "" {
		return claim // check names a damaged owner.json before a write, where it matters
	}
	claim.Host, claim.Cluster, claim.Embedded, claim.Address = o.Host, o.Cluster, o.Embedded, o.Address
	return claim
}

// Owner reads owner.json; a run in its first epoch has none. The journal also records the epoch, except between the
// acquisition of ownership and the first event of the epoch, so an operator can move a damaged file away.
func (d Dir) Owner() (Owner, error) {
	var o Owner
	raw, err := d.ReadFile(OwnerFile)
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
