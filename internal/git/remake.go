package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Head is the state of a repository that [Mirror.Remake] makes.
type Head struct {
	Commit  string // complete id of a commit that was fetched
	Branch  string // "": detached
	Exclude string // the text of info/exclude
}

// Remake makes the repository of the folder at dir anew: configuration, HEAD, its one ref, index and info/exclude.
// Files of the folder stay as they are. Objects that were written there stay too; the others are those of the mirror.
//
// Whatever else .git was or contained is removed, and never read or run: no git runs in the folder, and the index is
// made from the objects of the mirror alone. After an error or a crash the same call completes it. No process may use
// the folder meanwhile. Nested repositories stay.
func (m *Mirror) Remake(ctx context.Context, dir string, h Head) error {
	if err := m.remake(ctx, dir, h, func(string) error { return nil }); err != nil {
		return fmt.Errorf("make the git repository in %s: %w", dir, err)
	}
	return nil
}

// remake calls step before each change.
func (m *Mirror) remake(ctx context.Context, dir string, h Head, step func(string) error) error {
	if err := h.check(); err != nil {
		return err
	}
	index, err := m.index(ctx, h.Commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := makeFolder(root, ".git", step); err != nil {
		return err
	}
	in, err := root.OpenRoot(".git")
	if err != nil {
		return err
	}
	defer in.Close()
	if err := removeOthers(in, ".", step, func(e fs.DirEntry) bool { return e.Name() == "objects" }); err != nil {
		return err
	}
	if err := cleanObjects(in, step); err != nil {
		return err
	}
	return m.fill(in, h, index, step)
}

func (h Head) check() error {
	ref := "refs/heads/" + h.Branch
	switch {
	case !objectID.MatchString(h.Commit):
		return fmt.Errorf("%q is not the complete id of a commit", h.Commit)
	case h.Branch != "" && (!filepath.IsLocal(ref) || path.Clean(ref) != ref || strings.ContainsAny(ref, " \\:?*[~^\n")):
		return fmt.Errorf("%q is not the name of a branch", h.Branch)
	}
	return nil
}

// index returns the index of a commit.
func (m *Mirror) index(ctx context.Context, commit string) (index []byte, err error) {
	if !m.has(commit) {
		return nil, fmt.Errorf("commit %s is not in the mirror %s: fetch it first", commit, m.path)
	}
	err = m.git.withIndex(func(g git, file string) error {
		if _, err := g.output(ctx, "read-tree", commit); err != nil {
			return err
		}
		index, err = os.ReadFile(file)
		return err
	})
	return index, err
}

// fill writes the files of the repository. HEAD is last: without it, git takes the folder for no repository.
func (m *Mirror) fill(in *os.Root, h Head, index []byte, step func(string) error) error {
	head := textFile{"HEAD", h.Commit + "\n"}
	files := []textFile{
		{"objects/info/alternates", alternates(m.Objects())},
		{"info/exclude", h.Exclude},
	}
	if h.Branch != "" {
		head.text = "ref: refs/heads/" + h.Branch + "\n"
		files = append(files, textFile{"refs/heads/" + h.Branch, h.Commit + "\n"})
	}
	shallow, err := os.ReadFile(filepath.Join(m.path, "shallow"))
	if err == nil {
		files = append(files, textFile{"shallow", string(shallow)})
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := errors.Join(in.MkdirAll("refs/heads", 0o755), in.MkdirAll("objects/pack", 0o755)); err != nil {
		return err
	}
	files = append(files, textFile{"index", string(index)}, textFile{"config", ""})
	for _, f := range append(files, head) {
		if f.name == "config" {
			f.text = configuration(m.format, ignoresCase(in))
		}
		if err := errors.Join(step("write " + f.name)); err != nil {
			return err
		}
		if err := writeFile(in, f); err != nil {
			return err
		}
	}
	return nil
}

// ignoresCase reports whether the file system finds a file under a name in another case.
func ignoresCase(in *os.Root) bool {
	_, err := in.Lstat("InDeX")
	return err == nil
}

var (
	fanOut = lazyregexp.New(`^[0-9a-f]{2}$`)
	loose  = lazyregexp.New(`^([0-9a-f]{38}|[0-9a-f]{62})$`)
	packed = lazyregexp.New(`^pack-([0-9a-f]{40}|[0-9a-f]{64})\.(pack|idx)$`)
)

// cleanObjects leaves only objects and packs below objects: a pipe or a link there could block git or lead it away.
func cleanObjects(in *os.Root, step func(string) error) error {
	if err := makeFolder(in, "objects", step); err != nil {
		return err
	}
	err := removeOthers(in, "objects", step, func(e fs.DirEntry) bool {
		return e.IsDir() && (e.Name() == "pack" || fanOut.MatchString(e.Name()))
	})
	if err != nil {
		return err
	}
	folders, err := readDir(in, "objects")
	for _, f := range folders {
		name := loose
		if f.Name() == "pack" {
			name = packed
		}
		err = errors.Join(err, removeOthers(in, "objects/"+f.Name(), step, func(e fs.DirEntry) bool {
			return e.Type().IsRegular() && name.MatchString(e.Name())
		}))
	}
	return err
}

// makeFolder replaces anything but a folder by a folder.
func makeFolder(in *os.Root, name string, step func(string) error) error {
	info, err := in.Lstat(name)
	if err == nil && info.IsDir() {
		return in.Chmod(name, 0o755)
	}
	if err == nil {
		if err := step("remove " + name); err != nil {
			return err
		}
		err = in.Remove(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := step("make " + name); err != nil {
		return err
	}
	return in.Mkdir(name, 0o755)
}

// removeOthers removes what is not to be kept in a folder, and makes the folder writable.
func removeOthers(in *os.Root, folder string, step func(string) error, keep func(fs.DirEntry) bool) error {
	entries, err := readDir(in, folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if keep(e) {
			continue
		}
		name := path.Join(folder, e.Name())
		if err := step("remove " + name); err != nil {
			return err
		}
		if err := disk.RemoveAllIn(in, name); err != nil {
			return err
		}
	}
	return nil
}

// readDir lists a folder whose permissions an agent may have removed.
func readDir(in *os.Root, folder string) ([]fs.DirEntry, error) {
	if err := in.Chmod(folder, 0o755); err != nil {
		return nil, err
	}
	f, err := in.Open(folder)
	if err != nil {
		return nil, err
	}
	entries, err := f.ReadDir(-1)
	return entries, errors.Join(err, f.Close())
}
