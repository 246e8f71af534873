// Package store keeps everything big: prompts, replies, artifacts, trees,
// pictures, plans and sealed events.
//
// A store is a bucket URL. It holds blobs, which are named by the sha-256 of
// their content and never change, and names, which are created once by whoever
// is first. When a call that writes returns without an error, what it wrote is
// durable: on a file:// store it is on disk, content and name; on a bucket the
// service has confirmed it. What is read by its digest is checked against it.
//
// It deletes nothing but what [Store.Remove] is told to, and it does not know
// what the blobs mean. A blob that is put again counts as written again, within
// an hour, so that what is in use never looks old. The drivers of
// the cloud services are in store/clouds; a program that wants their URLs
// imports it.
package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"sort"
	"time"

	"github.com/passbook-run/passbook/durable"
)

// Errors that a caller tests for.
var (
	ErrMissing     error = condition{"it is not in the store", fs.ErrNotExist}
	ErrDamaged     error = condition{"it is damaged in the store", fs.ErrInvalid}
	ErrUnreachable       = errors.New("the store is not reachable")
	ErrChanged           = errors.New("it changed while it was being stored: try again when nobody writes to it")
)

// DamagedError says that a blob's bytes do not have its digest. It is
// [ErrDamaged]. Putting the right bytes again heals the blob.
type DamagedError struct {
	Digest Digest // what was asked for
	Found  Digest // what is there
	Where  string // its path or URL
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("blob %s is damaged: %s holds bytes with digest %s; restore that file from a copy, or put the blob again", e.Digest, e.Where, e.Found)
}

func (e *DamagedError) Unwrap() error { return ErrDamaged }

// medium is where the bytes are: a folder or a bucket. Names are checked before
// they get here.
type medium interface {
	begin() batch
	create(ctx context.Context, name string, data []byte) (won bool, err error)
	replace(ctx context.Context, name string, data []byte) error
	open(ctx context.Context, name string) (io.ReadCloser, error) // ErrMissing
	has(ctx context.Context, name string) (bool, error)
	list(ctx context.Context, prefix string) ([]string, error) // in any order
	walk(ctx context.Context, visit func(name string, size int64, written time.Time) error) error
	remove(ctx context.Context, name string, written time.Time) (bool, error) // false: it is gone, or was written since
	where(name string) string
	reach(ctx context.Context) error
	close() error
}

// batch is puts that become durable together.
type batch interface {
	// put writes the blob. A blob that is there is trusted only if it was
	// checked. It is for any number of goroutines.
	put(ctx context.Context, d Digest, from Source) error
	// end makes all that was put durable.
	end() error
}

// Source opens the same bytes each time.
type Source func() (io.ReadCloser, error)

// Store is an open store, for any number of goroutines and processes at once.
type Store struct {
	url    string
	local  bool
	medium medium
}

// Open opens the store at a bucket URL: file:///var/lib/passbook/store, or one
// of a driver that the program imports, like s3://bucket?region=eu-central-1.
// The folder of a file:// URL is created, readable by this user only. A bucket
// must exist; whether it does shows at the first use.
func Open(ctx context.Context, rawURL string) (*Store, error) {
	return OpenOn(ctx, durable.Disk{}, rawURL)
}

// OpenOn does as [Open]; what a file:// store writes goes through disk, whose hook sees each step.
func OpenOn(ctx context.Context, disk durable.Disk, rawURL string) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	var m medium
	if u.Scheme == "file" {
		m, err = openFolder(u, disk)
	} else {
		m, err = openBucket(ctx, u)
	}
	if err != nil {
		return nil, fmt.Errorf("open the store %s: %w", rawURL, err)
	}
	return &Store{url: rawURL, local: u.Scheme == "file", medium: m}, nil
}

// Close frees the store's connections.
func (s *Store) Close() error { return s.medium.close() }

// Reach returns nil if the store answers this process and lets it read. It reads next to nothing.
func (s *Store) Reach(ctx context.Context) error { return s.medium.reach(ctx) }

// URL is what the store was opened with.
func (s *Store) URL() string { return s.url }

// Local says whether the store is a folder of this host.
func (s *Store) Local() bool { return s.local }

// Create writes data under a name if the name is free, and says whether it
// did: of all who try, in all processes and on all hosts, one wins. The name is
// durable for the losers too. On a bucket, a winner whose confirmation was lost
// on the way may be told that it lost: its own bytes are then under the name.
func (s *Store) Create(ctx context.Context, name string, data []byte) (won bool, err error) {
	if err := checkName(name); err != nil {
		return false, err
	}
	if won, err = s.medium.create(ctx, name, data); err != nil {
		return false, fmt.Errorf("create %s: %w", s.medium.where(name), err)
	}
	return won, nil
}

// Replace puts data under a name whatever is there: for what was found damaged and is made again. It is whole and durable on return.
func (s *Store) Replace(ctx context.Context, name string, data []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	if err := s.medium.replace(ctx, name, data); err != nil {
		return fmt.Errorf("replace %s: %w", s.medium.where(name), err)
	}
	return nil
}

// ReadName gives what was created under a name, or [ErrMissing].
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

// List gives the created names that begin with prefix, sorted. The prefix need
// not end at a slash; an empty one gives all names.
func (s *Store) List(ctx context.Context, prefix string) ([]string, error) {
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	all, err := s.medium.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", s.medium.where(prefix), err)
	}
	names := make([]string, 0, len(all))
	for _, name := range all {
		if checkName(name) == nil {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, nil
}

// PutJSON puts the JSON of v.
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

// condition is an error that readers who know no stores recognise too.
type condition struct {
	words string
	like  error // of package fs
}

func (c condition) Error() string { return c.words }

func (c condition) Is(target error) bool { return target == c.like }
