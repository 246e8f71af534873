package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Object is a blob or a created name.
type Object struct {
	Name    string
	Digest  Digest // empty for a created name
	Size    int64
	Written time.Time // or last put
}

// Walk visits all objects in any order. Objects written meanwhile may be missing. Temporary files are not visited.
func (s *Store) Walk(ctx context.Context, visit func(Object) error) error {
	err := s.medium.walk(ctx, "", func(name string, size int64, written time.Time) error {
		if hex, is := strings.CutPrefix(name, blobs); is {
			d := Digest(strings.Replace(hex, "/", "", 1))
			if !d.Valid() || d.name() != name {
				return nil
			}
			return visit(Object{Name: name, Digest: d, Size: size, Written: written})
		}
		if checkName(name) != nil {
			return nil
		}
		return visit(Object{Name: name, Size: size, Written: written})
	})
	if err != nil {
		return fmt.Errorf("walk the store %s: %w", s.url, err)
	}
	return nil
}

// Remove removes an object unless it was written or put again since Walk visited it; then, or if it is missing,
// removed is false. A concurrent put of the blob may lose it, so remove only blobs that were not put for long.
// After a power failure the object may exist again.
func (s *Store) Remove(ctx context.Context, o Object) (removed bool, err error) {
	if removed, err = s.medium.remove(ctx, o.Name, o.Written); err != nil {
		return false, fmt.Errorf("remove %s: %w", s.medium.where(o.Name), err)
	}
	return removed, nil
}
