package git

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind is the kind of a change.
type Kind string

// The kinds of changes, as in the journal. A file that became a symbolic link is changed; a renamed one may be
// changed too.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
	Renamed Kind = "renamed"
	Mode    Kind = "mode" // only the executable bit changed
)

// Change is one file that differs from a commit. Paths are relative to the root, with slashes, and may contain any
// bytes.
type Change struct {
	Path    string // the new path, or that of the removed file
	OldPath string // of a renamed file
	Kind    Kind
	Added   int // lines; 0 if binary
	Removed int // lines; 0 if binary
	Binary  bool
}

// parseChanges parses the output of --raw --numstat -z: all raw entries, then all numbers in the same order.
func parseChanges(out []byte) ([]Change, error) {
	fields := splitNUL(out)
	var changes []Change
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		c, rest, err := parseRaw(fields)
		if err != nil {
			return nil, err
		}
		changes, fields = append(changes, c), rest
	}
	for i := range changes {
		rest, err := changes[i].count(fields)
		if err != nil {
			return nil, err
		}
		fields = rest
	}
	if len(fields) > 0 {
		return nil, fmt.Errorf("parse git diff: unexpected %q", fields[0])
	}
	return changes, nil
}

// parseRaw parses ":<old mode> <new mode> <old id> <new id> <letter>", the path, and the new path of a rename.
func parseRaw(fields []string) (Change, []string, error) {
	words := strings.Fields(fields[0])
	kinds := map[byte]Kind{'A': Added, 'M': Changed, 'T': Changed, 'D': Removed, 'R': Renamed}
	if len(words) != 5 || len(fields) < 2 || kinds[words[4][0]] == "" {
		return Change{}, nil, fmt.Errorf("parse git diff: unexpected %q", fields[0])
	}
	c := Change{Path: fields[1], Kind: kinds[words[4][0]]}
	if c.Kind == Changed && words[2] == words[3] {
		c.Kind = Mode
	}
	if c.Kind != Renamed {
		return c, fields[2:], nil
	}
	if len(fields) < 3 {
		return Change{}, nil, fmt.Errorf("parse git diff: %q without a new path", fields[0])
	}
	c.OldPath, c.Path = fields[1], fields[2]
	return c, fields[3:], nil
}

// count parses "<added>\t<removed>\t<path>"; the path of a rename is empty and followed by both paths.
func (c *Change) count(fields []string) ([]string, error) {
	if len(fields) == 0 {
		return nil, fmt.Errorf("parse git diff: no numbers for %q", c.Path)
	}
	f := strings.SplitN(fields[0], "\t", 3)
	if len(f) != 3 {
		return nil, fmt.Errorf("parse git diff: unexpected %q", fields[0])
	}
	size := 1
	if f[2] == "" {
		size = 3
	}
	if len(fields) < size || fields[size-1] != c.Path && f[2] != c.Path {
		return nil, fmt.Errorf("parse git diff: numbers of another file than %q", c.Path)
	}
	if f[0] == "-" && f[1] == "-" {
		c.Binary = true
		return fields[size:], nil
	}
	var err1, err2 error
	c.Added, err1 = strconv.Atoi(f[0])
	c.Removed, err2 = strconv.Atoi(f[1])
	if err1 != nil || err2 != nil {
		return nil, fmt.Errorf("parse git diff: unexpected %q", fields[0])
	}
	return fields[size:], nil
}
