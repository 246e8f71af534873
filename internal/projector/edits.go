package projector

import (
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// Edit is an operator's version of the artifact that a projection has replaced.
type Edit struct {
	Kept     string `json:"kept"`     // the copy, in the directory
	Restored bool   `json:"restored"` // the artifact is the one of before; false: a pass has changed it
}

// flush writes the queued files. An operator's version of the artifact is copied before it is replaced.
func (p *Projector) flush(w *batchWriter) error {
	if err := p.keepEdit(w); err != nil {
		return err
	}
	return w.flush()
}

// keepEdit copies the artifact if the run did not write what the file contains (requirement 002 §3.1, step 5b). The
// name of the copy follows from its contents, so a projection that is repeated makes no second one.
func (p *Projector) keepEdit(w *batchWriter) error {
	name := p.records.CurrentArtifactPath
	i, queued := w.index[name]
	if !queued {
		return nil
	}
	found, err := p.Dir.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	digest, next := disk.Digest(found), w.files[i].digest
	if digest == next || p.wrote(digest, w.first) {
		return nil
	}
	kept := layout.KeptEdit(digest, name)
	if err := p.Dir.Inside().WriteAll([]disk.File{{Path: p.Dir.Path(kept), Data: found, Perm: layout.FilePerm,
		DirPerm: layout.DirPerm}}); err != nil {
		return err
	}
	p.edits = append(p.edits, Edit{Kept: kept, Restored: w.first.Artifact != nil && w.first.Artifact.Digest == next})
	return nil
}

// wrote reports whether the artifact had these contents before the batch or after one of its events: an interrupted
// projection may have written any of them.
func (p *Projector) wrote(digest string, s run.State) bool {
	is := func() bool { return s.Artifact != nil && s.Artifact.Digest == digest }
	for _, e := range p.unseen {
		if is() {
			return true
		}
		s = run.Apply(s, e)
	}
	return is()
}
