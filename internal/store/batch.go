package store

import (
	"context"
	"fmt"
	"sync"
)

// Batch is a set of puts that become durable together, which is cheaper: a file:// store syncs each folder of
// blobs once. It is safe for concurrent use.
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

// Batch returns an empty batch.
func (s *Store) Batch() *Batch { return &Batch{of: s.medium.begin(), seen: map[Digest]*onePut{}} }

// PutFrom is [Store.PutFrom], but the blob is durable only after [Batch.End]. Equal blobs are written once.
func (b *Batch) PutFrom(ctx context.Context, d Digest, from Source) error {
	if err := d.check(); err != nil {
		return err
	}
	one := b.entry(d)
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

func (b *Batch) entry(d Digest) *onePut {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen[d] == nil {
		b.seen[d] = &onePut{}
	}
	return b.seen[d]
}

// End makes all puts durable. After an error the batch is undefined.
func (b *Batch) End() error {
	if err := b.of.end(); err != nil {
		return fmt.Errorf("make blobs durable: %w", err)
	}
	return nil
}
