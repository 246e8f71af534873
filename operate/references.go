package operate

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/passbook-run/passbook/store"
)

// digests finds in what is written to it everything that may be a digest: 64 hex digits in lower case, wherever they stand. It finds too much
// rather than too little, so no form of a record has to be known.
type digests struct {
	run   []byte // hex digits up to here, the last 64 at most
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

// reached is what can be come to from roots, among the blobs that are there.
type reached struct {
	s       *store.Store
	blobs   map[store.Digest]store.Object // all that are in the store
	marked  map[store.Digest]bool
	queue   []store.Digest
	damaged []string // what cannot be read, so that what it names is not known
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

// names marks what a record names.
func (r *reached) names(from io.Reader) error {
	_, err := io.Copy(&digests{found: r.mark}, from)
	return err
}

// follow marks what the marked blobs name, and so on.
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

// errPlain says that a blob is no JSON: it names no other.
var errPlain = errors.New("no JSON")

// reading looks at a blob while it is read.
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

// read marks what a blob names, and gives its first bytes.
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
