package rundir

import (
	"errors"
	"io/fs"

	"github.com/passbook-run/passbook/internal/disk"
)

// Edit is an operator's version of the artifact that a projection has replaced.
type Edit struct {
	Kept     string `json:"kept"`     // the copy, in the directory
	Restored bool   `json:"restored"` // the artifact is the one of before; false: a pass has changed it
}

// keepEdit copies the artifact before it is replaced, if the run did not write what the file contains (requirement 002
// §3.1, step 5b). The name of the copy follows from its contents, so a projection that is repeated makes no second one.
func (w *exporter) keepEdit() error {
	name := w.fold.State.CurrentArtifactPath
	file := w.fold.Files[name]
	if _, changed := w.fold.changed[name]; !changed || file.Role != Edited {
		return nil
	}
	found, err := w.dir.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	digest := disk.Digest(found)
	if digest == file.Digest || w.wrote[digest] {
		return nil
	}
	kept := KeptEdit(digest, name)
	if err := w.dir.inside().WriteAll([]disk.File{w.file(kept, found, Edited)}); err != nil {
		return err
	}
	w.edits = append(w.edits, Edit{Kept: kept, Restored: w.first == file.Digest})
	return nil
}
