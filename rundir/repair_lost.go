package rundir

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/shell"
)

// findLost names the damaged files that can not be made again: what they hold is neither in the store nor, undamaged, in the directory.
func (x *examined) findLost(ctx context.Context, blobs Blobs) error {
	x.lost = nil
	if blobs == nil || x.shadow == nil {
		return nil
	}
	from := &spareBlobs{Blobs: blobs, x: x}
	for _, i := range x.found {
		for _, name := range x.shadow.below(i.file) {
			f := x.shadow.files[name]
			var err error
			switch {
			case f.tree != "":
				_, err = blobs.Manifest(ctx, f.tree)
			case f.blob:
				_, err = from.Get(ctx, f.digests[0])
			}
			if lost(err) || errors.Is(err, ErrDamaged) {
				x.lost = append(x.lost, name)
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// restores says that a finding's file, or all of its folder, can be made again.
func (x *examined) restores(i Issue) bool {
	return !slices.ContainsFunc(x.lost, func(name string) bool { return name == i.file || strings.HasPrefix(name, i.file+"/") })
}

// lostHint says what cannot be made again; empty: nothing.
func (x *examined) lostHint() string {
	if len(x.lost) == 0 {
		return ""
	}
	return fmt.Sprintf("%s cannot be made again: the store has lost what it held (starter check --deep %s names it)", strings.Join(x.lost, ", "), shell.Quote(x.dir.Root))
}

// below are the files that a name stands for: itself, or those of a folder.
func (s *shadow) below(name string) []string {
	if name == "" {
		return nil
	}
	var out []string
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		if file == name || strings.HasPrefix(file, name+"/") {
			out = append(out, file)
		}
	}
	return out
}

// spareBlobs is a store that takes what it has lost from the files of the directory that are as they were written.
type spareBlobs struct {
	Blobs
	x *examined
}

// Get gives the bytes of a blob.
func (b *spareBlobs) Get(ctx context.Context, want string) ([]byte, error) {
	raw, err := b.Blobs.Get(ctx, want)
	if err == nil || b.x.shadow == nil || !lost(err) && !errors.Is(err, ErrDamaged) {
		return raw, err
	}
	for _, name := range slices.Sorted(maps.Keys(b.x.shadow.files)) {
		if !slices.Contains(b.x.shadow.files[name].digests, want) {
			continue
		}
		if raw, rerr := os.ReadFile(b.x.dir.Path(name)); rerr == nil && digest(raw) == want {
			return raw, nil
		}
	}
	return nil, err
}
