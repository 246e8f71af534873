package operate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
)

// tree puts the workspace at the path: the whole of it is laid down beside it and made durable, then takes its place.
func (c *copying) tree(ctx context.Context) error {
	want, err := tree.Load(ctx, c.store, store.Digest(c.result.Digest))
	if err != nil {
		return err
	}
	c.made.Files = 0
	for _, e := range want.Entries {
		if e.Mode != tree.ModeFolder {
			c.made.Files++
		}
	}
	st := c.staging()
	free, err := c.look(want)
	if err != nil {
		return err
	}
	if c.made.Again {
		return st.drop(c)
	}
	if err := st.lay(ctx, c, want); err != nil {
		return err
	}
	if free {
		err = c.dir.Disk.Rename(st.laid, c.path)
	} else if err = c.dir.Disk.Exchange(st.laid, c.path, st.spare); err == nil {
		err = c.keep(st.laid)
	}
	return errors.Join(err, st.drop(c))
}

// look says whether nothing is at the path, or the result already; else there is something that may be exchanged.
func (c *copying) look(want tree.Tree) (free bool, err error) {
	switch _, err := os.Lstat(c.path); {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case err != nil:
		return false, err
	}
	inside, err := os.ReadDir(c.path)
	if err != nil || len(inside) == 0 && len(want.Entries) > 0 {
		return false, err
	}
	same, err := holds(c.path, want)
	switch {
	case err != nil:
		return false, err
	case same:
		c.made.Again = true
		return false, c.dir.Disk.SettleTree(c.path)
	case !c.force:
		return false, orForce(rundir.Vacant(c.path), "with --force the result of run "+c.result.RunID+" replaces what is there, which is kept beside it")
	}
	return false, nil
}

// keep gives what was at the path a name beside it. An empty folder is not worth one.
func (c *copying) keep(from string) error {
	if os.Remove(from) == nil {
		return nil
	}
	to := c.aside()
	if err := c.dir.Disk.Rename(from, to); err != nil {
		return fmt.Errorf("what was at %s is at %s: %w", c.path, from, err)
	}
	c.made.Before = to
	return nil
}

// staging is a folder beside the path, of this run alone. While whole is not there, what was laid down in it is ours and perhaps a part only;
// from then on it is the whole result, or, after the exchange, what was at the path.
type staging struct{ root, laid, spare, whole string }

func (c *copying) staging() staging {
	root := filepath.Join(filepath.Dir(c.path), "."+filepath.Base(c.path)+".promoting-"+c.result.RunID)
	in := func(name string) string { return filepath.Join(root, name) }
	return staging{root: root, laid: in("laid"), spare: in("spare"), whole: in("whole")}
}

// lay makes the whole result there. What a promotion that was cut off had exchanged is kept first.
func (st staging) lay(ctx context.Context, c *copying, want tree.Tree) error {
	if err := c.dir.Disk.Mkdir(st.root, 0o755); err != nil {
		return err
	}
	if err := st.rescue(c, want); err != nil {
		return err
	}
	if present(st.whole) && present(st.laid) {
		return nil
	}
	if err := os.RemoveAll(st.whole); err != nil {
		return err
	}
	if _, err := tree.Checkout(ctx, c.store, store.Digest(c.result.Digest), st.laid, tree.Rules{}); err != nil {
		return err
	}
	if err := c.dir.Disk.SettleTree(st.laid); err != nil {
		return err
	}
	return c.dir.Disk.WriteFile(st.whole, nil, 0o644)
}

// rescue keeps what was at the path, and was exchanged by a promotion that came no further.
func (st staging) rescue(c *copying, want tree.Tree) error {
	if present(st.spare) {
		return c.keep(st.spare)
	}
	if !present(st.whole) || !present(st.laid) {
		return nil
	}
	ours, err := holds(st.laid, want)
	if err != nil || ours {
		return err
	}
	return c.keep(st.laid)
}

// drop removes the staging folder. Only what can be made again is in it.
func (st staging) drop(c *copying) error {
	if !present(st.root) {
		return nil
	}
	t, err := tree.Load(context.Background(), c.store, store.Digest(c.result.Digest))
	if err != nil {
		return err
	}
	if err := st.rescue(c, t); err != nil {
		return err
	}
	return os.RemoveAll(st.root)
}

func present(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// holds says whether a folder is exactly a tree: nothing more, nothing less, nothing else.
func holds(root string, want tree.Tree) (bool, error) {
	all := map[string]tree.Entry{}
	for _, e := range want.Entries {
		all[e.Path] = e
	}
	same := true
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		e, wanted := all[filepath.ToSlash(rel)]
		if wanted {
			delete(all, e.Path)
			wanted, err = isEntry(path, d, e)
		}
		if err == nil && !wanted {
			same, err = false, filepath.SkipAll
		}
		return err
	})
	return same && len(all) == 0, err
}

// isEntry says whether what is at a path is what a tree has there.
func isEntry(path string, d fs.DirEntry, e tree.Entry) (bool, error) {
	fi, err := d.Info()
	if err != nil {
		return false, err
	}
	switch {
	case fi.Mode().Type() != kindOf(e):
		return false, nil
	case e.Mode == tree.ModeSymlink:
		link, err := os.Readlink(path)
		return link == e.Link, err
	case e.Mode == tree.ModeFolder:
		return fi.Mode().Perm() == e.Perm, nil
	case fi.Mode().Perm() != e.Perm || fi.Size() != e.Size:
		return false, nil
	}
	digest, _, err := store.DigestFrom(func() (io.ReadCloser, error) { return os.Open(path) })
	return digest == e.Digest, err
}

func kindOf(e tree.Entry) fs.FileMode {
	switch e.Mode {
	case tree.ModeSymlink:
		return fs.ModeSymlink
	case tree.ModeFolder:
		return fs.ModeDir
	}
	return 0
}
