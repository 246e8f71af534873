package fsck

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/rundir"
)

// judgeFixed compares run.json and owner.json with the digests in meta.json. Directories of earlier releases have no
// digests.
func (x *examined) judgeFixed() error {
	if !x.own {
		return x.judgeLostClaim()
	}
	for _, name := range slices.Sorted(maps.Keys(x.meta.typed.Digests)) {
		have, err := x.dir.DigestOf(name)
		want := x.meta.typed.Digests[name]
		switch {
		case err != nil:
			return err
		case have == want || name == layout.OwnerFile && x.newOwner():
		case have == "":
			x.lags(ClaimDamaged, "", name+" is missing")
		default:
			x.lags(ClaimDamaged, "", fmt.Sprintf("%s was changed: its sha-256 is %.12s, and %s recorded %.12s", name,
				have, layout.MetaFile, want))
		}
	}
	return nil
}

// newOwner reports whether owner.json is that of an epoch after the one in meta.json: it is written before the first
// event of an epoch.
func (x *examined) newOwner() bool {
	o, err := x.dir.Owner()
	return err == nil && o.Epoch > x.meta.typed.Epoch
}

// judgeLostClaim finds a directory of Passbook without run.json, which other readers take for that of another program.
func (x *examined) judgeLostClaim() error {
	if x.meta.object == nil {
		return nil
	}
	var m rundir.Meta
	if json.Unmarshal(x.meta.raw, &m) != nil || m.Version == 0 || m.RunID == "" || m.Events.Chain == "" {
		return nil
	}
	x.find(ClaimDamaged, fmt.Sprintf("%s of run %s is missing, or is not one of Passbook's", layout.ClaimFile, m.RunID))
	return nil
}
