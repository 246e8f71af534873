package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/pipeline"
)

// ProtectWarnings names the protected paths that match nothing in the source of a definition, with file and line. A
// source that cannot be read has no warnings: a run reports that.
func (d Definition) ProtectWarnings(ctx context.Context) []string {
	w := d.Plan.Workspace
	if w == nil || len(w.Protect) == 0 {
		return nil
	}
	source, err := sourceOf(d)
	if err != nil {
		return nil
	}
	var fits func(pipeline.Paths) (bool, error)
	if w.Git == "" {
		fits = inFolder(source)
	} else if fits, err = inRepository(ctx, source); err != nil {
		return nil
	}
	var out []string
	for i, p := range w.Protect {
		if found, err := fits(pipeline.Paths{p}); found || err != nil {
			continue
		}
		_, line := pipeline.Locate(d.Source, []string{"workspace", "protect", strconv.Itoa(i)})
		out = append(out, fmt.Sprintf("%s:%d: %s", d.Parsed.File, line, fitsNothing(p)))
	}
	return out
}

func fitsNothing(p string) string {
	return fmt.Sprintf("workspace.protect has %s, and the workspace has no such file: only files that are added there "+
		"are removed", p)
}

var errFound = errors.New("found")

// inFolder looks for paths in a folder.
func inFolder(folder string) func(pipeline.Paths) (bool, error) {
	return func(p pipeline.Paths) (bool, error) {
		glob := strings.TrimSuffix(strings.TrimPrefix(p[0], "./"), "/")
		err := doublestar.GlobWalk(os.DirFS(folder), glob, func(name string, e fs.DirEntry) error {
			if p.Fits(name, e.IsDir()) {
				return errFound
			}
			return nil
		})
		if errors.Is(err, errFound) {
			return true, nil
		}
		return false, err
	}
}

// inRepository looks for paths in the last commit of a repository.
func inRepository(ctx context.Context, source string) (func(pipeline.Paths) (bool, error), error) {
	r, err := git.Open(ctx, source)
	if err != nil {
		return nil, err
	}
	files, err := r.Tracked(ctx, "HEAD")
	return func(p pipeline.Paths) (bool, error) {
		for _, f := range files {
			if p.Covers(f, false) {
				return true, nil
			}
		}
		return false, nil
	}, err
}

// unprotected names the protected paths that match nothing in the first tree of a run.
func unprotected(protect pipeline.Paths, first tree.Tree) []string {
	var out []string
	for _, p := range protect {
		one, found := pipeline.Paths{p}, false
		for _, e := range first.Entries {
			if found = one.Fits(e.Path, e.Mode == tree.ModeFolder); found {
				break
			}
		}
		if !found {
			out = append(out, fitsNothing(p))
		}
	}
	return out
}
