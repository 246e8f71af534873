package projector

import (
	"maps"

	"github.com/passbook-run/passbook/internal/layout"
)

// fixedFiles are the files of a run that no event describes. Each is written once, or once in an epoch, so meta.json
// keeps its digest.
func fixedFiles() []string { return []string{layout.ClaimFile, layout.OwnerFile} }

// digestFixed records the digests of fixed files that meta.json lacks. A new epoch has a new owner.json.
func (p *Projector) digestFixed() error {
	next := maps.Clone(p.meta.Digests)
	if next == nil {
		next = map[string]string{}
	}
	for _, name := range fixedFiles() {
		if next[name] != "" && (name != layout.OwnerFile || p.meta.Epoch <= p.vouched) {
			continue
		}
		have, err := p.Dir.DigestOf(name)
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
