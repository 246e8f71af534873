package operations

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/rundir"
)

// edits refuses to remove manual changes of the artifact, and files of operators that were kept. All work of a run is in the store; a file with other content
// is not the run's.
func (o Operator) edits(ctx context.Context, p *Removable, r Removal, s removed, _ []removed) error {
	if !s.there || r.Discard {
		return nil
	}
	blobs, err := OpenStore(ctx, s.store)
	if err != nil {
		return err
	}
	e := edits{store: blobs}
	if start, ferr := s.dir.First(); ferr == nil && start.Artifact != nil {
		err = e.below(ctx, s.dir, start.Artifact.File)
	}
	if err == nil {
		err = e.below(ctx, s.dir, rundir.EditsDir)
	}
	if err != nil {
		return err
	}
	paths := e.found
	if slices.Sort(paths); len(paths) > 0 {
		p.refuse("%s has changes that the run did not make (%s). To keep them, copy these files; to lose them: "+
			"--discard",
			s.dir.Root, few(paths))
	}
	return nil
}

// edits finds files whose content the store lacks.
type edits struct {
	store *store.Store
	found []string
}

// below checks the files of a folder, or one file.
func (e *edits) below(ctx context.Context, d rundir.Dir, root string) error {
	err := d.Walk(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return e.file(ctx, d, name)
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (e *edits) file(ctx context.Context, d rundir.Dir, name string) error {
	sum, err := d.DigestOf(name)
	digest := store.Digest(sum)
	if err != nil {
		return err
	}
	has, err := e.store.Has(ctx, digest)
	if err == nil && !has {
		e.found = append(e.found, name)
	}
	return err
}
