package rundir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// fixedFiles are the files of a run that no event describes. Each is written once, or once in an epoch, so meta.json keeps a digest of it.
func fixedFiles() []string { return []string{ClaimFile, OwnerFile} }

// unfolded is meta.json before any event: what of it does not follow from events stays.
func (m Meta) unfolded() Meta { return Meta{SegmentHead: m.SegmentHead, Digests: m.Digests} }

// digestFixed notes the digests of the fixed files that meta.json does not have yet. A new epoch has a new owner.json.
func (p *projector) digestFixed() error {
	next := maps.Clone(p.meta.Digests)
	if next == nil {
		next = map[string]string{}
	}
	for _, name := range fixedFiles() {
		if next[name] != "" && (name != OwnerFile || p.meta.Epoch <= p.vouched) {
			continue
		}
		have, err := p.dir.digestOf(name)
		if err != nil {
			return err
		}
		if have != "" {
			next[name] = have
		}
	}
	if len(next) > 0 {
		p.meta.Digests = next
	}
	return nil
}

// strange says that a meta.json is another run's: neither run.json nor the journal are of its run.
func (d Dir) strange(m Meta) error {
	claim, err := d.Claim()
	if err != nil || m.RunID == "" || m.RunID == claim.RunID {
		return nil //nolint:nilerr // a claim that cannot be read is named where it matters
	}
	if first, err := d.First(); err != nil || first.RunID != claim.RunID {
		return nil //nolint:nilerr // then it may be run.json that is another run's
	}
	return fmt.Errorf("%s is %w: it is of run %s", d.Path(MetaFile), ErrDamaged, m.RunID)
}

// sealed adds the digest of a meta.json to it.
func sealed(raw []byte, digest string) []byte {
	const end = "\n}\n"
	return append(bytes.TrimSuffix(bytes.Clone(raw), []byte(end)), ",\n  \"digest\": \""+digest+"\""+end...)
}

// seal renews the digest of a meta.json that has one.
func (o *object) seal() error {
	if _, has := o.values["digest"]; !has {
		return nil
	}
	want, err := o.sum()
	if err != nil {
		return err
	}
	o.set("digest", quote(want))
	return nil
}

// sum is the digest of a meta.json without the key that holds it.
func (o *object) sum() (string, error) {
	bare := object{keys: slices.Clone(o.keys), values: maps.Clone(o.values)}
	bare.drop("digest")
	raw, err := bare.bytes()
	return digest(raw), err
}

// judgeFixed compares run.json and owner.json with the digests in meta.json. Of directories that an earlier release wrote there are none.
func (x *examined) judgeFixed() error {
	if !x.own {
		return x.judgeLostClaim()
	}
	for _, name := range slices.Sorted(maps.Keys(x.meta.typed.Digests)) {
		have, err := x.dir.digestOf(name)
		want := x.meta.typed.Digests[name]
		switch {
		case err != nil:
			return err
		case have == want || name == OwnerFile && x.newOwner():
		case have == "":
			x.lags(ClaimDamaged, "", name+" is missing")
		default:
			x.lags(ClaimDamaged, "", fmt.Sprintf("%s was changed: its sha-256 is %.12s, and %s recorded %.12s", name, have, MetaFile, want))
		}
	}
	return nil
}

// newOwner says that owner.json is that of the epoch after the one in meta.json: it is opened before its first event.
func (x *examined) newOwner() bool {
	o, err := x.dir.owner()
	return err == nil && o.Epoch == x.meta.typed.Epoch+1
}

// judgeLostClaim finds a directory of Passbook's without its run.json, which readers take for another program's.
func (x *examined) judgeLostClaim() error {
	if x.meta.object == nil {
		return nil
	}
	var m Meta
	if json.Unmarshal(x.meta.raw, &m) != nil || m.Version == 0 || m.RunID == "" || m.Events.Chain == "" {
		return nil
	}
	x.find(ClaimDamaged, fmt.Sprintf("%s of run %s is missing, or is not one of Passbook's", ClaimFile, m.RunID))
	return nil
}
