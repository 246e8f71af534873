package tree_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/internal/store/tree"
)

// onEach runs a test on each kind of store.
func onEach(t *testing.T, test func(*testing.T, *store.Store)) {
	t.Run("file", func(t *testing.T) { test(t, openStore(t)) })
	t.Run("s3", func(t *testing.T) { test(t, open(t, fakes3.Start(t))) })
}

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	return must(store.Open(t.Context(), url))(t)
}

func openStore(t *testing.T) *store.Store { return open(t, "file://"+t.TempDir()) }

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// item is something to make in a folder, or what was found there.
type item struct {
	path, content string
	perm          fs.FileMode
	link          string // of a symlink
}

func file(path, content string) item { return item{path: path, content: content, perm: 0o644} }
func folder(path string) item        { return item{path: path + "/", perm: 0o755} }
func link(path, target string) item  { return item{path: path, link: target} }

// lay makes the items. The folders' permissions come last: they may forbid writing.
func lay(t *testing.T, dir string, items ...item) {
	t.Helper()
	for _, it := range items {
		path := dir + "/" + it.path
		switch {
		case it.link != "":
			require.NoError(t, os.Symlink(it.link, path))
		case strings.HasSuffix(it.path, "/"):
			require.NoError(t, os.MkdirAll(path, 0o700))
		default:
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
			require.NoError(t, os.WriteFile(path, []byte(it.content), 0o600))
			require.NoError(t, os.Chmod(path, it.perm))
		}
	}
	for _, it := range slices.Backward(items) {
		if strings.HasSuffix(it.path, "/") {
			require.NoError(t, os.Chmod(dir+"/"+it.path, it.perm))
		}
	}
	t.Cleanup(func() { allowAll(dir) })
}

// allowAll lets the folder be removed at the end of the test.
func allowAll(dir string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// there lists everything below a folder, in the order of the bytes of paths.
func there(t *testing.T, dir string) []item {
	t.Helper()
	items := []item{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info := must(e.Info())(t)
		it := item{path: strings.TrimPrefix(path, dir+"/"), perm: info.Mode().Perm()}
		switch {
		case e.IsDir():
			it.path += "/"
		case e.Type() == fs.ModeSymlink:
			it.perm = 0
			it.link, err = os.Readlink(path)
		case e.Type().IsRegular():
			var data []byte
			data, err = os.ReadFile(path)
			it.content = string(data)
		}
		items = append(items, it)
		return err
	}))
	return items
}

func save(t *testing.T, s *store.Store, dir string, prev *tree.Cache) tree.Saved {
	t.Helper()
	return must(tree.Save(t.Context(), s, dir, tree.Rules{}, prev))(t)
}

func TestTreeIsRestored(t *testing.T) {
	long := strings.Repeat("n", 255)
	rows := []struct {
		name  string
		items []item // in the order of a walk
	}{
		{"nothing", []item{}},
		{"files in folders", []item{folder("a"), folder("a/b"), file("a/b/y", "y"), file("a/x", "x"), file("z", "z")}},
		{"an empty file", []item{file("empty", "")}},
		{"empty folders", []item{folder("a"), folder("a/b"), folder("c")}},
		{"modes", []item{{path: "exec", content: "#!", perm: 0o755}, {path: "mine", content: "m", perm: 0o600},
			{path: "read", content: "r", perm: 0o444}, {path: "ro/", perm: 0o555}, {path: "ro/x", content: "x", perm: 0o400}}},
		{
			"symlinks", []item{
				folder("a"), link("a/up", "../z"), link("loop", "loop"), link("nowhere", "a/none"), link("root", "."),
				file("z", "z"),
			},
		},
		{
			"any bytes in names", []item{
				file("\x01", "1"), file("\n", "2"), file(" ", "3"), file(`"\`, "4"), file("<&>", "5"),
				link("to", "\xff\xfe"), file("ä\u2028", "6"), file("\xff\xfe", "7"),
			},
		},
		{"as long as names can be", []item{folder(long), file(long+"/"+long, "long")}},
		{"folders sort as they walk", []item{folder("a"), file("a/x", "x"), file("a-b", "-")}},
		{"a large file", []item{file("large", strings.Repeat("0123456789abcdef", 3<<15))}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s *store.Store) {
				from, to := t.TempDir(), t.TempDir()
				lay(t, from, row.items...)
				saved := save(t, s, from, nil)
				lay(t, to, file("rubbish", "r"), file("rubbish.d/deep/r", "r"))
				cache := must(tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{}))(t)
				require.Equal(t, row.items, there(t, to))
				require.Equal(t, saved.Digest, save(t, s, to, nil).Digest)
				require.Equal(t, saved.Digest, save(t, s, to, cache).Digest)
				loaded := must(tree.Load(t.Context(), s, saved.Digest))(t)
				require.Equal(t, saved.Tree, loaded)
			})
		})
	}
}

func TestCheckoutReplacesWhatIsThere(t *testing.T) {
	want := []item{
		folder("folder"), file("folder/in", "in"), file("kept", "kept"), link("link", "kept"),
		{path: "perm", content: "p", perm: 0o600}, file("text", "text"),
	}
	s, from := openStore(t), t.TempDir()
	lay(t, from, want...)
	saved := save(t, s, from, nil)
	rows := []struct {
		name  string
		there []item
	}{
		{"other content", []item{file("text", "TEXT"), file("kept", "longer than that"), link("link", "text")}},
		{"other permissions", []item{{path: "perm", content: "p", perm: 0o777}, {path: "folder/", perm: 0o500}}},
		{"a folder for a file", []item{file("text/deep/x", "x"), file("link/x", "x")}},
		{"a file for a folder", []item{file("folder", "x")}},
		{"symlinks for all", []item{link("folder", "."), link("text", "kept"), link("kept", "nowhere")}},
		{
			"folders without the right to write",
			[]item{{path: "a/", perm: 0o000}, {path: "a/b/", perm: 0o500}, file("a/b/x", "x")},
		},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			to := t.TempDir()
			lay(t, to, row.there...)
			must(tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{}))(t)
			require.Equal(t, want, there(t, to))
		})
	}
}

func TestCheckoutStaysBelowItsFolder(t *testing.T) {
	s, from, outside, to := openStore(t), t.TempDir(), t.TempDir(), t.TempDir()
	lay(t, from, folder("a"), file("a/x", "ours"))
	saved := save(t, s, from, nil)
	lay(t, outside, file("x", "theirs"), file("y", "theirs"))
	lay(t, to, link("a", outside), link("b", outside+"/y"))
	must(tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{}))(t)
	require.Equal(t, []item{folder("a"), file("a/x", "ours")}, there(t, to))
	require.Equal(t, []item{file("x", "theirs"), file("y", "theirs")}, there(t, outside))
}

func TestOmittedParts(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, file(".git/HEAD", "h"), file("sub/.git", "gitdir: elsewhere"), file("sub/.env", "KEY=1"),
		file(".env.example", "KEY="), file("server.pem", "p"), file("git~1", "g"), file("sub/.git /config", "c"),
		file("out/x", "x"), file("deep/out/x", "x"), file("a.log", "l"), file("kept.log", "l"),
		link("away", "/etc/passwd"), file("src", "s"))
	socket := must(net.Listen("unix", filepath.Join(dir, "socket")))(t)
	t.Cleanup(func() { _ = socket.Close() })
	rules := tree.Rules{Ignore: []string{"/out/", "*.log", "!kept.log"}, SkipOutside: true}
	s := openStore(t)
	saved := must(tree.Save(t.Context(), s, dir, rules, nil))(t)
	require.Equal(t, []tree.Skipped{
		{Path: ".git", Folder: true, Reason: tree.ReasonGit},
		{Path: "a.log", Reason: tree.ReasonIgnored},
		{Path: "away", Reason: tree.ReasonOutside},
		{Path: "git~1", Reason: tree.ReasonName},
		{Path: "out", Folder: true, Reason: tree.ReasonIgnored},
		{Path: "server.pem", Reason: tree.ReasonSecret},
		{Path: "socket", Reason: tree.ReasonSpecial},
		{Path: "sub/.env", Reason: tree.ReasonSecret},
		{Path: "sub/.git", Reason: tree.ReasonGit},
		{Path: "sub/.git ", Folder: true, Reason: tree.ReasonName},
	}, saved.Skipped)
	require.Equal(t, []string{".env.example", "deep", "deep/out", "deep/out/x", "kept.log", "src", "sub"},
		paths(saved.Tree))

	lay(t, dir, file("new/x", "x"), file("gone/.env", "K"), file("gone/x", "x"))
	must(tree.Checkout(t.Context(), s, saved.Digest, dir, rules))(t)
	require.NoDirExists(t, dir+"/new")
	require.Equal(t, []item{folder(""), file(".env", "K")}[1:], there(t, dir+"/gone"), "what is left out stays")
	for _, left := range saved.Skipped {
		must(os.Lstat(filepath.Join(dir, left.Path)))(t)
	}

	rules.IncludeSecrets = true
	saved = must(tree.Save(t.Context(), s, dir, rules, nil))(t)
	require.Contains(t, paths(saved.Tree), "sub/.env")
}

func paths(t tree.Tree) []string {
	all := []string{}
	for _, e := range t.Entries {
		all = append(all, e.Path)
	}
	return all
}

func TestSaveRefusesLinksThatPointOutside(t *testing.T) {
	for _, want := range []tree.OutsideError{
		{Path: "l", Target: "/etc/passwd"}, {Path: "l", Target: ".."}, {Path: "l", Target: "../x"},
		{Path: "d/l", Target: "../../x"}, {Path: "d/l", Target: "./.././../x"}, {Path: "l", Target: "d/../../x"},
		{Path: "l", Target: "d/../x"}, // d may be a symlink when it is followed
		{Path: "l", Target: "//"},
	} {
		t.Run(want.Path+" to "+want.Target, func(t *testing.T) {
			dir := t.TempDir()
			lay(t, dir, folder("d"), link(want.Path, want.Target))
			_, err := tree.Save(t.Context(), openStore(t), dir, tree.Rules{}, nil)
			outside := (*tree.OutsideError)(nil)
			require.ErrorAs(t, err, &outside)
			require.Equal(t, want, *outside)
		})
	}
}

func TestCheckoutRefusesToRemoveWhatIsIgnored(t *testing.T) {
	s, from, to := openStore(t), t.TempDir(), t.TempDir()
	lay(t, from, file("a", "x"))
	saved := save(t, s, from, nil)
	lay(t, to, file("a/.env", "KEY=1"))
	_, err := tree.Checkout(t.Context(), s, saved.Digest, to, tree.Rules{})
	require.ErrorContains(t, err, "a: a file of the tree belongs there")
	require.FileExists(t, to+"/a/.env")
}

// TestPutStoresTheListsOnly: a tree that was listed elsewhere can be loaded, and checked out once its contents exist.
func TestPutStoresTheListsOnly(t *testing.T) {
	from, dir, other := t.TempDir(), t.TempDir(), openStore(t)
	lay(t, from, file("in/file.txt", "content"))
	saved := save(t, openStore(t), from, nil)
	require.NoError(t, tree.Put(t.Context(), other, saved.Tree))
	require.Equal(t, saved.Tree, must(tree.Load(t.Context(), other, saved.Digest))(t))
	_, err := tree.Checkout(t.Context(), other, saved.Digest, dir, tree.Rules{})
	require.ErrorContains(t, err, "in/file.txt")
	must(other.Put(t.Context(), []byte("content")))(t)
	must(tree.Checkout(t.Context(), other, saved.Digest, dir, tree.Rules{}))(t)
}
