package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Comparison is a snapshot of two trees. With paths, its methods include only these files and folders; a rename
// needs both paths.
type Comparison struct {
	git      git
	from, to string // commit or tree
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

// Folders compares two folders byte for byte, also outside repositories. drop removes temporary files.
func Folders(ctx context.Context, before, after string) (c *Comparison, drop func() error, err error) {
	temp, err := tempFolder("passbook-compare-")
	if err != nil {
		return nil, nil, err
	}
	drop = func() error { return os.RemoveAll(temp) }
	c = &Comparison{git: git{dir: temp}}
	if err = c.git.initPlain(ctx); err == nil {
		c.from, err = c.git.storeFolder(ctx, before)
	}
	if err == nil {
		c.to, err = c.git.storeFolder(ctx, after)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("compare %s with %s: %w", before, after, errors.Join(err, drop()))
	}
	return c, drop, nil
}

// initPlain creates a bare repository that stores files unchanged, regardless of .gitattributes.
func (g git) initPlain(ctx context.Context) error {
	if _, err := g.output(ctx, "init", "--quiet", "--bare", "--template="); err != nil {
		return err
	}
	info := filepath.Join(g.dir, "info")
	if err := os.MkdirAll(info, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(info, "attributes"), []byte("* -text !filter !ident !working-tree-encoding\n"),
		0o600)
}

// storeFolder stores all files of a folder in the bare repository and returns the id of the tree.
func (g git) storeFolder(ctx context.Context, files string) (tree string, err error) {
	index := filepath.Join(g.dir, "passbook-index")
	in := git{dir: files}.withEnv("GIT_DIR="+g.dir, "GIT_WORK_TREE="+files, "GIT_INDEX_FILE="+index)
	defer func() {
		if gone := os.Remove(index); !errors.Is(gone, fs.ErrNotExist) { // git creates none on failure
			err = errors.Join(err, gone)
		}
	}()
	if _, err := in.output(ctx, "-c", "core.autocrlf=false", "-c", "core.bare=false", "add", "--all",
		"--force"); err != nil {
		return "", err
	}
	return in.line(ctx, "-c", "core.bare=false", "write-tree")
}

// Changes returns the files that differ, sorted by path.
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

// Patch returns the changes as a patch for git apply, including binary files. Without changes it is empty.
func (c *Comparison) Patch(ctx context.Context, paths ...string) ([]byte, error) {
	out, err := c.diff(ctx, paths, "--patch", "--binary", "--full-index", "--no-color", "--src-prefix=a/",
		"--dst-prefix=b/")
	if err != nil {
		return nil, fmt.Errorf("make a patch of the changes: %w", err)
	}
	return out, nil
}

// Stat returns the changes as a table: a line per file and one with the totals.
func (c *Comparison) Stat(ctx context.Context, paths ...string) (string, error) {
	out, err := c.diff(ctx, paths, "--stat=100", "--no-color")
	if err != nil {
		return "", fmt.Errorf("sum up the changes: %w", err)
	}
	return string(out), nil
}

// diff runs git's plumbing command, which ignores the user's diff settings.
func (c *Comparison) diff(ctx context.Context, paths []string, flags ...string) ([]byte, error) {
	args := append([]string{"diff-tree", "-r", "-M"}, flags...)
	args = append(args, c.from, c.to, "--")
	return c.git.output(ctx, append(args, paths...)...)
}
