package workspace

import (
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// lockFiles are the names of files that fix the versions of dependencies.
var lockFiles = []string{
	"package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "go.sum", "Cargo.lock",
	"poetry.lock", "uv.lock", "Pipfile.lock", "pdm.lock", "Gemfile.lock", "composer.lock", "gradle.lockfile", "mix.lock",
}

// isLockFile reports whether a file fixes the versions of dependencies. pip has requirements*.txt.
func isLockFile(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, "requirements") && strings.HasSuffix(base, ".txt") || slices.Contains(lockFiles, base)
}

// SetupDigest identifies what sets up a workspace: the commands, and the lock files of the tree.
func SetupDigest(commands []string, t tree.Tree) string {
	text := strings.Join(commands, "\x00")
	for _, e := range t.Entries {
		if e.IsFile() && isLockFile(e.Path) {
			text += "\n" + e.Path + " " + string(e.Digest)
		}
	}
	return string(store.DigestOf([]byte(text)))
}
