package tree

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/store"
)

const (
	hello     = `"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"` // sha-256 of "hello"
	manifest1 = `{"version":1,
"entries":[
{"path":"a","mode":"folder","perm":"0755"},
{"path":"a/<x>","mode":"executable","perm":"0755","size":5,"sha256":` + hello + `},
{"path":"l","mode":"symlink","link":"a"},
{"path_b64":"//4=","mode":"file","perm":"0600","size":5,"sha256":` + hello + `}
]}
`
	empty = "{\"version\":1,\n\"entries\":[]}\n"
)

// The form outlives every release: a byte more would give every tree another digest.
func TestTheFormOfAManifest(t *testing.T) {
	d := store.Digest(strings.Trim(hello, `"`))
	tr := Tree{Entries: []Entry{
		{Path: "a", Mode: ModeFolder, Perm: 0o755},
		{Path: "a/<x>", Mode: ModeExecutable, Perm: 0o755, Size: 5, Digest: d},
		{Path: "l", Mode: ModeSymlink, Link: "a"},
		{Path: "\xff\xfe", Mode: ModeFile, Perm: 0o600, Size: 5, Digest: d},
	}}
	require.Equal(t, manifest1, string(tr.encode()))
	require.Equal(t, empty, string(Tree{}.encode()))
	got, err := decode([]byte(manifest1))
	require.NoError(t, err)
	require.Equal(t, tr, got)
}

func TestTheManifestOfARunDirectory(t *testing.T) {
	const digest = "cfeca13859edc683b2b1c949b35f0d61c291cd6fd1901fc1a13961b0810194af"
	tr, err := decode([]byte(manifest1))
	require.NoError(t, err)
	shown := strings.Replace(manifest1, "\n", "\n\"tree\":\""+digest+"\",\n", 1)
	require.Equal(t, shown, string(tr.Manifest()))
	got, err := ReadManifest([]byte(shown))
	require.NoError(t, err)
	require.Equal(t, tr, got)

	_, err = ReadManifest([]byte(strings.Replace(shown, `"0600"`, `"0644"`, 1)))
	require.ErrorContains(t, err, "changed by hand")
	_, err = ReadManifest([]byte(shown + " "))
	require.ErrorContains(t, err, "not spelled")
}

func TestLoadRefuses(t *testing.T) {
	file := func(path string) string {
		return `{"path":"` + path + `","mode":"file","perm":"0644","size":5,"sha256":` + hello + `}`
	}
	with := func(lines ...string) string {
		return "{\"version\":1,\n\"entries\":[\n" + strings.Join(lines, ",\n") + "\n]}\n"
	}
	folder := `{"path":"d","mode":"folder","perm":"0755"}`
	rows := []struct{ name, data, want string }{
		{"no JSON", "{", "not a tree's manifest"},
		{"a later version", `{"version":2,"entries":[]}`, "its version is 2"},
		{"no version", `{"entries":[]}`, "its version is 0"},
		{"another spelling", `{"version":1,"entries":[]}`, "not spelled"},
		{"a member that is unknown", strings.Replace(empty, "\"entries\"", "\"more\":1,\n\"entries\"", 1), "not spelled"},
		{"something behind", empty + "\n", "not spelled"},
		{"absolute", with(file("/etc/passwd")), "not a path below"},
		{"up", with(file("../x")), "not a path below"},
		{"up on the way", with(folder, file("d/../../x")), "not a path below"},
		{"no name", with(file("")), "not a path below"},
		{"two slashes", with(folder, file("d//x")), "not a path below"},
		{"a slash behind", with(file("d/")), "not a path below"},
		{"here", with(file("./x")), "not a path below"},
		{"a NUL", with(file(`a\u0000`)), "NUL"},
		{"git's hooks", with(`{"path":".git","mode":"folder","perm":"0755"}`), "nothing of .git"},
		{"git's, in other letters", with(folder, file("d/.GiT")), "nothing of .GiT"},
		{"twice", with(file("x"), file("x")), "only once"},
		{"out of order", with(file("x"), file("a")), "in order"},
		{"below a file", with(file("a"), file("a/x")), "its folder has no entry"},
		{"below a symlink", with(`{"path":"a","mode":"symlink","link":"."}`, file("a/x")), "its folder has no entry"},
		{"below nothing", with(file("a/x")), "its folder has no entry"},
		{"an unknown mode", with(`{"path":"a","mode":"device","perm":"0644"}`), `its mode is "device"`},
		{"setuid", with(strings.Replace(file("a"), "0644", "4644", 1)), "more than rwxrwxrwx"},
		{"permissions that are none", with(strings.Replace(file("a"), "0644", "rw-", 1)), "not a file's permissions"},
		{"executable, but not so called", with(strings.Replace(file("a"), "0644", "0755", 1)), "not a whole file"},
		{"no digest", with(`{"path":"a","mode":"file","perm":"0644","size":5}`), "not a whole file"},
		{"a negative size", with(strings.Replace(file("a"), ":5", ":-5", 1)), "not a whole file"},
		{"no size", with(strings.Replace(file("a"), `"size":5,`, "", 1)), "not spelled"},
		{"a folder with content", with(strings.Replace(file("a"), `"file"`, `"folder"`, 1)), "folder has no content"},
		{"a symlink with content", with(strings.Replace(file("a"), `"file"`, `"symlink"`, 1)), "symlink has no content"},
		{"a symlink without target", with(`{"path":"a","mode":"symlink"}`), "no target"},
		{"a symlink that points outside", with(`{"path":"a","mode":"symlink","link":"../x"}`), "outside of the tree"},
		{"base64 for plain text", with(`{"path_b64":"YQ==","mode":"symlink","link":"a"}`), "not spelled"},
		{"a path in two parts", with(`{"path":"a","path_b64":"/w==","mode":"symlink","link":"a"}`), "not spelled"},
	}
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			d, err := s.Put(t.Context(), []byte(row.data))
			require.NoError(t, err)
			_, err = Load(t.Context(), s, d)
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, err, string(d))
		})
	}
}
