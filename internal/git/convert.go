package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// converter is git with the repository's objects and configuration, an empty folder as its checkout, and an index that
// contains only .gitattributes of one commit: those alone convert files. The user's own attributes outside of the tree
// apply too, but neither core.autocrlf nor core.eol do. Filters run in the empty folder, so one whose command is a path
// in the checkout fails.
type converter struct {
	git
	temp string // contains the checkout
}

const checkout = "checkout"

func (r *Repo) converter(ctx context.Context, attributes []entry) (c converter, err error) {
	temp, err := tempFolder("passbook-files-")
	if err != nil {
		return c, err
	}
	c = converter{git: r.git.inIndex(temp), temp: temp}
	c.dir = filepath.Join(temp, checkout)
	c.git = c.withEnv("GIT_DIR="+r.common, "GIT_WORK_TREE="+c.dir)
	c.over = append(slices.Clip(c.over), "core.autocrlf=false", "core.eol=lf", "core.ignoreCase=false",
		"core.fsyncMethod=batch", "core.fsync=committed,loose-object")
	if err = os.Mkdir(c.dir, 0o700); err == nil {
		err = c.setEntries(ctx, attributes)
	}
	if err != nil {
		return c, errors.Join(err, c.drop())
	}
	return c, nil
}

func (c converter) drop() error { return os.RemoveAll(c.temp) }

// storeAs stores files as attributes convert them.
func (r *Repo) storeAs(ctx context.Context, attributes []entry, files []File) (list []entry, err error) {
	c, err := r.converter(ctx, attributes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.drop()) }()
	return c.store(ctx, files)
}

// store writes the converted content of files into the repository and returns their entries. Attributes in the stored
// files do not apply. A .gitattributes is stored as it is.
func (c converter) store(ctx context.Context, files []File) (list []entry, err error) {
	root, err := os.OpenRoot(c.temp)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var names, raw []string
	for i, f := range files {
		if f.Mode == "" {
			continue
		}
		at := checkout + "/" + f.Path
		if f.plain() {
			at = fmt.Sprintf("plain/%d", i) // in the checkout its attributes would apply
			raw = append(raw, filepath.Join(c.temp, at))
		} else {
			names = append(names, f.Path)
		}
		if err := f.write(root, at); err != nil {
			return nil, fmt.Errorf("file %q: %w", f.Path, err)
		}
	}
	ids, err := c.add(ctx, names)
	if err != nil {
		return nil, err
	}
	rawIDs, err := c.hash(ctx, raw)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		e := entry{mode: f.Mode, path: f.Path}
		switch {
		case f.Mode == "":
		case f.plain():
			e.id, rawIDs = rawIDs[0], rawIDs[1:]
		default:
			e.id = ids[f.Path]
		}
		list = append(list, e)
	}
	return list, nil
}

// add stores files of the folder, converted.
func (c converter) add(ctx context.Context, names []string) (ids map[string]string, err error) {
	if len(names) == 0 {
		return nil, nil
	}
	if _, err := c.run(ctx, joinNUL(names), "update-index", "--add", "-z", "--stdin"); err != nil {
		return nil, err
	}
	out, err := c.output(ctx, "ls-files", "-z", "--stage")
	ids = map[string]string{}
	for _, line := range splitNUL(out) { // mode id stage \t path
		about, name, _ := strings.Cut(line, "\t")
		if f := strings.Fields(about); len(f) == 3 {
			ids[name] = f[1]
		}
	}
	for _, name := range names {
		if err == nil && ids[name] == "" {
			err = fmt.Errorf("file %q: git stored nothing of this name", name)
		}
	}
	return ids, err
}

// hash stores files of the folder as they are.
func (c converter) hash(ctx context.Context, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	out, err := c.run(ctx, strings.NewReader(strings.Join(names, "\n")+"\n"), "hash-object", "-w", "--no-filters", "--stdin-paths")
	return strings.Fields(string(out)), err
}

// checkOut checks out files as attributes convert them.
func (r *Repo) checkOut(ctx context.Context, attributes, files []entry) (converter, error) {
	c, err := r.converter(ctx, attributes)
	if err == nil {
		err = c.checkOut(ctx, files)
	}
	if err != nil {
		return c, errors.Join(err, c.drop())
	}
	return c, nil
}

func (c converter) checkOut(ctx context.Context, list []entry) error {
	// their own .gitattributes must not replace those in the index
	list = slices.DeleteFunc(slices.Clone(list), entry.plain)
	if len(list) == 0 {
		return nil
	}
	if err := c.setEntries(ctx, list); err != nil {
		return err
	}
	var names []string
	for _, e := range list {
		names = append(names, e.path)
	}
	_, err := c.run(ctx, joinNUL(names), "checkout-index", "-z", "--stdin", "--prefix="+c.out()+"/")
	return err
}

func (c converter) out() string { return filepath.Join(c.temp, "out") }

// opener opens a file that checkOut wrote.
func (c converter) opener(ctx context.Context, e entry) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		if e.plain() {
			text, err := c.output(ctx, "cat-file", "blob", e.id)
			return io.NopCloser(bytes.NewReader(text)), err
		}
		return os.OpenInRoot(c.out(), e.path)
	}
}

// plain reports whether nothing converts the file.
func (e entry) plain() bool { return e.mode == ModeSymlink || path.Base(e.path) == attributesFile }

// plain reports whether the file is stored without a checkout.
func (f File) plain() bool { return path.Base(f.Path) == attributesFile && f.Mode != ModeSymlink }

// write writes the file under a new name. Two names that the file system takes for one are an error.
func (f File) write(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	if f.Mode == ModeSymlink {
		target, err := f.Read()
		if err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	}
	from, err := f.Content()
	if err != nil {
		return err
	}
	perm := fs.FileMode(0o666)
	if f.Mode == ModeExecutable {
		perm = 0o777
	}
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return errors.Join(err, from.Close())
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close(), from.Close())
}
