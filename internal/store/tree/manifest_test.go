package tree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
)

// The sha-256 below are the output of sha256sum for "hello" and for the nodes.
const (
	hello = `"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`
	inA   = "{\"version\":1,\n\"entries\":[\n" +
		`{"name":"<\"x\">","mode":"executable","perm":"0755","size":5,"sha256":` + hello + "}\n]}\n"
	aNode  = "9c9f31416d023d487b5917fccd38d19a3c88f835aad4366253b66355a88fa4fe"
	inRoot = `{"version":1,
"entries":[
{"name":"a","mode":"folder","perm":"0755","sha256":"` + aNode + `"},
{"name":"l","mode":"symlink","link":"a"},
{"name_b64":"//4=","mode":"file","perm":"0600","size":5,"sha256":` + hello + `}
]}
`
	rootNode = "c11b05d4ec38b1b0388fa5e384b98480f45f4e2f5c99d6e528e46f7284b21b80"
	shown    = `{"version":1,
"tree":"` + rootNode + `",
"entries":[
{"path":"a","mode":"folder","perm":"0755"},
{"path":"a/<\"x\">","mode":"executable","perm":"0755","size":5,"sha256":` + hello + `},
{"path":"l","mode":"symlink","link":"a"},
{"path_b64":"//4=","mode":"file","perm":"0600","size":5,"sha256":` + hello + `}
]}
`
	empty = "{\"version\":1,\n\"entries\":[\n]}\n"
)

func example() Tree {
	d := store.Digest(strings.Trim(hello, `"`))
	return Tree{Entries: []Entry{
		{Path: "a", Mode: ModeFolder, Perm: 0o755},
		{Path: `a/<"x">`, Mode: ModeExecutable, Perm: 0o755, Size: 5, Digest: d},
		{Path: "l", Mode: ModeSymlink, Link: "a"},
		{Path: "\xff\xfe", Mode: ModeFile, Perm: 0o600, Size: 5, Digest: d},
	}}
}

// TestFormOfNodes: the forms outlive every release: a byte more would give every tree another digest.
func TestFormOfNodes(t *testing.T) {
	root, nodes := example().nodes()
	require.Equal(t, store.Digest(rootNode), root)
	require.Equal(t, map[store.Digest][]byte{rootNode: []byte(inRoot), aNode: []byte(inA)}, nodes)
	_, nodes = Tree{}.nodes()
	require.Equal(t, map[store.Digest][]byte{store.DigestOf([]byte(empty)): []byte(empty)}, nodes)

	s := openHooked(t, nil)
	for _, node := range []string{inRoot, inA} {
		must(s.Put(t.Context(), []byte(node)))(t)
	}
	got := must(Load(t.Context(), s, rootNode))(t)
	require.Equal(t, example(), got)
}

// TestUnusualTextIsBase64: text that writers of JSON encode in different ways is in base64.
func TestUnusualTextIsBase64(t *testing.T) {
	for text, want := range map[string]string{
		"ä <&> é/": `"k":"ä <&> é/"`, `"\`: `"k":"\"\\"`, "\n": `"k_b64":"Cg=="`, "\x7f": `"k_b64":"fw=="`,
		"\u2028": `"k_b64":"4oCo"`, "\xff": `"k_b64":"/w=="`,
	} {
		require.Equal(t, want, string(appendText(nil, "k", text)), "%q", text)
	}
}

func TestManifestOfARunDirectory(t *testing.T) {
	require.Equal(t, shown, string(example().Manifest()))
	got := must(ReadManifest([]byte(shown)))(t)
	require.Equal(t, example(), got)

	for _, row := range []struct{ name, from, to, want string }{
		{"a file's permissions are others", `"0600"`, `"0644"`, "the file was edited"},
		{"another tree's digest", rootNode, aNode, "the file was edited"},
		{"no digest", `"tree":"` + rootNode + "\",\n", "", "the file was edited"},
		{"a path that leads outside", `"path":"l"`, `"path":"../l"`, "not a path below"},
		{"a path with a name", `{"path":"l"`, `{"name":"l","path":"l"`, "not in canonical form"},
		{"a folder with a digest", `"perm":"0755"},`, `"perm":"0755","sha256":"` + aNode + `"},`,
			"folder has no content"},
		{"something behind", "]}\n", "]}\n\n", "not in canonical form"},
		{"a later version", `"version":1`, `"version":2`, "its version is 2"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := ReadManifest([]byte(strings.Replace(shown, row.from, row.to, 1)))
			require.ErrorContains(t, err, row.want)
		})
	}
}

// TestTreeWithRecursiveNode: a few nodes can list more folders than there is memory for.
func TestTreeWithRecursiveNode(t *testing.T) {
	s, node, d := openHooked(t, nil), empty, store.Digest("")
	for range 40 {
		d = must(s.Put(t.Context(), []byte(node)))(t)
		folder := func(name string) string {
			return `{"name":"` + name + `","mode":"folder","perm":"0755","sha256":"` + string(d) + `"}`
		}
		node = "{\"version\":1,\n\"entries\":[\n" + folder("a") + ",\n" + folder("b") + "\n]}\n"
	}
	_, err := load(t.Context(), s, d, 1000)
	require.ErrorContains(t, err, "it has more than 1000 entries")
}

func TestLoadRefuses(t *testing.T) {
	file := func(name string) string {
		return `{"name":"` + name + `","mode":"file","perm":"0644","size":5,"sha256":` + hello + `}`
	}
	with := func(lines ...string) string {
		return "{\"version\":1,\n\"entries\":[\n" + strings.Join(lines, ",\n") + "\n]}\n"
	}
	inner := store.DigestOf([]byte(with(file("a"))))
	folder := `{"name":"d","mode":"folder","perm":"0755","sha256":"` + string(inner) + `"}`
	rows := []struct{ name, data, want string }{
		{"no JSON", "{", "it is not of a tree"},
		{"a later version", `{"version":2,"entries":[]}`, "its version is 2"},
		{"no version", `{"entries":[]}`, "its version is 0"},
		{"another spelling", `{"version":1,"entries":[]}`, "not in canonical form"},
		{"a member that is unknown", strings.Replace(empty, "\"entries\"", "\"more\":1,\n\"entries\"", 1),
			"not in canonical form"},
		{"absolute", with(file("/etc/passwd")), "not a path below"},
		{"above", with(file("..")), "not a path below"},
		{"no name", with(file("")), "not a path below"},
		{"a path for a name", with(file("d/x")), "not a whole file"},
		{"here", with(file(".")), "not a path below"},
		{"a NUL", with(file(`a\u0000`)), "NUL"},
		{"a NUL in base64", with(strings.Replace(file("a"), `"name":"a"`, `"name_b64":"AA=="`, 1)), "NUL"},
		{"git's hooks", with(strings.Replace(folder, `"d"`, `".git"`, 1)), "nothing of .git"},
		{"git's, in other letters", with(file(".GiT")), "nothing of .GiT"},
		{"twice", with(file("x"), file("x")), "only once"},
		{"out of order", with(file("x"), file("a")), "in the order"},
		{"a path beside the name", with(strings.Replace(file("a"), `"name"`, `"path":"../x","name"`, 1)),
			"not in canonical form"},
		{"a folder without a node", with(`{"name":"d","mode":"folder","perm":"0755"}`), "not a whole folder"},
		{
			"a folder that is missing", with(strings.Replace(folder, string(inner), string(store.DigestOf(nil)), 1)),
			`folder "d": read blob`,
		},
		{
			"a folder that is a file", with(strings.Replace(folder, string(inner), strings.Trim(hello, `"`), 1)),
			`folder "d": blob`,
		},
		{"a name longer than a path can be", with(file(strings.Repeat("x", 4097))), "longer than 4096 bytes"},
		{"an unknown mode", with(`{"name":"a","mode":"device","perm":"0644"}`), `its mode is "device"`},
		{"setuid", with(strings.Replace(file("a"), "0644", "4644", 1)), "more than rwxrwxrwx"},
		{"permissions that are none", with(strings.Replace(file("a"), "0644", "rw-", 1)), "not a file's permissions"},
		{"executable, but not so called", with(strings.Replace(file("a"), "0644", "0755", 1)), "not a whole file"},
		{"no digest", with(`{"name":"a","mode":"file","perm":"0644","size":5}`), "not a whole file"},
		{"a negative size", with(strings.Replace(file("a"), ":5", ":-5", 1)), "not a whole file"},
		{"no size", with(strings.Replace(file("a"), `"size":5,`, "", 1)), "not in canonical form"},
		{"a folder with content", with(strings.Replace(file("a"), `"file"`, `"folder"`, 1)), "folder has no content"},
		{"a symlink with content", with(strings.Replace(file("a"), `"file"`, `"symlink"`, 1)),
			"symlink has no content"},
		{"a symlink without target", with(`{"name":"a","mode":"symlink"}`), "not a target"},
		{"a symlink that points outside", with(`{"name":"a","mode":"symlink","link":"../x"}`), "outside of the tree"},
		{"base64 for plain text", with(`{"name_b64":"YQ==","mode":"symlink","link":"a"}`), "not in canonical form"},
		{"a path in two parts", with(`{"name":"a","name_b64":"/w==","mode":"symlink","link":"a"}`),
			"not in canonical form"},
	}
	s := must(store.Open(t.Context(), "file://"+t.TempDir()))(t)
	for _, data := range []string{with(file("a")), "hello"} {
		must(s.Put(t.Context(), []byte(data)))(t)
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			d := must(s.Put(t.Context(), []byte(row.data)))(t)
			_, err := Load(t.Context(), s, d)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, string(d))
		})
	}
}
