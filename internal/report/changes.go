package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// difference is the change of one pass to the artifact, or the delivered change.
type difference struct {
	Title          string
	Note           string
	Added, Removed int
	Lines          []diffLine
	More           int // omitted lines
	Missing        string
}

// diffLine is one line of a unified difference. Kind is add, del, hunk, file or "".
type diffLine struct{ Kind, Text string }

const (
	maxDiffLines = 400     // of one difference
	maxDiffBytes = 1 << 20 // of a text that is compared
	maxLineChars = 2000
)

// differences compares the artifact before and after each pass that changed it.
func (v *page) differences(s source) {
	room := s.opt.Diffs
	texts := artifacts{s: s, files: s.files()}
	changes := passesWith(s.found, func(p view.Pass) bool { return p.After != "" })
	for i, p := range changes {
		d := difference{Title: fmt.Sprintf("%d · %s", p.Number, p.Title)}
		if p.Number == 0 {
			d.Title = fmt.Sprintf("%s · round %d", view.Title(p.Role), p.Round)
		}
		if room <= 0 {
			v.leave("what the last %s changed (starter diff shows the whole)", plural(len(changes)-i, "pass"))
			break
		}
		before, err1 := texts.read(p.Before)
		after, err2 := texts.read(p.After)
		if err1 != nil || err2 != nil {
			d.Missing = missingText
		} else {
			d.compare(before, after)
		}
		room -= len(d.Lines)
		v.Changes = append(v.Changes, d)
	}
	if raw, err := s.dir.ReadFile(rundir.DeliveryPatch); err == nil {
		d := difference{Title: rundir.DeliveryPatch}
		d.take(raw)
		v.Patch = &d
	}
}

// Difference is the change of one file.
type Difference = difference

// Patch returns the changes of a patch of git, one for each file. Each shows the first lines of its change.
func Patch(raw string) []Difference {
	var all []Difference
	for _, part := range strings.Split("\n"+raw, "\ndiff --git ")[1:] {
		title, rest, _ := strings.Cut(part, "\n")
		if _, after, ok := strings.Cut(title, " b/"); ok {
			title = after
		}
		d := Difference{Title: title}
		d.take([]byte(rest))
		all = append(all, d)
	}
	return all
}

// ChangesOf returns what one pass changed: files of the workspace, or the artifact. more counts files that the journal
// does not list.
func ChangesOf(d rundir.Dir, seq int64, o Options) (all []Difference, more int, err error) {
	s, _, err := load(d, o.filled())
	if err != nil {
		return nil, 0, err
	}
	room := newSpace(s.opt)
	for _, p := range s.found.Passes {
		switch {
		case p.Seq != seq:
			continue
		case p.After == "":
			c := s.filesOf(p, &room)
			return c.Files, c.More, nil
		}
		texts := artifacts{s: s, files: s.files()}
		before, err1 := texts.read(p.Before)
		after, err2 := texts.read(p.After)
		d := Difference{Title: s.found.Artifact.File}
		if err := errors.Join(err1, err2); err != nil {
			d.Missing = missingText
		} else {
			d.compare(before, after)
		}
		return []Difference{d}, 0, nil
	}
	return nil, 0, nil
}

// missingText is shown for the change of an artifact without one of its versions.
const missingText = "Its text before or after is no longer in the directory."

// compare returns the unified difference of two texts.
func (d *difference) compare(before, after []byte) {
	if len(before)+len(after) > maxDiffBytes {
		d.Missing = fmt.Sprintf("Its texts are too big to be compared here: %d and %d bytes.", len(before), len(after))
		return
	}
	raw := diff.Diff("before", before, "after", after)
	for range 3 { // the names of the texts
		_, raw, _ = bytes.Cut(raw, []byte("\n"))
	}
	d.take(raw)
}

// take classifies the lines of a unified difference and keeps the first of them.
func (d *difference) take(raw []byte) {
	raw = bytes.TrimSuffix(raw, []byte("\n"))
	if len(raw) == 0 {
		return
	}
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimRight(line, "\r\n")
		kind := kindOf(line)
		switch kind {
		case "add":
			d.Added++
		case "del":
			d.Removed++
		}
		if len(d.Lines) >= maxDiffLines {
			d.More++
			continue
		}
		d.Lines = append(d.Lines, diffLine{kind, short(line, maxLineChars)})
	}
}

func kindOf(line string) string {
	for _, k := range []struct{ begins, kind string }{
		{"+++ ", "file"}, {"--- ", "file"}, {"diff ", "file"}, {"index ", "file"}, {"@@", "hunk"}, {"+", "add"},
		{"-", "del"},
	} {
		if strings.HasPrefix(line, k.begins) {
			return k.kind
		}
	}
	return ""
}

// artifacts finds versions of the artifact by their digests.
type artifacts struct {
	s     source
	files map[string]string // digest → file; "": found by reading
	last  map[string][]byte
}

// files returns the files that may hold a version of the artifact, by digest.
func (s source) files() map[string]string {
	files := map[string]string{}
	for digest, file := range s.found.History.Backups {
		files[digest] = file
	}
	for _, c := range s.book.Checkpoints {
		if _, there := files[c.ArtifactHash]; !there && c.ArtifactHash != "" {
			files[c.ArtifactHash] = path.Join(c.CheckpointDir, "artifact"+path.Ext(s.book.CurrentArtifactPath))
		}
	}
	if a := s.found.History.Start.Artifact; a != nil {
		if now := s.state.Artifact; now != nil {
			files[now.Digest] = a.File
		}
	}
	return files
}

// read returns the text with a digest, if its file still holds it. It keeps the last text: the text before a pass is
// that after the previous one.
func (a *artifacts) read(digest string) ([]byte, error) {
	if text, ok := a.last[digest]; ok {
		return text, nil
	}
	name, ok := a.files[digest]
	if !ok {
		return nil, fmt.Errorf("artifact %s is nowhere", digest)
	}
	text, err := readLocal(a.s.dir, name)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%s has changed since", name)
	}
	a.last = map[string][]byte{digest: slices.Clip(text)}
	return text, nil
}

// turn is a pass that changed files of the workspace, or judged them.
type turn struct {
	Name, Role, Verdict, Commit string
	Files                       []run.FileChange
	More                        int
}

// turns returns the changes and verdicts of a run that works on a tree.
func turns(s source) []turn {
	e := s.found
	if e.Workspace == nil {
		return nil
	}
	const shown = 20
	var all []turn
	for _, p := range e.Passes {
		if p.Changed == 0 && p.Verdict == "" && p.Value == "" {
			continue
		}
		t := turn{
			Name: s.title(p), Role: p.By(), Verdict: cmp.Or(p.Verdict, p.Value), Commit: p.Commit,
		}
		t.Files = p.Files[:min(shown, len(p.Files))]
		t.More = max(0, p.Changed-len(t.Files))
		all = append(all, t)
	}
	return all
}
