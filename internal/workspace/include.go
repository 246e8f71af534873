package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/run"
)

// maxIncluded is the maximum size of a file that is searched for secrets.
const maxIncluded = 1 << 20

// included returns the ignored files that calls need from the source of a run, as its .worktreeinclude lists them.
func included(ctx context.Context, of run.Workspace) (root string, names []string, err error) {
	if of.Kind != run.WorkspaceGit {
		return "", nil, nil
	}
	source, err := git.Open(ctx, of.Source)
	if git.Missing(err) {
		return "", nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	names, err = source.Included(ctx)
	return source.Root(), names, err
}

// Include copies these files to a folder. They are never part of the tree: names that it has are passed over. Values in them
// are redacted.
func Include(ctx context.Context, of run.Workspace, dir string, tracked []string) error {
	root, names, err := included(ctx, of)
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(tracked, func(p string) bool { return p == name || strings.HasPrefix(name, p+"/") }) {
			continue
		}
		if err := copyIncluded(root, dir, name); err != nil {
			return err
		}
	}
	return nil
}

// IncludedSecrets returns the secrets in these files as assignments.
func IncludedSecrets(ctx context.Context, of run.Workspace) (assigned []string, err error) {
	root, names, err := included(ctx, of)
	for _, name := range names {
		if raw, err := disk.ReadFile(filepath.Join(root, name), maxIncluded); err == nil {
			assigned = append(assigned, secretsIn(string(raw))...)
		}
	}
	return assigned, err
}

// copyIncluded copies a regular file with its permissions.
func copyIncluded(from, to, name string) error {
	raw, err := disk.ReadFile(filepath.Join(from, name), 1<<30)
	if wrong := (*disk.KindError)(nil); errors.As(err, &wrong) || errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // a link or a pipe is not copied
	}
	if err != nil {
		return err
	}
	info, err := os.Stat(filepath.Join(from, name))
	if err != nil {
		return err
	}
	return WriteBelow(to, name, raw, info.Mode().Perm())
}

// WriteBelow writes a file below a folder in which agents have worked. What is in its way is removed, and no link leads
// elsewhere.
func WriteBelow(dir, name string, data []byte, perm fs.FileMode) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for i, c := range name {
		if info, err := root.Lstat(name[:i]); c == '/' && err == nil && !info.IsDir() {
			if err := root.Remove(name[:i]); err != nil {
				return err
			}
		}
	}
	if err := errors.Join(root.MkdirAll(filepath.Dir(name), 0o755), root.RemoveAll(name)); err != nil {
		return err
	}
	return root.WriteFile(name, data, perm)
}

// secretsIn returns assignments of values that may be secrets: of at least 8 characters, neither words nor numbers.
func secretsIn(text string) (assigned []string) {
	for line := range strings.Lines(text) {
		i := strings.IndexAny(line, "=:")
		if i < 0 || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		name, value := strings.TrimSpace(line[:i]), strings.Trim(strings.TrimSpace(line[i+1:]), `"',`)
		word := strings.IndexFunc(value, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
		_, err := strconv.ParseFloat(value, 64)
		if len(value) >= 8 && !word && err != nil {
			assigned = append(assigned, strings.Trim(name, `"' `)+"_SECRET="+value)
		}
	}
	return assigned
}
