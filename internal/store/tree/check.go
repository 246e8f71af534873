package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// check accepts what can be checked out without touching anything outside the folder: what Save creates, and
// nothing else.
func (t Tree) check() error {
	if err := t.checkSize(maxEntries); err != nil {
		return err
	}
	folders := map[string]bool{".": true}
	last := ""
	for _, e := range t.Entries {
		if err := e.check(); err != nil {
			return fmt.Errorf("entry %q: %w", e.Path, err)
		}
		if e.Path <= last {
			return fmt.Errorf("entry %q: %w", e.Path, errOrder)
		}
		if !folders[parent(e.Path)] {
			return fmt.Errorf("entry %q: its folder has no entry", e.Path)
		}
		folders[e.Path] = e.Mode == ModeFolder
		last = e.Path
	}
	return nil
}

var errOrder = errors.New("entries are in the order of their paths, each only once")

// maxEntries limits the size of a forged tree.
const maxEntries = 1 << 20

func (t Tree) checkSize(most int) error {
	if len(t.Entries) > most {
		return fmt.Errorf("it has more than %d entries", most)
	}
	return nil
}

func (e Entry) check() error {
	if err := checkPath(e.Path); err != nil {
		return err
	}
	if e.Perm&^fs.ModePerm != 0 {
		return fmt.Errorf("its permissions are %o, more than rwxrwxrwx", e.Perm)
	}
	blank := Entry{Path: e.Path, Mode: e.Mode}
	switch e.Mode {
	case ModeFile, ModeExecutable:
		if e.Mode != fileMode(e.Perm) || !e.Digest.Valid() || e.Size < 0 || e.Link != "" {
			return fmt.Errorf("it is not a whole %s", e.Mode)
		}
	case ModeFolder:
		if blank.Perm = e.Perm; e != blank {
			return fmt.Errorf("a folder has no content")
		}
	case ModeSymlink:
		if blank.Link = e.Link; e != blank {
			return fmt.Errorf("a symlink has no content")
		}
		return checkLink(e.Path, e.Link)
	default:
		return fmt.Errorf("its mode is %q, and this program knows %s, %s, %s and %s", e.Mode, ModeFile, ModeExecutable,
			ModeSymlink, ModeFolder)
	}
	return nil
}

// maxPath is the maximum length in bytes of a path that programs can open on all systems.
const maxPath = 4096

// checkPath accepts a canonical path below the root that is not git's.
func checkPath(path string) error {
	if strings.ContainsRune(path, 0) {
		return fmt.Errorf("no file's name holds a NUL")
	}
	if len(path) > maxPath {
		return fmt.Errorf("it is longer than %d bytes", maxPath)
	}
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "", name == ".", name == "..":
			return fmt.Errorf("it is not a path below the tree's root")
		case isGit(name):
			return fmt.Errorf("a tree holds nothing of %s", name)
		}
	}
	return nil
}

// isGit reports whether a name is git's on any file system.
func isGit(name string) bool { return strings.EqualFold(name, ".git") }

// ignorable are characters that HFS+ leaves out of a name.
const ignorable = "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"

// fold returns a path as systems compare it that ignore case.
func fold(path string) string { return strings.ToLower(strings.ToUpper(path)) }

// hasControls reports whether a name contains control characters, which other systems refuse.
func hasControls(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// refusedByGit reports whether git adds no file of this name, because another file system takes it for git's own, or a
// link for .gitmodules.
func refusedByGit(name string, link bool) bool {
	plain := strings.ToLower(strings.Map(func(r rune) rune {
		if strings.ContainsRune(ignorable, r) {
			return -1
		}
		return r
	}, name))
	names := []string{plain}
	for part := range strings.SplitSeq(strings.ToLower(name), `\`) { // NTFS ends a name before a colon, dots and spaces
		part, _, _ = strings.Cut(part, ":")
		names = append(names, strings.TrimRight(part, ". "))
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == ".git" || n == "git~1" ||
			link && (n == ".gitmodules" || strings.HasPrefix(n, "gitmod~") || strings.HasPrefix(n, "gi7eba~"))
	})
}

// checkLink accepts a target inside the tree: relative, with steps up only at the beginning. A later step up could
// start from the target of another symlink.
func checkLink(path, target string) error {
	if target == "" || strings.ContainsRune(target, 0) {
		return fmt.Errorf("%q is not a target of a symlink", target)
	}
	up, down := strings.Count(path, "/"), false
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case name == ".." && !down:
			up--
		case name == "..":
			return &OutsideError{Path: path, Target: target}
		case name != "" && name != ".":
			down = true
		}
	}
	if up < 0 || strings.HasPrefix(target, "/") {
		return &OutsideError{Path: path, Target: target}
	}
	return nil
}

// OutsideError means that a symlink points out of the tree, or may.
type OutsideError struct{ Path, Target string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf(
		"symlink %q points to %q, outside of the tree; remove it, ignore it, or let it point by a relative path "+
			"that goes "+
			"up first and then down", e.Path, e.Target,
	)
}

func fileMode(perm fs.FileMode) Mode {
	if perm&0o100 != 0 {
		return ModeExecutable
	}
	return ModeFile
}

// parent returns the folder of a path, "." at the root.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		return path[:i]
	}
	return "."
}
