package fsck

import (
	"fmt"
	"maps"
	"slices"

	"github.com/passbook-run/passbook/internal/layout"
)

// judgeFixed compares run.json and owner.json with the digests in meta.json. Directories of earlier releases have no
// digests.
func (x *examined) judgeFixed() error {
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
