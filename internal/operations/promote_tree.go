package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/rundir"
)

// tree copies the workspace to the path: it is written beside it, made durable, and then takes its place.
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

// look reports whether the path is free or has the result already; otherwise it has data that may be exchanged.
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
		return false, c.dir.Disk.SettleAll(c.path)
	case !c.force:
		return false, orForce(rundir.Vacant(c.path),
			"with --force the result of run "+c.result.RunID+" replaces what is there, which is kept beside it")
	}
	return false, nil
}

// keep renames the former data at the path to a name beside it. An empty folder is not kept.
func (c *copying) keep(from string) error {
	if os.Remove(from) == nil {
		return nil
	}
	to := c.backup()
	if err := c.dir.Disk.Rename(from, to); err != nil {
		return fmt.Errorf("the former content of %s is at %s: %w", c.path, from, err)
	}
	c.made.Before = to
	return nil
}

// staging is a folder beside the path for this run. Until the file whole exists, it may contain a part of the result;
// after that the complete result, or after the exchange the former data.
type staging struct{ root, laid, spare, whole string }

func (c *copying) staging() staging {
	root := filepath.Join(filepath.Dir(c.path), "."+filepath.Base(c.path)+".promoting-"+c.result.RunID)
	in := func(name string) string { return filepath.Join(root, name) }
	return staging{root: root, laid: in("laid"), spare: in("spare"), whole: in("whole")}
}

// lay writes the complete result there. Data exchanged by an interrupted promotion is kept first.
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
	if err := c.dir.Disk.SettleAll(st.laid); err != nil {
		return err
	}
	return c.dir.Disk.WriteFile(st.whole, nil, 0o644)
}

// rescue keeps the former data that an interrupted promotion exchanged.
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

// drop removes the staging folder, whose content can be rebuilt.
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

// holds reports whether a folder contains exactly a tree.
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

// isEntry reports whether a path has the same entry as a tree.
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
