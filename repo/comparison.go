package repo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Comparison is two trees, and what leads from one to the other. What is made of it later is of the same moment. With paths, each method
// looks at these files and folders only; of a rename both paths must be given.
type Comparison struct {
	git      git
	from, to string // commit or tree
}

// Since compares commit base with all that a commit of the worktree would hold now.
func (w *Worktree) Since(ctx context.Context, base string) (*Comparison, error) {
	from, err := w.commit(ctx, base)
	if err != nil {
		return nil, err
	}
	to, err := w.snapshot(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("look at the changes since %s: %w", base, err)
	}
	return &Comparison{w.git, from, to}, nil
}

// Between compares two commits.
func (r *Repo) Between(ctx context.Context, from, to string) (*Comparison, error) {
	a, err := r.commit(ctx, from)
	if err != nil {
		return nil, err
	}
	b, err := r.commit(ctx, to)
	return &Comparison{r.git, a, b}, err
}

// Folders compares two folders that need not be in a repository, byte for byte. drop removes what git had to keep for it.
func Folders(ctx context.Context, before, after string) (c *Comparison, drop func() error, err error) {
	temp, err := os.MkdirTemp("", "passbook-compare-")
	if err != nil {
		return nil, nil, err
	}
	drop = func() error { return os.RemoveAll(temp) }
	c = &Comparison{git: git{dir: temp}}
	if err = c.git.initPlain(ctx); err == nil {
		c.from, err = c.git.folder(ctx, before)
	}
	if err == nil {
		c.to, err = c.git.folder(ctx, after)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compare %s with %s: %w", before, after, errors.Join(err, drop()))
	}
	return c, drop, nil
}

// initPlain makes the folder a bare repository that takes files as they are, whatever .gitattributes there are among them.
func (g git) initPlain(ctx context.Context) error {
	if _, err := g.out(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
		return err
	}
	info := filepath.Join(g.dir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text !filter !ident !working-tree-encoding\n"), 0o600)
}

// folder stores all files of a folder in the bare repository at g's folder, as they are, and gives the id of the tree.
func (g git) folder(ctx context.Context, files string) (tree string, err error) {
	index := filepath.Join(g.dir, "passbook-index")
	in := git{dir: files}.with("GIT_DIR="+g.dir, "GIT_WORK_TREE="+files, "GIT_INDEX_FILE="+index)
	defer func() {
		if gone := os.Remove(index); !errors.Is(gone, fs.ErrNotExist) { // git makes none where it fails
			err = errors.Join(err, gone)
		}
	}()
	if _, err := in.out(ctx, "-c", "core.autocrlf=false", "-c", "core.bare=false", "add", "--all", "--force"); err != nil {
		return "", err
	}
	return in.line(ctx, "-c", "core.bare=false", "write-tree")
}

// Changes lists the files that differ, in the order of their paths.
func (c *Comparison) Changes(ctx context.Context, paths ...string) ([]Change, error) {
	out, err := c.diff(ctx, paths, "-z", "--raw", "--numstat")
	if err != nil {
		return nil, fmt.Errorf("list the changes: %w", err)
	}
	changes, err := parseChanges(out)
	if err != nil {
		return nil, fmt.Errorf("list the changes in %s: %w", c.git.dir, err)
	}
	return changes, nil
}

// Patch gives the changes as a patch that git apply takes, binary files included. Without changes it is empty.
func (c *Comparison) Patch(ctx context.Context, paths ...string) ([]byte, error) {
	out, err := c.diff(ctx, paths, "--patch", "--binary", "--full-index", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
	if err != nil {
		return nil, fmt.Errorf("make a patch of the changes: %w", err)
	}
	return out, nil
}

// Stat gives the changes as a table for people: a line for each file, and a last one with the sums.
func (c *Comparison) Stat(ctx context.Context, paths ...string) (string, error) {
	out, err := c.diff(ctx, paths, "--stat=100", "--no-color")
	if err != nil {
		return "", fmt.Errorf("sum up the changes: %w", err)
	}
	return string(out), nil
}

// diff asks git's plumbing, which does not listen to the user's diff settings.
func (c *Comparison) diff(ctx context.Context, paths []string, flags ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "-M"}, flags...)
	args = append(args, c.from, c.to, "--")
	return c.git.out(ctx, append(args, paths...)...)
}
