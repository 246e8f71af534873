package tree

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/store"
)

// version is the version of the stored formats. Others are an error.
const version = 1

// The store has one node per folder of a tree: a blob that lists the folder's content, with subfolders by their
// nodes' digests. So unchanged folders are not stored again. A run directory lists all entries in one file. Both
// have one line per entry and a canonical encoding: the same tree has the same bytes.

// child is an entry of a node.
type child struct {
	Entry
	node store.Digest // of a folder
}

// header precedes the entries.
type header struct {
	Version int          `json:"version"`
	Tree    store.Digest `json:"tree"` // only in a run directory
	Entries []line       `json:"entries"`
}

// line is a stored entry: with its name in a node, with its path in a run directory. Text that is not plain is in
// base64.
type line struct {
	Name    string       `json:"name"`
	NameB64 []byte       `json:"name_b64"`
	Path    string       `json:"path"`
	PathB64 []byte       `json:"path_b64"`
	Mode    Mode         `json:"mode"`
	Perm    string       `json:"perm"` // octal, four digits; not of a symlink
	Size    int64        `json:"size"`
	Digest  store.Digest `json:"sha256"` // of a file's content; in a node also of a folder's
	Link    string       `json:"link"`
	LinkB64 []byte       `json:"link_b64"`
}

// nodes returns the nodes of a tree and the root's digest.
func (t Tree) nodes() (root store.Digest, all map[store.Digest][]byte) {
	in := map[string][]child{}
	for _, e := range t.Entries {
		in[parent(e.Path)] = append(in[parent(e.Path)], child{Entry: e})
	}
	all = map[store.Digest][]byte{}
	digests := map[string]store.Digest{}
	add := func(folder string) {
		for i, c := range in[folder] {
			in[folder][i].node = digests[c.Path]
		}
		data := encodeNode(in[folder])
		digests[folder] = store.DigestOf(data)
		all[digests[folder]] = data
	}
	for _, e := range slices.Backward(t.Entries) { // the content of a folder follows it
		if e.Mode == ModeFolder {
			add(e.Path)
		}
	}
	add(".")
	return digests["."], all
}

func encodeNode(children []child) []byte {
	out := begin("")
	for i, c := range children {
		out = separate(out, i)
		out = c.append(out, "name", base(c.Path), c.node)
	}
	return end(out)
}

// decodeNode decodes the node of the folder at dir.
func decodeNode(dir string, data []byte) ([]child, error) {
	h, err := parse(data)
	if err != nil {
		return nil, err
	}
	children := make([]child, 0, len(h.Entries))
	for i, l := range h.Entries {
		c, err := l.child(dir)
		if err != nil {
			return nil, fmt.Errorf("entry %q: %w", l.Name+string(l.NameB64), err)
		}
		if i > 0 && c.Path <= children[i-1].Path {
			return nil, fmt.Errorf("entry %q: %w", c.Path, errOrder)
		}
		children = append(children, c)
	}
	if !bytes.Equal(encodeNode(children), data) {
		return nil, errForm
	}
	return children, nil
}

func (l line) child(dir string) (child, error) {
	name := l.Name + string(l.NameB64)
	e, err := l.entry(join(dir, name))
	if err != nil {
		return child{}, err
	}
	c := child{Entry: e}
	if c.Mode == ModeFolder {
		c.node, c.Digest = c.Digest, ""
	}
	if err := c.check(); err != nil {
		return child{}, err
	}
	if base(c.Path) != name || c.Mode == ModeFolder && !c.node.Valid() {
		return child{}, fmt.Errorf("it is not a whole %s", c.Mode)
	}
	return c, nil
}

// Manifest returns the manifest of a tree for a run directory: its digest and all entries.
func (t Tree) Manifest() []byte {
	out := begin(t.Digest())
	for i, e := range t.Entries {
		out = separate(out, i)
		out = e.append(out, "path", e.Path, "")
	}
	return end(out)
}

// ReadManifest parses the output of [Tree.Manifest]. A manifest whose entries do not match its digest is an error.
func ReadManifest(data []byte) (Tree, error) {
	t, err := readManifest(data)
	if err != nil {
		return Tree{}, fmt.Errorf("read a tree's manifest: %w", err)
	}
	return t, nil
}

func readManifest(data []byte) (Tree, error) {
	h, err := parse(data)
	if err != nil {
		return Tree{}, err
	}
	t := Tree{Entries: make([]Entry, 0, len(h.Entries))}
	for _, l := range h.Entries {
		e, err := l.entry(l.Path + string(l.PathB64))
		if err != nil {
			return Tree{}, fmt.Errorf("entry %q: %w", e.Path, err)
		}
		t.Entries = append(t.Entries, e)
	}
	if err := t.check(); err != nil {
		return Tree{}, err
	}
	if found := t.Digest(); h.Tree != found {
		return Tree{}, fmt.Errorf("digest is %s, but the entries are those of %s: the file was edited",
			h.Tree, found)
	}
	if !bytes.Equal(t.Manifest(), data) {
		return Tree{}, errForm
	}
	return t, nil
}

var errForm = errors.New("not in canonical form: another program wrote it")

func parse(data []byte) (header, error) {
	h := header{}
	if err := json.Unmarshal(data, &h); err != nil {
		return h, fmt.Errorf("it is not of a tree: %w", err)
	}
	if h.Version != version {
		return h, fmt.Errorf("its version is %d, and this program knows %d", h.Version, version)
	}
	return h, nil
}

func (l line) entry(path string) (Entry, error) {
	e := Entry{Path: path, Mode: l.Mode, Size: l.Size, Digest: l.Digest, Link: l.Link + string(l.LinkB64)}
	if l.Perm == "" {
		return e, nil
	}
	perm, err := strconv.ParseUint(l.Perm, 8, 32)
	if err != nil {
		return e, fmt.Errorf("%q is not a file's permissions", l.Perm)
	}
	e.Perm = fs.FileMode(perm)
	return e, nil
}

func begin(tree store.Digest) []byte {
	out := fmt.Appendf(nil, "{\"version\":%d,\n", version)
	if tree != "" {
		out = fmt.Appendf(out, "\"tree\":\"%s\",\n", tree)
	}
	return append(out, `"entries":[`...)
}

func separate(out []byte, i int) []byte {
	if i > 0 {
		out = append(out, ',')
	}
	return append(out, '\n')
}

func end(out []byte) []byte { return append(out, "\n]}\n"...) }

// append appends the entry's line.
func (e Entry) append(out []byte, key, text string, node store.Digest) []byte {
	out = appendText(append(out, '{'), key, text)
	out = append(append(append(out, `,"mode":"`...), e.Mode...), '"')
	if e.Mode != ModeSymlink {
		out = append(out, `,"perm":"0`...)
		out = append(out, '0'+byte(e.Perm>>6&7), '0'+byte(e.Perm>>3&7), '0'+byte(e.Perm&7), '"')
	}
	if e.IsFile() {
		out = strconv.AppendInt(append(out, `,"size":`...), e.Size, 10)
	}
	if d := e.Digest + node; d != "" {
		out = append(append(append(out, `,"sha256":"`...), d...), '"')
	}
	if e.Link != "" {
		out = appendText(append(out, ','), "link", e.Link)
	}
	return append(out, '}')
}

// appendText appends a member, in base64 unless it is plain text.
func appendText(out []byte, key, text string) []byte {
	out = append(append(out, '"'), key...)
	if !plain(text) {
		return append(base64.StdEncoding.AppendEncode(append(out, `_b64":"`...), []byte(text)), '"')
	}
	out = append(out, `":"`...)
	for i := range len(text) {
		if text[i] == '"' || text[i] == '\\' {
			out = append(out, '\\')
		}
		out = append(out, text[i])
	}
	return append(out, '"')
}

// plain reports whether JSON preserves a text and it is readable.
func plain(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if r < ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' {
			return false
		}
	}
	return true
}
