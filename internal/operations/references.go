package operations

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/passbook-run/passbook/internal/store"
)

// digests finds everything that may be a digest in the written data: 64 lower-case hex digits, anywhere. It prefers
// false positives, so it needs no knowledge of record formats.
type digests struct {
	run   []byte // hex digits up to here, at most the last 64
	found func(store.Digest)
}

func (d *digests) Write(data []byte) (int, error) {
	const whole = 64
	for _, c := range data {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			d.run = d.run[:0]
			continue
		}
		if len(d.run) == whole {
			d.run = append(d.run[:0], d.run[1:]...)
		}
		if d.run = append(d.run, c); len(d.run) == whole {
			d.found(store.Digest(d.run))
		}
	}
	return len(data), nil
}

// reached is the set of existing blobs that roots refer to, directly or indirectly.
type reached struct {
	s       *store.Store
	blobs   map[store.Digest]store.Object // all that are in the store
	marked  map[store.Digest]bool
	queue   []store.Digest
	damaged []string // unreadable blobs, whose references are not known
}

func newReached(s *store.Store, blobs map[store.Digest]store.Object) *reached {
	return &reached{s: s, blobs: blobs, marked: map[store.Digest]bool{}}
}

func (r *reached) mark(d store.Digest) {
	if _, there := r.blobs[d]; there && !r.marked[d] {
		r.marked[d] = true
		r.queue = append(r.queue, d)
	}
}

// names marks the references of a record.
func (r *reached) names(from io.Reader) error {
	_, err := io.Copy(&digests{found: r.mark}, from)
	return err
}

// follow marks the references of marked blobs, transitively.
func (r *reached) follow(ctx context.Context) error {
	for len(r.queue) > 0 {
		d := r.queue[len(r.queue)-1]
		r.queue = r.queue[:len(r.queue)-1]
		if _, err := r.read(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// errPlain marks a blob that is not JSON: it refers to no other.
var errPlain = errors.New("no JSON")

// reading inspects a blob while it is read.
type reading struct {
	digests
	head []byte
}

const headSize = 512

func (r *reading) Write(data []byte) (int, error) {
	if len(r.head) < headSize {
		r.head = append(r.head, data[:min(len(data), headSize-len(r.head))]...)
	}
	if len(r.head) > 0 && r.head[0] != '{' && r.head[0] != '[' {
		return 0, errPlain
	}
	return r.digests.Write(data)
}

// read marks the references of a blob, and returns its first bytes.
func (r *reached) read(ctx context.Context, d store.Digest) (head []byte, err error) {
	look := &reading{digests: digests{found: r.mark}}
	err = r.s.Copy(ctx, d, look)
	switch {
	case errors.Is(err, errPlain), errors.Is(err, store.ErrMissing):
		return nil, nil
	case errors.Is(err, store.ErrDamaged):
		r.damaged = append(r.damaged, fmt.Sprintf("blob %s is damaged, and what it names is not known", d))
		return nil, nil
	}
	return look.head, err
}
