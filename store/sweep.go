package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Object is what a store holds under one name: a blob, or a created name.
type Object struct {
	Name    string
	Digest  Digest // of a blob; empty: a created name
	Size    int64
	Written time.Time // or put again
}

// Walk visits everything in the store, in any order. What is written meanwhile may be missing. Files that a writer left behind are not visited.
func (s *Store) Walk(ctx context.Context, visit func(Object) error) error {
	err := s.medium.walk(ctx, func(name string, size int64, written time.Time) error {
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
		return fmt.Errorf("walk through the store %s: %w", s.url, err)
	}
	return nil
}

// Remove removes an object, unless it was written or put again since it was walked past: then, or if it is gone already, removed is false. Who
// puts a blob at this very instant may find it there and lose it, so only what nobody has put for long may be removed. After a power cut it may
// be there again.
func (s *Store) Remove(ctx context.Context, o Object) (removed bool, err error) {
	if removed, err = s.medium.remove(ctx, o.Name, o.Written); err != nil {
		return false, fmt.Errorf("remove %s: %w", s.medium.where(o.Name), err)
	}
	return removed, nil
}
