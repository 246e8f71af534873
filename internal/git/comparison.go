package git

import (
	"context"
	"errors"
	"fmt"
	"os"
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

// Files compares files byte for byte, whatever their attributes. drop removes temporary files.
func Files(ctx context.Context, before, after []File) (c *Comparison, drop func() error, err error) {
	temp, err := tempFolder("passbook-compare-")
	if err != nil {
		return nil, nil, err
	}
	drop = func() error { return os.RemoveAll(temp) }
	c = &Comparison{git{dir: temp}, sideRef + "0", sideRef + "1"}
	if err := c.git.importSides(ctx, before, after); err != nil {
		return nil, nil, fmt.Errorf("compare files: %w", errors.Join(err, drop()))
	}
	return c, drop, nil
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
