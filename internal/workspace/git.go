package workspace

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/git"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/run"
)

// RemakeGit makes the repository of a workspace anew: nothing that an agent wrote there runs, and git commands there
// are harmless. Its objects are those of the mirror of the source, whose folder it returns; empty: it has none, or this
// host lacks the source, and the repository is removed.
func RemakeGit(ctx context.Context, state string, of run.Workspace, dir string) (objects string, err error) {
	var source *git.Repo
	if of.Kind == run.WorkspaceGit {
		source, err = git.Open(ctx, of.Source)
	}
	if source == nil && (err == nil || git.Missing(err)) {
		return "", disk.RemoveAll(filepath.Join(dir, ".git"))
	}
	if err != nil {
		return "", err
	}
	m, err := git.OpenMirror(ctx, state, source)
	if err != nil {
		return "", err
	}
	at, err := m.Fetch(ctx, cmp.Or(of.Commit, of.Base))
	if err != nil {
		return "", err
	}
	excludes, err := source.Excludes(ctx)
	if err != nil {
		return "", err
	}
	return m.Objects(), m.Remake(ctx, dir, git.Head{Commit: at, Branch: of.Branch, Exclude: strings.Join(excludes, "\n")})
}

// File returns a file or symlink of a stored tree for git.
func File(ctx context.Context, s *store.Store, e tree.Entry) git.File {
	f := git.File{Path: e.Path, Mode: git.ModeFile, Content: func() (io.ReadCloser, error) {
		content, err := s.Get(ctx, e.Digest)
		return io.NopCloser(bytes.NewReader(content)), err
	}}
	switch e.Mode {
	case tree.ModeExecutable:
		f.Mode = git.ModeExecutable
	case tree.ModeSymlink:
		f.Mode, f.Content = git.ModeSymlink, git.Bytes([]byte(e.Link))
	}
	return f
}
