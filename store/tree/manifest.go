package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"unicode/utf8"

	"github.com/passbook-run/passbook/store"
)

// version is that of the manifest's form. Another one is an error, not a guess.
const version = 1

// manifest is the form on disk: one line an entry, so that people and diff can
// read it, and always the same bytes for the same tree.
type manifest struct {
	Version int          `json:"version"`
	Tree    store.Digest `json:"tree,omitempty"` // only in a run directory: the digest of the manifest in the store
	Entries []line       `json:"entries"`
}

// line is an entry on disk. A path or link that is not plain text is given in
// base64 instead.
type line struct {
	Path    string       `json:"path,omitempty"`
	PathB64 []byte       `json:"path_b64,omitempty"`
	Mode    Mode         `json:"mode"`
	Perm    string       `json:"perm,omitempty"` // octal, four digits
	Size    *int64       `json:"size,omitempty"`
	Digest  store.Digest `json:"sha256,omitempty"`
	Link    string       `json:"link,omitempty"`
	LinkB64 []byte       `json:"link_b64,omitempty"`
}

func (e Entry) line() line {
	l := line{Mode: e.Mode, Digest: e.Digest}
	l.Path, l.PathB64 = spell(e.Path)
	l.Link, l.LinkB64 = spell(e.Link)
	if e.Mode != ModeSymlink {
		l.Perm = fmt.Sprintf("%04o", e.Perm)
	}
	if e.IsFile() {
		l.Size = &e.Size
	}
	return l
}

func (l line) entry() (Entry, error) {
	e := Entry{Path: l.Path + string(l.PathB64), Mode: l.Mode, Digest: l.Digest, Link: l.Link + string(l.LinkB64)}
	if l.Size != nil {
		e.Size = *l.Size
	}
	if l.Perm == "" {
		return e, nil
	}
	perm, err := strconv.ParseUint(l.Perm, 8, 32)
	if err != nil {
		return Entry{}, fmt.Errorf("%q is not a file's permissions", l.Perm)
	}
	e.Perm = fs.FileMode(perm)
	return e, nil
}

// spell gives text that JSON keeps as it is, or its bytes.
func spell(s string) (plain string, raw []byte) {
	if !utf8.ValidString(s) {
		return "", []byte(s)
	}
	for _, r := range s {
		// Encoders spell control characters and line separators in different ways.
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return "", []byte(s)
		}
	}
	return s, nil
}

// encode gives the bytes of the manifest in the store.
func (t Tree) encode() []byte { return t.write("") }

// Manifest gives the manifest that a run directory shows: that of the store,
// and the tree's digest in front.
func (t Tree) Manifest() []byte { return t.write(t.Digest()) }

func (t Tree) write(digest store.Digest) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\"version\":%d,\n", version)
	if digest != "" {
		fmt.Fprintf(&out, "\"tree\":%q,\n", digest)
	}
	out.WriteString("\"entries\":[")
	lines := json.NewEncoder(&out)
	lines.SetEscapeHTML(false)
	for i, e := range t.Entries {
		if i > 0 {
			out.Truncate(out.Len() - 1) // the encoder ends each line
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		if err := lines.Encode(e.line()); err != nil {
			panic("a tree's entry has no JSON: " + err.Error()) // it has nothing but texts and numbers
		}
	}
	out.WriteString("]}\n")
	return out.Bytes()
}

// ReadManifest reads what [Tree.Manifest] wrote. A manifest whose entries are
// not those of its digest is an error.
func ReadManifest(data []byte) (Tree, error) {
	m, t, err := parse(data)
	if err != nil {
		return Tree{}, fmt.Errorf("read a tree's manifest: %w", err)
	}
	if found := t.Digest(); m.Tree != found {
		return Tree{}, fmt.Errorf("read a tree's manifest: it says that it is tree %s, but its entries are those of %s: it was changed by hand", m.Tree, found)
	}
	if !bytes.Equal(t.Manifest(), data) {
		return Tree{}, errForm
	}
	return t, nil
}

// decode reads the manifest of the store. There is one spelling of each tree,
// or two digests would name the same one.
func decode(data []byte) (Tree, error) {
	_, t, err := parse(data)
	if err != nil {
		return Tree{}, err
	}
	if !bytes.Equal(t.encode(), data) {
		return Tree{}, errForm
	}
	return t, nil
}

var errForm = errors.New("it is not spelled as a tree's manifest is: Passbook did not write it")

func parse(data []byte) (manifest, Tree, error) {
	m := manifest{}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, Tree{}, fmt.Errorf("it is not a tree's manifest: %w", err)
	}
	if m.Version != version {
		return m, Tree{}, fmt.Errorf("its version is %d, and this program knows %d", m.Version, version)
	}
	t := Tree{Entries: make([]Entry, 0, len(m.Entries))}
	for _, l := range m.Entries {
		e, err := l.entry()
		if err != nil {
			return m, Tree{}, err
		}
		t.Entries = append(t.Entries, e)
	}
	return m, t, t.check()
}
