package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// Difference is a file whose delivery an operator must be asked about.
type Difference struct{ Path, Why string }

// The reasons of differences.
const (
	WhyBytes      = "the commit has other bytes than were judged"
	WhyMode       = "the commit has another mode than was judged"
	WhyMissing    = "the commit does not have the file"
	WhyKept       = "the commit has the file, which was removed"
	WhyUnjudged   = "the commit changes the file, and it was not judged"
	WhyAttributes = "changed .gitattributes make a checkout of the commit write other bytes"
	WhyFilter     = "changed .gitattributes make a checkout of the commit run another filter"
)

// Differences returns the files of a commit that are not what was judged, sorted by path. judged are all files that
// differ from commit start, as a checkout has them.
//
// The attributes of start convert committed files, for which the user's filters run. A file whose attributes the commit
// changes is a difference if a checkout of the commit writes other bytes; its own filters never run.
func (r *Repo) Differences(ctx context.Context, commit, start string, judged []File) (list []Difference, err error) {
	if list, err = r.differences(ctx, commit, start, judged); err != nil {
		return nil, fmt.Errorf("compare commit %s with the judged files in %s: %w", commit, r.root, asRefused(err))
	}
	slices.SortFunc(list, func(a, b Difference) int { return strings.Compare(a.Path+"\x00"+a.Why, b.Path+"\x00"+b.Why) })
	return list, nil
}

func (r *Repo) differences(ctx context.Context, commit, start string, judged []File) ([]Difference, error) {
	changed, err := r.changed(ctx, start, commit)
	if err != nil {
		return nil, err
	}
	list, err := r.unlike(ctx, commit, start, judged)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, f := range judged {
		known[f.Path] = true
	}
	converts := false
	for _, name := range changed {
		converts = converts || path.Base(name) == attributesFile
		if !known[name] {
			list = append(list, Difference{name, WhyUnjudged})
		}
	}
	if !converts {
		return list, nil
	}
	other, err := r.convertedOtherwise(ctx, commit, start)
	return append(list, other...), err
}

// unlike compares the judged files with those of the commit, as attributes of the start convert them.
func (r *Repo) unlike(ctx context.Context, commit, start string, judged []File) (list []Difference, err error) {
	var names []string
	for _, f := range judged {
		names = append(names, f.Path)
	}
	there, drop, err := r.versions(ctx, commit, start, names)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, drop()) }()
	for _, f := range judged {
		switch is := there[f.Path]; {
		case is.Mode == f.Mode && f.Mode != "":
			equal, err := equalContent(f.Content, is.Content)
			if err != nil {
				return nil, fmt.Errorf("file %q: %w", f.Path, err)
			}
			if !equal {
				list = append(list, Difference{f.Path, WhyBytes})
			}
		case is.Mode == f.Mode:
		case is.Mode == "":
			list = append(list, Difference{f.Path, WhyMissing})
		case f.Mode == "":
			list = append(list, Difference{f.Path, WhyKept})
		default:
			list = append(list, Difference{f.Path, WhyMode})
		}
	}
	return list, nil
}

// convertedOtherwise returns the files that attributes of the commit convert to other bytes than those of the start.
func (r *Repo) convertedOtherwise(ctx context.Context, commit, start string) (list []Difference, err error) {
	first, err := r.entries(ctx, start)
	if err != nil {
		return nil, err
	}
	files, err := r.entries(ctx, commit)
	if err != nil {
		return nil, err
	}
	before, after := onlyAttributes(slices.Values(first)), onlyAttributes(slices.Values(files))
	files = slices.DeleteFunc(files, func(e entry) bool {
		return e.mode != ModeFile && e.mode != ModeExecutable || path.Base(e.path) == attributesFile
	})
	was, err := r.conversions(ctx, before, files)
	if err != nil {
		return nil, err
	}
	is, err := r.conversions(ctx, after, files)
	if err != nil {
		return nil, err
	}
	var candidates []entry
	for _, e := range files {
		switch a, b := was[e.path], is[e.path]; {
		case a == b:
		case a.filter != b.filter:
			list = append(list, Difference{e.path, WhyFilter})
		default:
			candidates = append(candidates, e)
		}
	}
	differ, err := r.differAs(ctx, candidates, before, after)
	return append(list, differ...), err
}

// differAs returns the files that differ when they are checked out with one set of attributes and with another, or that
// would be committed as others then.
func (r *Repo) differAs(ctx context.Context, files, before, after []entry) (list []Difference, err error) {
	a, err := r.checkOut(ctx, before, files)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.drop()) }()
	b, err := r.checkOut(ctx, after, files)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.drop()) }()
	var again []File
	for _, e := range files {
		again = append(again, File{Path: e.path, Mode: e.mode, Content: a.opener(ctx, e)})
	}
	stored, err := r.storeAs(ctx, after, again)
	if err != nil {
		return nil, err
	}
	for i, e := range files {
		switch equal, err := equalContent(a.opener(ctx, e), b.opener(ctx, e)); {
		case err != nil:
			return nil, fmt.Errorf("file %q: %w", e.path, err)
		case !equal, stored[i].id != e.id:
			list = append(list, Difference{e.path, WhyAttributes})
		}
	}
	return list, nil
}

// conversion is the attributes that convert a file.
type conversion struct{ filter, others string }

// conversions returns how attributes convert files.
func (r *Repo) conversions(ctx context.Context, attributes, files []entry) (of map[string]conversion, err error) {
	c, err := r.converter(ctx, attributes)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.drop()) }()
	var names []string
	for _, e := range files {
		names = append(names, e.path)
	}
	out, err := c.run(ctx, joinNUL(names), "check-attr", "--cached", "--stdin", "-z", "filter", "text", "crlf", "eol",
		"ident", "working-tree-encoding")
	of = map[string]conversion{}
	fields := splitNUL(out)
	for ; len(fields) >= 3; fields = fields[3:] { // file, attribute, value
		now := of[fields[0]]
		if fields[1] == "filter" {
			now.filter = fields[2]
		} else {
			now.others += fields[1] + "=" + fields[2] + "\n"
		}
		of[fields[0]] = now
	}
	return of, err
}

// equalContent compares two contents.
func equalContent(first, second func() (io.ReadCloser, error)) (bool, error) {
	a, err := digest(first)
	if err != nil {
		return false, err
	}
	b, err := digest(second)
	return bytes.Equal(a, b), err
}

func digest(open func() (io.ReadCloser, error)) ([]byte, error) {
	from, err := open()
	if err != nil {
		return nil, err
	}
	h := sha256.New()
	_, err = io.Copy(h, from)
	return h.Sum(nil), errors.Join(err, from.Close())
}
