package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

// Put stores data durably and returns its digest. Existing data is not rewritten.
func (s *Store) Put(ctx context.Context, data []byte) (Digest, error) {
	d := DigestOf(data)
	if err := s.PutFrom(ctx, d, func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(data)), nil
	}); err != nil {
		return "", err
	}
	return d, nil
}

// PutFrom stores bytes of a known digest without loading them into memory. The error is [ErrChanged] if the source
// returns other bytes; nothing is stored then.
func (s *Store) PutFrom(ctx context.Context, d Digest, from Source) error {
	b := s.Batch()
	if err := b.PutFrom(ctx, d, from); err != nil {
		return err
	}
	return b.End()
}

// Has reports whether a blob exists. It does not read it.
func (s *Store) Has(ctx context.Context, d Digest) (bool, error) {
	if err := d.check(); err != nil {
		return false, err
	}
	there, err := s.medium.has(ctx, d.name())
	if err != nil {
		return false, fmt.Errorf("check blob %s: %w", d, err)
	}
	return there, nil
}

// Get returns the verified bytes of a blob. The error is [ErrMissing], [DamagedError] or one of the medium.
func (s *Store) Get(ctx context.Context, d Digest) ([]byte, error) {
	var data bytes.Buffer
	if err := s.Copy(ctx, d, &data); err != nil {
		return nil, err
	}
	return data.Bytes(), nil
}

// Copy writes a blob to w. Do not use what was written unless the error is nil. The errors are those of
// [Store.Get], and w's.
func (s *Store) Copy(ctx context.Context, d Digest, w io.Writer) error {
	if err := d.check(); err != nil {
		return err
	}
	r, err := s.medium.open(ctx, d.name())
	if err != nil {
		return fmt.Errorf("read blob %s in %s: %w", d, s.medium.where(d.name()), err)
	}
	found, _, err := copyDigest(w, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return fmt.Errorf("read blob %s in %s: %w", d, s.medium.where(d.name()), err)
	}
	if found != d {
		return &DamagedError{Digest: d, Found: found, Where: s.medium.where(d.name())}
	}
	return nil
}

// DigestFrom reads the source once and returns its digest and size in bytes.
func DigestFrom(from Source) (Digest, int64, error) {
	r, err := from()
	if err != nil {
		return "", 0, err
	}
	d, size, err := copyDigest(io.Discard, r)
	return d, size, errors.Join(err, r.Close())
}

// copySource writes the source to w, and fails if its digest changed.
func copySource(w io.Writer, from Source, want Digest) error {
	r, err := from()
	if err != nil {
		return err
	}
	d, _, err := copyDigest(w, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if d != want {
		return ErrChanged
	}
	return nil
}
