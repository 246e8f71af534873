package store

import (
	"context"
	"fmt"
	"sync"
)

// Batch is puts that are made durable together, which costs less: on a file://
// store each folder of blobs is synced once. It is for any number of goroutines.
type Batch struct {
	of   batch
	mu   sync.Mutex
	seen map[Digest]*onePut
}

// onePut is the first put of a digest in a batch; others wait for it.
type onePut struct {
	sync.Mutex
	done bool
}

// Batch begins an empty one.
func (s *Store) Batch() *Batch { return &Batch{of: s.medium.begin(), seen: map[Digest]*onePut{}} }

// PutFrom does as [Store.PutFrom], but the blob is durable only after
// [Batch.End]. Of equal blobs one is written.
func (b *Batch) PutFrom(ctx context.Context, d Digest, from Source) error {
	if err := d.check(); err != nil {
		return err
	}
	one := b.one(d)
	one.Lock()
	defer one.Unlock()
	if one.done {
		return nil
	}
	if err := b.of.put(ctx, d, from); err != nil {
		return fmt.Errorf("put blob %s: %w", d, err)
	}
	one.done = true
	return nil
}

func (b *Batch) one(d Digest) *onePut {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[d] == nil {
		b.seen[d] = &onePut{}
	}
	return b.seen[d]
}

// End makes everything durable that was put. After an error nothing of the
// batch is to be relied on.
func (b *Batch) End() error {
	if err := b.of.end(); err != nil {
		return fmt.Errorf("make blobs durable: %w", err)
	}
	return nil
}
