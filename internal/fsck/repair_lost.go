package fsck

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/shell"
)

// findLost lists the damaged files that cannot be rebuilt: neither the store nor an undamaged file in the directory has
// their contents.
func (x *examined) findLost(ctx context.Context, blobs projector.Blobs) error {
	if blobs == nil || x.shadow == nil {
		return nil
	}
	from := &spareBlobs{Blobs: blobs, x: x}
	for _, i := range x.found {
		for _, name := range below(x.shadow, i.file) {
			f := x.shadow.Files[name]
			var err error
			switch {
			case f.Tree != "":
				_, err = blobs.Manifest(ctx, f.Tree)
			case f.Blob:
				_, err = from.Get(ctx, f.Digests[0])
			}
			if disk.Lost(err) || errors.Is(err, disk.ErrDamaged) {
				x.lost = append(x.lost, name)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// restores reports whether the file of a finding, or its whole folder, can be rebuilt.
func (x *examined) restores(i Issue) bool {
	return !slices.ContainsFunc(x.lost, func(name string) bool {
		return name == i.file ||
			strings.HasPrefix(name, i.file+"/")
	})
}

// lostHint describes what cannot be rebuilt; empty: nothing.
func (x *examined) lostHint() string {
	if len(x.lost) == 0 {
		return ""
	}
	return fmt.Sprintf("%s cannot be rebuilt: the store has lost its contents (run starter check --deep %s for details)",
		strings.Join(x.lost, ", "), shell.Quote(x.dir.Root))
}

// below lists the files of a name: itself, or those of a folder.
func below(s *projector.Shadow, name string) []string {
	if name == "" {
		return nil
	}
	var out []string
	for _, file := range slices.Sorted(maps.Keys(s.Files)) {
		if file == name || strings.HasPrefix(file, name+"/") {
			out = append(out, file)
		}
	}
	return out
}

// spareBlobs is a store that replaces lost blobs with undamaged files of the directory.
type spareBlobs struct {
	projector.Blobs
	x *examined
}

// Get returns the bytes of a blob.
func (b *spareBlobs) Get(ctx context.Context, want string) ([]byte, error) {
	raw, err := b.Blobs.Get(ctx, want)
	if err == nil || !disk.Lost(err) && !errors.Is(err, disk.ErrDamaged) {
		return raw, err
	}
	for _, name := range slices.Sorted(maps.Keys(b.x.shadow.Files)) {
		if !slices.Contains(b.x.shadow.Files[name].Digests, want) {
			continue
		}
		if raw, rerr := b.x.dir.ReadFile(name); rerr == nil && disk.Digest(raw) == want {
			return raw, nil
		}
	}
	return nil, err
}
