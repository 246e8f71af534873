package operations

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/store"
)

// sort separates garbage from objects to keep.
func (g *collector) sort() (garbage []store.Object) {
	consider := func(o store.Object, needed bool) {
		switch {
		case needed:
			g.out.Kept.add(o)
		case !o.Written.Before(g.out.Before):
			g.out.Fresh.add(o)
		default:
			g.out.Garbage.add(o)
			garbage = append(garbage, o)
		}
	}
	for d, o := range g.reached.blobs {
		consider(o, g.reached.marked[d])
	}
	for _, o := range g.names {
		id, of := runOf(o.Name)
		last := strings.HasPrefix(o.Name, removedPrefix) && g.left[id] // it marks the rest as garbage
		consider(o, !of || !g.forgotten(id) || last)
	}
	slices.SortFunc(garbage, func(a, b store.Object) int {
		if a.Size != b.Size {
			return int(b.Size - a.Size)
		}
		return strings.Compare(a.Name, b.Name)
	})
	for _, o := range garbage {
		g.out.Objects = append(g.out.Objects, GarbageItem{Name: o.Name, Size: o.Size, Written: o.Written})
	}
	g.out.Broken = append(g.out.Broken, g.reached.damaged...)
	for _, id := range slices.Sorted(maps.Keys(g.unknown)) {
		if u := g.unknown[id]; u.Names > 0 || u.Segments > 0 {
			g.out.Unknown = append(g.out.Unknown, *u)
		}
	}
	return garbage
}

// mayForget refuses to forget a run with a directory.
func (g *collector) mayForget() error {
	for _, h := range g.out.Runs {
		if slices.Contains(g.Forget, h.RunID) {
			return &RefusedError{Verb: collectVerb,
				Why: fmt.Sprintf("run %s is in %s: to forget it, delete that directory first", h.RunID, h.Directory)}
		}
	}
	return nil
}

const collectVerb = "store gc"

// mayDelete refuses while references are not known.
func (g *collector) mayDelete() error {
	no := func(format string, args ...any) error {
		return &RefusedError{Verb: collectVerb, Why: fmt.Sprintf(format, args...) + ". Nothing was deleted"}
	}
	if len(g.out.Broken) > 0 {
		return no("unreadable record: %s. Fix it, or forget the run whose directory it is (--forget RUN)",
			g.out.Broken[0])
	}
	for _, u := range g.out.Unknown {
		if u.Blocks {
			return no("the store has objects of run %s, which was started elsewhere or by an earlier release, and "+
				"its directory is not found. Name its folder (--runs DIR), or forget the run (--forget %s)", u.RunID,
				u.RunID)
		}
	}
	return nil
}

// sweep removes garbage, names before the objects that they refer to: half of a call is not a call.
func (g *collector) sweep(ctx context.Context, garbage []store.Object) error {
	g.out.Deleted = true
	for _, names := range []bool{true, false} {
		for _, o := range garbage {
			if (o.Digest == "") != names {
				continue
			}
			removed, err := g.store.Remove(ctx, o)
			if err != nil {
				return err
			}
			if removed {
				g.out.Removed.add(o)
			}
		}
	}
	for _, id := range g.Forget {
		if err := calls.RemoveEnvironment(g.StateDir, config.Settings{StateDir: g.StateDir}.Scratch(), id); err != nil {
			return err
		}
		if err := sessions.Remove(g.StateDir, id); err != nil {
			return err
		}
	}
	return nil
}
