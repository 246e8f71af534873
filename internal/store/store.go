// Package store stores large values: prompts, replies, artifacts, trees, screenshots, plans and archived events.
//
// A store is a bucket URL. It contains blobs, which are named by the SHA-256 of their content and never change,
// and names, which are created once by the first writer. When a write returns without an error, it is durable: on
// a file:// store content and name are on disk; on a bucket the service has confirmed it. Reads by digest are
// verified.
//
// Only [Store.Remove] deletes. A blob that is put again gets a new time, to within an hour, so that used
// blobs never look old.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// Sentinel errors.
var (
	ErrMissing     error = sentinelError{"it is not in the store", fs.ErrNotExist}
	ErrDamaged     error = sentinelError{"it is damaged in the store", fs.ErrInvalid}
	ErrUnreachable       = errors.New("the store is not reachable")
	ErrChanged           = errors.New("it changed while it was being stored: retry when no process writes to it")
)

// DamagedError is the error for a blob whose bytes do not match its digest. It is [ErrDamaged]. Putting the right
// bytes again repairs the blob.
type DamagedError struct {
	Digest Digest // want
	Found  Digest // got
	Where  string // path or URL
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("blob %s is damaged: %s has digest %s; restore that file from a backup", e.Digest, e.Where,
		e.Found)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }

// medium stores the bytes: a folder or a bucket. Names are validated before.
type medium interface {
	begin() batch
	create(ctx context.Context, name string, data []byte) (won bool, err error)
	replace(ctx context.Context, name string, data []byte) error
	open(ctx context.Context, name string) (io.ReadCloser, error) // ErrMissing
	has(ctx context.Context, name string) (bool, error)
	walk(ctx context.Context, prefix string, visit visitor) error             // in any order
	remove(ctx context.Context, name string, written time.Time) (bool, error) // false: missing, or written since
	where(name string) string
	reach(ctx context.Context) error
}

// visitor is called for each object.
type visitor func(name string, size int64, written time.Time) error

// batch is a set of puts that become durable together.
type batch interface {
	// put writes the blob. An existing blob is trusted only if it was verified. It is safe for concurrent use.
	put(ctx context.Context, d Digest, from Source) error
	// end makes all puts durable.
	end() error
}

// Source opens the same bytes each time.
type Source func() (io.ReadCloser, error)

// Store is an open store. It is safe for concurrent use, also by several processes.
type Store struct {
	url    string
	medium medium
}

// Open opens the store at a URL: file:///var/lib/passbook/store, or a bucket such as
// s3://bucket?region=eu-central-1. The folder of a file:// URL is created, readable by this user only. A bucket must
// exist; a missing one is reported at the first use. There is nothing to close: buckets share their connections.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	return OpenOn(ctx, disk.Disk{}, rawURL)
}

// OpenOn is [Open] with a disk for a file:// store, whose hook sees each step.
func OpenOn(ctx context.Context, disk disk.Disk, rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	var m medium
	if u.Scheme == "file" {
		m, err = openFolder(u, disk)
	} else {
		m, err = openBucket(u)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", rawURL, err)
	}
	return &Store{url: rawURL, medium: m}, nil
}

// Reach returns nil if the store responds and is readable. It reads almost nothing.
func (s *Store) Reach(ctx context.Context) error { return s.medium.reach(ctx) }

// URL returns the URL that the store was opened with.
func (s *Store) URL() string { return s.url }

// Create writes data under a name if the name is free, and reports whether it did: of all concurrent callers on
// all hosts one wins. The name is durable for the losers too. On a bucket, a winner whose confirmation was lost
// may get false: its own data is then under the name.
func (s *Store) Create(ctx context.Context, name string, data []byte) (won bool, err error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	if won, err = s.medium.create(ctx, name, data); err != nil {
		return false, fmt.Errorf("create %s: %w", s.medium.where(name), err)
	}
	return won, nil
}

// Replace writes data under a name in any case: for damaged data that was restored. It is atomic and durable on
// return.
func (s *Store) Replace(ctx context.Context, name string, data []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.medium.replace(ctx, name, data); err != nil {
		return fmt.Errorf("replace %s: %w", s.medium.where(name), err)
	}
	return nil
}

// ReadName returns the data of a name, or [ErrMissing].
func (s *Store) ReadName(ctx context.Context, name string) ([]byte, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	data, err := readAll(ctx, s.medium, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.medium.where(name), err)
	}
	return data, nil
}

// List returns the created names with a prefix, sorted. The prefix need not end with a slash; an empty one lists
// all names.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	names := []string{}
	err := s.medium.walk(ctx, prefix, func(name string, _ int64, _ time.Time) error {
		if checkName(name) == nil {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.medium.where(prefix), err)
	}
	slices.Sort(names)
	return names, nil
}

// PutJSON stores v as JSON.
func (s *Store) PutJSON(ctx context.Context, v any) (Digest, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("put %T: %w", v, err)
	}
	return s.Put(ctx, data)
}

// GetJSON reads a blob into v.
func (s *Store) GetJSON(ctx context.Context, d Digest, v any) error {
	data, err := s.Get(ctx, d)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("blob %s is not a %T: %w", d, v, err)
	}
	return nil
}

func readAll(ctx context.Context, m medium, name string) ([]byte, error) {
	r, err := m.open(ctx, name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

// sentinelError is an error that also matches one of package fs.
type sentinelError struct {
	text  string
	match error // of package fs
}

func (c sentinelError) Error() string { return c.text }

func (c sentinelError) Is(target error) bool { return target == c.match }
