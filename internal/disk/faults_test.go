package disk_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
)

var errInjected = errors.New("injected")

// operation is one durable operation on a folder that was prepared for it.
type operation struct {
	name    string
	prepare map[string]string
	do      func(d disk.Disk, dir string) error
	// ok reports whether the folder may look like this after a fault.
	ok   func(files map[string]string) bool
	done map[string]string
}

// files are new files in a folder. Folders are made if one of the names has a folder.
func files(dir string, names ...string) (all []disk.File) {
	for _, name := range names {
		f := disk.File{Path: filepath.Join(dir, name), Data: []byte("new"), Perm: 0o600}
		if strings.Contains(strings.Join(names, ""), "/") {
			f.DirPerm = 0o700
		}
		all = append(all, f)
	}
	return all
}

func operations() []operation {
	grown := func(f map[string]string) bool {
		return strings.HasPrefix("one\ntwo\n", f["log"]) && len(f["log"]) >= 4
	}
	return []operation{
		{
			name:    "replace a file",
			prepare: map[string]string{"a": "old"},
			do: func(d disk.Disk, dir string) error {
				return d.WriteFile(filepath.Join(dir, "a"), []byte("new"), 0o600)
			},
			ok:   func(f map[string]string) bool { return f["a"] == "old" || f["a"] == "new" },
			done: map[string]string{"a": "new"},
		},
		{
			name:    "replace a checked file",
			prepare: map[string]string{"a": `{"v":1}`},
			do: func(d disk.Disk, dir string) error {
				return d.WriteAll([]disk.File{{Path: filepath.Join(dir, "a"), Data: []byte(`{"v":2}`), Perm: 0o600,
					State: true}})
			},
			ok:   func(f map[string]string) bool { return f["a"] == `{"v":1}` || f["a"] == `{"v":2}` },
			done: map[string]string{"a": `{"v":2}`},
		},
		{
			name:    "write many files",
			prepare: map[string]string{"a": "old", "b": "old"},
			do:      func(d disk.Disk, dir string) error { return d.WriteAll(files(dir, "a", "b", "c")) },
			ok: func(f map[string]string) bool {
				state := f["a"] + "," + f["b"] + "," + f["c"]
				return strings.Contains(" old,old, new,old, new,new, new,new,new ", " "+state+" ")
			},
			done: map[string]string{"a": "new", "b": "new", "c": "new"},
		},
		{
			name:    "files whose names are synced together",
			prepare: map[string]string{"a": "old", "b": "kept"},
			do: func(d disk.Disk, dir string) error {
				names := d.Names()
				for _, name := range []string{"a", "c"} {
					if err := names.WriteAll([]disk.File{{Path: filepath.Join(dir, name), Perm: 0o600,
						Fill: func(w io.Writer) error { _, err := w.Write([]byte("new")); return err }}}); err != nil {
						return err
					}
				}
				if err := names.Settle(filepath.Join(dir, "b")); err != nil {
					return err
				}
				return names.Sync()
			},
			ok: func(f map[string]string) bool {
				state := f["a"] + "," + f["b"] + "," + f["c"]
				return strings.Contains(" old,kept, new,kept, new,kept,new ", " "+state+" ")
			},
			done: map[string]string{"a": "new", "b": "kept", "c": "new"},
		},
		{
			name:    "write into new folders",
			prepare: map[string]string{"a": "old"},
			do:      func(d disk.Disk, dir string) error { return d.WriteAll(files(dir, "x/y/b", "a", "x/z/c")) },
			ok:      func(f map[string]string) bool { return f["a"] == "old" || f["a"] == "new" && f["x/y/b"] == "new" },
			done:    map[string]string{"a": "new", "x/": "", "x/y/": "", "x/z/": "", "x/y/b": "new", "x/z/c": "new"},
		},
		{
			name:    "append to many files",
			prepare: map[string]string{"log": "one\n", "more": "1\n2"},
			do: func(d disk.Disk, dir string) error {
				_, err := d.AppendAll([]disk.Addition{
					{Path: filepath.Join(dir, "log"), Offset: 4, Data: []byte("two\n"), Perm: 0o600},
					{Path: filepath.Join(dir, "new"), Data: []byte("first\n"), Perm: 0o600},
					{Path: filepath.Join(dir, "more"), Offset: 2, Data: []byte("2\n"), Perm: 0o600},
				})
				return err
			},
			ok: func(f map[string]string) bool {
				return grown(f) && strings.HasPrefix("first\n", f["new"]) && strings.HasPrefix("1\n2\n", f["more"])
			},
			done: map[string]string{"log": "one\ntwo\n", "new": "first\n", "more": "1\n2\n"},
		},
		{
			name:    "append",
			prepare: map[string]string{"log": "one\n"},
			do: func(d disk.Disk, dir string) error {
				_, err := d.Append(filepath.Join(dir, "log"), 4, []byte("two\n"), 0o600)
				return err
			},
			ok:   grown,
			done: map[string]string{"log": "one\ntwo\n"},
		},
		{
			name:    "append without syncing",
			prepare: map[string]string{"log": "one\n"},
			do: func(d disk.Disk, dir string) error {
				_, err := d.AppendAll([]disk.Addition{{Path: filepath.Join(dir, "log"), Offset: 4, Data: []byte("two\n"),
					Perm: 0o600, Unsynced: true}})
				return err
			},
			ok:   grown,
			done: map[string]string{"log": "one\ntwo\n"},
		},
		{
			name:    "write without syncing, then sync",
			prepare: map[string]string{"a": "old"},
			do: func(d disk.Disk, dir string) error {
				unsynced := files(dir, "a", "x/b")
				unsynced[0].Unsynced, unsynced[1].Unsynced = true, true
				if err := d.WriteAll(unsynced); err != nil {
					return err
				}
				return d.SyncFileSystem(dir)
			},
			ok: func(f map[string]string) bool {
				return (f["a"] == "old" || f["a"] == "new") && (f["x/b"] == "" || f["x/b"] == "new")
			},
			done: map[string]string{"a": "new", "x/": "", "x/b": "new"},
		},
		{
			name:    "rename to another folder",
			prepare: map[string]string{"a/f": "x", "b/g": ""},
			do: func(d disk.Disk, dir string) error {
				if _, err := os.Stat(filepath.Join(dir, "b", "f")); err == nil {
					return nil // done by the first of two calls
				}
				return d.Rename(filepath.Join(dir, "a", "f"), filepath.Join(dir, "b", "f"))
			},
			ok:   func(f map[string]string) bool { return f["a/f"]+f["b/f"] == "x" },
			done: map[string]string{"a/": "", "b/": "", "b/f": "x", "b/g": ""},
		},
		{
			name:    "exchange two folders",
			prepare: map[string]string{"s/new/f": "new", "site/f": "old"},
			do: func(d disk.Disk, dir string) error {
				if raw, err := os.ReadFile(filepath.Join(dir, "site", "f")); err != nil || string(raw) == "new" {
					return err // done by the first of two calls
				}
				return d.Exchange(filepath.Join(dir, "s", "new"), filepath.Join(dir, "site"), filepath.Join(dir, "s", "spare"))
			},
			ok: func(f map[string]string) bool {
				return f["s/new/f"]+" "+f["site/f"] == "new old" || f["s/new/f"]+" "+f["site/f"] == "old new"
			},
			done: map[string]string{"s/": "", "s/new/": "", "s/new/f": "old", "site/": "", "site/f": "new"},
		},
		{
			name: "create exclusively",
			do: func(d disk.Disk, dir string) error {
				_, err := d.CreateExclusive(filepath.Join(dir, "claim"), []byte("mine"), 0o600)
				return err
			},
			ok:   func(f map[string]string) bool { c, there := f["claim"]; return !there || c == "mine" },
			done: map[string]string{"claim": "mine"},
		},
		{
			name:    "cut a tail",
			prepare: map[string]string{"log": "one\ntw"},
			do: func(d disk.Disk, dir string) error {
				return d.CutTail(filepath.Join(dir, "log"), 4, filepath.Join(dir, "log.torn"))
			},
			ok: func(f map[string]string) bool {
				return f["log"] == "one\ntw" || f["log"] == "one\n" && f["log.torn"] == "tw"
			},
			done: map[string]string{"log": "one\n", "log.torn": "tw"},
		},
		{
			name:    "settle",
			prepare: map[string]string{"a": "there"},
			do:      func(d disk.Disk, dir string) error { return d.Settle(filepath.Join(dir, "a")) },
			ok:      func(f map[string]string) bool { return f["a"] == "there" },
			done:    map[string]string{"a": "there"},
		},
		{
			name: "make many folders",
			do: func(d disk.Disk, dir string) error {
				names := d.Names()
				for _, name := range []string{"many/a", "many/b"} {
					if err := names.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
						return err
					}
				}
				return names.Sync()
			},
			ok:   func(map[string]string) bool { return true },
			done: map[string]string{"many/": "", "many/a/": "", "many/b/": ""},
		},
		{
			name: "make folders",
			do: func(d disk.Disk, dir string) error {
				return d.Mkdir(filepath.Join(dir, "x", "y", "z"), 0o700)
			},
			ok:   func(map[string]string) bool { return true },
			done: map[string]string{"x/": "", "x/y/": "", "x/y/z/": ""},
		},
	}
}

// TestFaultAtEveryStep fails, stops or tears each step of each operation, compares what is left, and does the operation
// again. A failure leaves no temporary file where removing it works.
func TestFaultAtEveryStep(t *testing.T) {
	for _, op := range operations() {
		for k, step := range trace(t, op) {
			for _, fault := range []string{"fail", "stop", "tear"} {
				t.Run(fmt.Sprintf("%s/%s at %d", op.name, fault, k), func(t *testing.T) {
					dir := prepared(t, op)
					err := op.do(disk.Disk{Hook: faultAt(k, fault)}, dir)
					if step != "remove T" || fault == "stop" {
						require.ErrorIs(t, err, errInjected)
					}
					left := look(t, dir)
					require.True(t, op.ok(left), "after the fault: %v", left)
					for name := range left {
						require.False(t, fault == "fail" && step != "remove T" && disk.IsTemp(name), "%s is left", name)
						name, _, _ = strings.Cut(name, ".tmp.")
						require.NoError(t, disk.Disk{}.CleanTempsOf(filepath.Join(dir, name)))
					}
					require.NoError(t, op.do(disk.Disk{}, dir))
					require.Equal(t, op.done, look(t, dir))
				})
			}
		}
	}
}

// TestSteps is the promise of the package: what is synced, and in which order.
func TestSteps(t *testing.T) {
	want := map[string][]string{
		"replace a file":         {"create T", "write T", "sync T", "rename a", "sync folder ."},
		"replace a checked file": {"create T", "write T", "read back T", "sync T", "rename a", "sync folder ."},
		"write many files": {
			"create T", "write T", "sync T", "create T", "write T", "sync T", "create T", "write T", "sync T",
			"rename a", "rename b", "rename c", "sync folder .",
		},
		"files whose names are synced together": {
			"create T", "write T", "sync T", "rename a", "create T", "write T", "sync T", "rename c", "sync b",
			"sync folder .",
		},
		"write into new folders": {
			"mkdir x", "mkdir x/y", "mkdir x/z",
			"create T", "write T", "sync T", "create T", "write T", "sync T", "create T", "write T", "sync T",
			"rename x/y/b", "rename a", "rename x/z/c", "sync folder ..", "sync folder .", "sync folder x",
			"sync folder x/y", "sync folder x/z",
		},
		"append to many files": {
			"create log", "write log", "sync log", "create new", "write new", "sync new", "create more", "write more",
			"sync more", "sync folder .",
		},
		"append":                   {"create log", "write log", "sync log"},
		"rename to another folder": {"rename b/f", "sync folder a", "sync folder b"},
		"append without syncing":   {"create log", "write log"},
		"write without syncing, then sync": {
			"mkdir x", "create T", "write T", "create T", "write T", "rename a", "rename x/b", "sync file system .",
		},
		"make many folders": {
			"mkdir many", "mkdir many/a", "mkdir many/b", "sync folder ..", "sync folder .", "sync folder many",
		},
		"create exclusively": {"create T", "write T", "sync T", "link claim", "remove T", "sync folder ."},
		"create in a new folder": {
			"mkdir x", "create T", "write T", "sync T", "link x/claim", "remove T", "sync folder ..", "sync folder .",
			"sync folder x",
		},
		"cut a tail": {
			"create log", "create log.torn", "write log.torn", "sync log.torn", "sync folder .", "truncate log", "sync log",
		},
		"settle":               {"sync a", "sync folder ."},
		"exchange two folders": {"exchange site", "sync folder .", "sync folder s"},
		"make folders": {
			"mkdir x", "mkdir x/y", "mkdir x/y/z", "sync folder ..", "sync folder .", "sync folder x", "sync folder x/y",
		},
	}
	for _, op := range operations() {
		require.Equal(t, want[op.name], trace(t, op), op.name)
	}
}

// trace lists the steps of an undisturbed operation; T is a temporary file.
func trace(t *testing.T, op operation) []string {
	t.Helper()
	dir := prepared(t, op)
	var steps []string
	err := op.do(disk.Disk{Hook: func(s disk.Step) error {
		rel, err := filepath.Rel(dir, s.Path)
		if disk.IsTemp(rel) {
			rel = "T"
		}
		steps = append(steps, string(s.Op)+" "+rel)
		return err
	}}, dir)
	require.NoError(t, err)
	require.Equal(t, op.done, look(t, dir))
	return steps
}

// faultAt makes step k fail; with "stop" every later one too, as after a crash;
// with "tear" a write gets one byte through.
func faultAt(k int, fault string) func(disk.Step) error {
	n := -1
	return func(s disk.Step) error {
		n++
		switch {
		case n < k, n > k && fault == "fail":
			return nil
		case n == k && fault == "tear" && s.Op == disk.OpWrite:
			return errors.Join(errInjected, disk.Torn{Bytes: 1})
		default:
			return errInjected
		}
	}
}

func prepared(t *testing.T, op operation) string {
	t.Helper()
	dir := t.TempDir()
	for name, data := range op.prepare {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600))
	}
	return dir
}

// look returns the content of every file in dir, and every folder with a slash.
func look(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if e.IsDir() {
			files[rel+"/"] = ""
			return nil
		}
		data, err := os.ReadFile(path)
		files[rel] = string(data)
		return err
	})
	require.NoError(t, err)
	return files
}
