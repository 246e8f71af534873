package report

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/starter/evidence"
)

// difference is what one pass made of the artifact, or what was delivered.
type difference struct {
	Title          string
	Note           string
	Added, Removed int
	Lines          []diffLine
	More           int // lines that are left out
	Missing        string
}

// diffLine is one line of a unified difference. Kind is add, del, hunk, file or "".
type diffLine struct{ Kind, Text string }

const (
	maxDiffLines = 400     // of one difference
	maxDiffBytes = 1 << 20 // of a text that is compared
	maxLineChars = 2000
)

// differences compares the artifact before and after each pass that has changed it.
func (v *view) differences(s source) {
	room := s.opt.Diffs
	texts := artifacts{s: s, files: s.files()}
	for i, c := range s.story.changes {
		name := ""
		if r, ok := s.story.set[c.seq]; ok {
			name = r.Title
		}
		if c.pass.Number == 0 {
			name = fmt.Sprintf("%s · round %d", capital(c.pass.Role), c.pass.Round)
		}
		d := difference{Title: name}
		if c.pass.Number > 0 {
			d.Title = fmt.Sprintf("%d · %s", c.pass.Number, name)
		}
		if room <= 0 {
			v.leave("what the last %s changed (starter diff shows the whole)", plural(len(s.story.changes)-i, "pass"))
			break
		}
		before, err1 := texts.read(c.before)
		after, err2 := texts.read(c.after)
		if err1 != nil || err2 != nil {
			d.Missing = "Its text before or after is not in the directory any more."
		} else {
			d.compare(before, after)
		}
		room -= len(d.Lines)
		v.Changes = append(v.Changes, d)
	}
	if raw, err := os.ReadFile(s.dir.Path(rundir.DeliveryPatch)); err == nil {
		d := difference{Title: rundir.DeliveryPatch}
		d.take(raw)
		v.Patch = &d
	}
}

// compare takes the unified difference of two texts.
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

// take sorts the lines of a unified difference, and keeps the first of them.
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
	for _, k := range []struct{ begins, kind string }{{"+++ ", "file"}, {"--- ", "file"}, {"diff ", "file"}, {"index ", "file"}, {"@@", "hunk"}, {"+", "add"}, {"-", "del"}} {
		if strings.HasPrefix(line, k.begins) {
			return k.kind
		}
	}
	return ""
}

// artifacts finds texts of the artifact by their digests.
type artifacts struct {
	s     source
	files map[string]string // digest → file; "": to be found by reading
	last  map[string][]byte
}

// files are the places where texts of the artifact may lie, by digest.
func (s source) files() map[string]string {
	files := map[string]string{}
	for digest, file := range s.story.before {
		files[digest] = file
	}
	for _, c := range s.book.Checkpoints {
		if _, there := files[c.ArtifactHash]; !there && c.ArtifactHash != "" {
			files[c.ArtifactHash] = path.Join(c.CheckpointDir, "artifact"+path.Ext(s.book.CurrentArtifactPath))
		}
	}
	if a := s.story.start.Artifact; a != nil {
		if now := s.state.Artifact; now != nil {
			files[now.Digest] = a.File
		}
	}
	return files
}

// read gives the text of a digest, if the file that should hold it does. The text before one pass is that after another: the last is kept.
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
		return nil, fmt.Errorf("%s has another content now", name)
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

// turns are the changes and verdicts of a run that works on a tree.
func turns(e evidence.Evidence) []turn {
	if e.Workspace == nil {
		return nil
	}
	const shown = 20
	var all []turn
	for _, p := range e.Passes {
		if p.Changed == 0 && p.Verdict == "" && p.Value == "" {
			continue
		}
		r := rowOf(p)
		t := turn{Name: strings.TrimSpace(r.Name + " " + times(p.Round)), Role: r.Role, Verdict: cmp.Or(p.Verdict, p.Value), Commit: p.Commit}
		t.Files = p.Files[:min(shown, len(p.Files))]
		t.More = max(0, p.Changed-len(t.Files))
		all = append(all, t)
	}
	return all
}
