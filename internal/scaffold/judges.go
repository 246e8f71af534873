package scaffold

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Judges are the files by which a command judges software: its tests, and the scripts that run them.
type Judges struct {
	Tests   []string // globs below the root of the repository
	Scripts []string // paths
}

// JudgesOf finds the files in a folder by which a command judges.
func JudgesOf(dir, verify string) Judges {
	var j Judges
	for _, e := range named(verify) {
		for _, glob := range e.judges {
			if !slices.Contains(j.Tests, glob) && exists(dir, strings.TrimSuffix(glob, "/")) {
				j.Tests = append(j.Tests, glob)
			}
		}
	}
	for word := range strings.FieldsSeq(verify) {
		switch name := path.Clean(word); {
		case word == "make":
			if file := (place{dir, "."}).first(makefiles...); file != "" {
				j.Scripts = append(j.Scripts, file)
			}
		case fs.ValidPath(name) && strings.ContainsAny(word, "./") && isFile(dir, name):
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
	err := doublestar.GlobWalk(sources{os.DirFS(dir)}, glob, func(string, fs.DirEntry) error { return found })
	return errors.Is(err, found)
}

// sources is a folder of which a search skips what package managers install.
type sources struct{ fs.FS }

func (s sources) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		return slices.Contains([]string{".git", ".tox", ".venv", "node_modules", "target", "vendor", "venv"}, e.Name())
	}), err
}

// sequence is a flow sequence of YAML; empty for no paths.
func sequence(all []string) string {
	if len(all) == 0 {
		return ""
	}
	list := make([]string, len(all))
	for i, p := range all {
		list[i] = quoted(p)
	}
	return "[" + strings.Join(list, ", ") + "]"
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }
