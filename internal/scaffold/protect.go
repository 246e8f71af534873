package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Judges are the files by which a command judges software: its tests, and the scripts that run them.
type Judges struct {
	Tests   []string // globs below the root of the repository
	Scripts []string // paths
}

// JudgesOf finds the files in a folder by which a command judges. Other commands than the usual ones have none.
func JudgesOf(dir, verify string) Judges {
	var j Judges
	for _, known := range []struct {
		command string
		tests   []string
	}{
		{"go test", []string{"**/*_test.go"}},
		{"cargo test", []string{"tests/"}},
		{"pytest", []string{"**/test_*.py", "**/*_test.py", "**/conftest.py"}},
		{"npm test", []string{"**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs}", "**/__tests__/"}},
		{"make ", []string{"tests/", "test/"}},
	} {
		if !strings.Contains(verify+" ", known.command) {
			continue
		}
		for _, glob := range known.tests {
			if exists(dir, strings.TrimSuffix(glob, "/")) {
				j.Tests = append(j.Tests, glob)
			}
		}
	}
	for word := range strings.FieldsSeq(verify) {
		switch name := path.Clean(word); {
		case word == "make" && exists(dir, "Makefile"):
			j.Scripts = append(j.Scripts, "Makefile")
		case fs.ValidPath(name) && strings.Contains(name, ".") && isFile(dir, name):
			j.Scripts = append(j.Scripts, name)
		}
	}
	return j
}

func isFile(dir, name string) bool {
	info, err := fs.Stat(os.DirFS(dir), name)
	return err == nil && info.Mode().IsRegular()
}

// exists reports whether a glob fits anything that is not a dependency.
func exists(dir, glob string) bool {
	found := errors.New("found")
	err := doublestar.GlobWalk(os.DirFS(dir), glob, func(name string, _ fs.DirEntry) error {
		if strings.Contains("/"+name, "/node_modules/") || strings.Contains("/"+name, "/vendor/") {
			return nil
		}
		return found
	})
	return errors.Is(err, found)
}

// sequence is a flow sequence of YAML; empty for no paths.
func sequence(all []string) string {
	if len(all) == 0 {
		return ""
	}
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = "'" + strings.ReplaceAll(p, "'", "''") + "'"
	}
	return "[" + strings.Join(list, ", ") + "]"
}
