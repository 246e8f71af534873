// Package blobs connects run directories with a store: blobs by digest, names, trees and checkpoints.
package blobs

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Put stores bytes unchanged.
func Put(ctx context.Context, s *store.Store, data []byte) (run.Blob, error) {
	d, err := s.Put(ctx, data)
	if err != nil {
		return run.Blob{}, err
	}
	return run.Blob{Digest: string(d), Size: int64(len(data)), Chars: utf8.RuneCount(data)}, nil
}

// Get returns the bytes of a blob.
func Get(ctx context.Context, s *store.Store, digest string) ([]byte, error) {
	return s.Get(ctx, store.Digest(digest))
}

// Store has the methods that a run directory needs of its store.
type Store struct{ s *store.Store }

func (b Store) Get(ctx context.Context, digest string) ([]byte, error) { return Get(ctx, b.s, digest) }

func (b Store) Put(ctx context.Context, data []byte) (string, error) {
	d, err := b.s.Put(ctx, data)
	return string(d), err
}

// Name stores data under a name. An existing name is not changed.
func (b Store) Name(ctx context.Context, name string, data []byte) error {
	_, err := b.s.Create(ctx, name, data)
	return err
}

// Replace stores data under a name, whether it exists or not.
func (b Store) Replace(ctx context.Context, name string, data []byte) error {
	return b.s.Replace(ctx, name, data)
}

func (b Store) ReadName(ctx context.Context, name string) ([]byte, error) {
	return b.s.ReadName(ctx, name)
}

func (b Store) ListNames(ctx context.Context, prefix string) ([]string, error) {
	return b.s.List(ctx, prefix)
}

func (b Store) Manifest(ctx context.Context, digest string) ([]byte, error) {
	t, err := tree.Load(ctx, b.s, store.Digest(digest))
	if err != nil {
		return nil, err
	}
	return t.Manifest(), nil
}

func (b Store) PutTree(ctx context.Context, manifest []byte) error {
	t, err := tree.ReadManifest(manifest)
	if err != nil {
		return fmt.Errorf("%w: %v", disk.ErrDamaged, err)
	}
	return tree.Put(ctx, b.s, t)
}

// ReadTree verifies the manifest of a tree: its lines are those of the tree that it names.
func ReadTree(manifest []byte) error {
	_, err := tree.ReadManifest(manifest)
	return err
}

func (b Store) LayDown(ctx context.Context, digest, dir string) error {
	_, err := tree.Checkout(ctx, b.s, store.Digest(digest), dir, tree.Rules{})
	return err
}

// Of returns the store for a run directory.
func Of(s *store.Store) Store { return Store{s} }

// Checkpoint returns a checkpoint of a store, after it has verified all that the checkpoint refers to. id is its name,
// or a boundary: pass-35 is the place before that pass, cycle-2 the place before that cycle.
func Checkpoint(ctx context.Context, s *store.Store, runID, id string) (run.Checkpoint, error) {
	c, err := rundir.FindCheckpoint(ctx, Of(s), runID, id)
	if err != nil {
		return c, err
	}
	if err := rundir.VerifyStored(ctx, Of(s), c); err != nil {
		return c, err
	}
	if t := c.State.Tree; t != nil {
		if _, err := tree.Load(ctx, s, store.Digest(t.Digest)); err != nil {
			return c, fmt.Errorf("checkpoint %s is %w: workspace integrity check failed: %v", c.ID, disk.ErrDamaged,
				err)
		}
	}
	return c, nil
}
