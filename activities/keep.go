package activities

import (
	"context"
	"unicode/utf8"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
)

// keep is the one place through which text about the work gets into the store: prompts, replies, notes, outputs of failed calls. Redaction
// happens here. Artifacts are the user's data and go past it (see keepData).
func (a *Activities) keep(ctx context.Context, s *store.Store, text string) (run.Blob, error) {
	return keepData(ctx, s, []byte(a.cfg.Redact(text)))
}

// keepData stores bytes as they are.
func keepData(ctx context.Context, s *store.Store, data []byte) (run.Blob, error) {
	d, err := s.Put(ctx, data)
	if err != nil {
		return run.Blob{}, err
	}
	return run.Blob{Digest: string(d), Size: int64(len(data)), Chars: utf8.RuneCount(data)}, nil
}

func load(ctx context.Context, s *store.Store, digest string) ([]byte, error) {
	return s.Get(ctx, store.Digest(digest))
}

// blobs is a store as the run directory wants it.
type blobs struct{ s *store.Store }

func (b blobs) Get(ctx context.Context, digest string) ([]byte, error) { return load(ctx, b.s, digest) }

func (b blobs) Put(ctx context.Context, data []byte) (string, error) {
	d, err := b.s.Put(ctx, data)
	return string(d), err
}

// Name puts data under a name, once. What is there already stays.
func (b blobs) Name(ctx context.Context, name string, data []byte) error {
	_, err := b.s.Create(ctx, name, data)
	return err
}

func (b blobs) ReadName(ctx context.Context, name string) ([]byte, error) {
	return b.s.ReadName(ctx, name)
}

func (b blobs) ListNames(ctx context.Context, prefix string) ([]string, error) {
	return b.s.List(ctx, prefix)
}

func (b blobs) Manifest(ctx context.Context, digest string) ([]byte, error) {
	t, err := tree.Load(ctx, b.s, store.Digest(digest))
	if err != nil {
		return nil, err
	}
	return t.Manifest(), nil
}

func (b blobs) LayDown(ctx context.Context, digest, dir string) error {
	_, err := tree.Checkout(ctx, b.s, store.Digest(digest), dir, tree.Rules{})
	return err
}

// Blobs gives a store as the run directory wants it.
func Blobs(s *store.Store) interface {
	rundir.Blobs
	rundir.Names
} {
	return blobs{s}
}
