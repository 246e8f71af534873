package tree

import (
	"context"
	"strings"

	"github.com/passbook-run/passbook/internal/store"
)

// ignoreFile is the name of git's files of rules.
const ignoreFile = ".gitignore"

// Ignores are the rules by which git ignores untracked files.
type Ignores struct {
	Files  map[string]string // content of the .gitignore of a folder; "." is the root
	Others []string          // files that count less, the least first: core.excludesFile, info/exclude
}

// ReadIgnores returns the rules of a stored tree. Others are added to those of its files.
func ReadIgnores(ctx context.Context, s *store.Store, t Tree, others ...string) (*Ignores, error) {
	g := &Ignores{Files: map[string]string{}, Others: others}
	for _, e := range t.Entries {
		if base(e.Path) != ignoreFile || !e.IsFile() {
			continue
		}
		raw, err := s.Get(ctx, e.Digest)
		if err != nil {
			return nil, err
		}
		g.Files[parent(e.Path)] = string(raw)
	}
	return g, nil
}

// gitPatterns are compiled rules.
type gitPatterns struct {
	files  map[string][]pattern
	others [][]pattern // the most important first
}

func (g *Ignores) compile() (c gitPatterns) {
	if g == nil {
		return c
	}
	c.files = make(map[string][]pattern, len(g.Files))
	for dir, text := range g.Files {
		c.files[dir] = gitLines(text)
	}
	for _, text := range g.Others {
		c.others = append([][]pattern{gitLines(text)}, c.others...)
	}
	return c
}

// gitLines parses a file of rules. git passes over lines that are no patterns.
func gitLines(text string) (all []pattern) {
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line, _, _ = strings.Cut(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"), "\x00")
		if p, err := parsePattern(line); err == nil && p.glob != "" {
			all = append(all, p)
		}
	}
	return all
}

// ignores reports whether the rules ignore a path. The files of the nearest folder count most. Folders above the path
// are not checked.
func (c gitPatterns) ignores(path string, folder bool) bool {
	for dir := parent(path); ; dir = parent(dir) {
		if of := c.files[dir]; of != nil {
			if last, ok := lastFit(of, strings.TrimPrefix(path, dir+"/"), folder); ok { // "." is no prefix of a path
				return !last.include
			}
		}
		if dir == "." {
			break
		}
	}
	for _, of := range c.others {
		if last, ok := lastFit(of, path, folder); ok {
			return !last.include
		}
	}
	return false
}

// Hidden returns the files that some rules ignore and others do not, as if none was tracked.
func (t Tree) Hidden(was, now *Ignores) (files []string) {
	before, after := t.ignored(was), t.ignored(now)
	for _, e := range t.Entries {
		if e.Mode != ModeFolder && after[e.Path] && !before[e.Path] {
			files = append(files, e.Path)
		}
	}
	return files
}

// ignored returns the paths that rules ignore.
func (t Tree) ignored(by *Ignores) map[string]bool {
	c, all := by.compile(), map[string]bool{}
	for _, e := range t.Entries { // a folder comes before its content
		if all[parent(e.Path)] || c.ignores(e.Path, e.Mode == ModeFolder) {
			all[e.Path] = true
		}
	}
	return all
}
