// Command reduce prepares the source of a Temporal server without the parts that Passbook never uses: archives in the
// clouds of Amazon and Google, and workers that the server starts there or in Kubernetes. They are 40 % of the packages
// that the server imports, a third of the time of its compilation, and half of the program. It also exchanges the
// driver of SQLite for one that keeps prepared statements.
//
// It copies the modules of [parts] from the module cache, exchanges the named packages, and prints the path of a
// go.work with which the go command uses the copies:
//
//	GOWORK=$(go -C devserver run ./reduce) go -C devserver build
//
// The copies are in the user's cache. Their path depends on the versions of the modules and on what replaces their
// packages, so that the go command compiles them once.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// part is a package whose files without are left out; the files in the folder with, beside this one, replace them.
type part struct {
	module, pkg string
	without     []string
	with        string
}

var parts = []part{
	{"go.temporal.io/server", "common/archiver/s3store", []string{"*"}, "s3store"},
	{"go.temporal.io/server", "common/archiver/gcloud", []string{"*"}, "gcloud"},
	{"go.temporal.io/server", "common/persistence/visibility/store/elasticsearch/client", []string{"aws.go"},
		"elasticsearch"},
	{"go.temporal.io/server", "common/persistence/sql/sqlplugin/sqlite", []string{"driver.go"}, "sqlite"},
	{"go.temporal.io/auto-scaled-workers", "wci/workflow/compute_provider", []string{"aws*.go", "gcp*.go", "k8s.go"},
		"compute_provider"},
}

// notBuilt is the first line of the files that replace others: they belong to the packages that they are copied to.
const notBuilt = "//go:build ignore\n"

func main() {
	cache, err := os.UserCacheDir()
	var work string
	if err == nil {
		work, err = reduce(".", filepath.Join(cache, "passbook", "server-source"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "reduce the Temporal server's source:", err)
		os.Exit(1)
	}
	fmt.Println(work)
}

// reduce returns the path of the go.work for the module in dir. It makes the copies below cache unless they exist.
func reduce(dir, cache string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	versions, err := goCommand(dir, append([]string{"list", "-m"}, modules()...)...)
	if err != nil {
		return "", err
	}
	key, err := identify(dir, versions)
	if err != nil {
		return "", err
	}
	copies := filepath.Join(cache, key)
	if _, err := os.Stat(copies); errors.Is(err, fs.ErrNotExist) {
		if err := create(dir, copies); err != nil {
			return "", err
		}
	}
	return workspace(dir, copies)
}

// modules returns the paths of the modules with parts.
func modules() []string {
	var paths []string
	for _, p := range parts {
		if !slices.Contains(paths, p.module) {
			paths = append(paths, p.module)
		}
	}
	return paths
}

// format is incremented by a change of this program that changes the copies.
const format = 1

// identify returns a name for the copies: of the versions of modules, the parts, and the files that replace others.
func identify(dir string, versions []byte) (string, error) {
	var names []string
	for _, p := range parts {
		files, err := replacements(dir, p)
		if err != nil {
			return "", err
		}
		names = append(names, files...)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%d %s%v", format, versions, parts)
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(data), data)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// workspace writes the go.work of the module in dir beside the copies. Each checkout has its own.
func workspace(dir, copies string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	var version string
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "go "); ok {
			version = strings.TrimSpace(v)
		}
	}
	out := fmt.Appendf(nil, "go %s\n\nuse %q\n", version, dir)
	for _, m := range modules() {
		out = fmt.Appendf(out, "\nreplace %s => %q\n", m, filepath.Join(copies, folder(m)))
	}
	checkout := sha256.Sum256([]byte(dir))
	path := filepath.Join(copies, "work-"+hex.EncodeToString(checkout[:8]), "go.work")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, out) {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	next := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.WriteFile(next, out, 0o600); err != nil {
		return "", err
	}
	return path, os.Rename(next, path)
}

// folder returns the name of a module's copy.
func folder(module string) string { return strings.ReplaceAll(module, "/", "-") }

// replacements returns the paths, from dir, of the files that replace those of a package.
func replacements(dir string, p part) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(dir, "reduce", p.with))
	var names []string
	for _, e := range entries {
		names = append(names, filepath.Join("reduce", p.with, e.Name()))
	}
	return names, err
}

// create makes all copies in a separate folder, which gets its name when it is complete.
func create(dir, copies string) error {
	if err := os.MkdirAll(filepath.Dir(copies), 0o700); err != nil {
		return err
	}
	work, err := os.MkdirTemp(filepath.Dir(copies), filepath.Base(copies)+".")
	if err != nil {
		return err
	}
	if err = fill(dir, work); err == nil {
		err = os.Rename(work, copies)
	}
	if errors.Is(err, fs.ErrExist) { // another process was faster
		err = nil
	}
	return errors.Join(err, os.RemoveAll(work))
}

func fill(dir, work string) error {
	for _, m := range modules() {
		if err := copyModule(dir, m, filepath.Join(work, folder(m))); err != nil {
			return err
		}
	}
	for _, p := range parts {
		if err := exchange(dir, p, filepath.Join(work, folder(p.module), p.pkg)); err != nil {
			return fmt.Errorf("%s/%s: %w", p.module, p.pkg, err)
		}
	}
	return nil
}

// copyModule copies a module, which it downloads if necessary, without its tests.
func copyModule(dir, module, to string) error {
	out, err := goCommand(dir, "mod", "download", "-json", module)
	if err != nil {
		return err
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return err
	}
	return filepath.WalkDir(downloaded.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(downloaded.Dir, path)
		switch {
		case err != nil:
			return err
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, name), 0o700)
		case strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o600)
	})
}

// exchange removes files of the package in the folder pkg, and adds those that replace them. Each pattern must match:
// a new version of the module may have other files.
func exchange(dir string, p part, pkg string) error {
	for _, pattern := range p.without {
		names, err := filepath.Glob(filepath.Join(pkg, pattern))
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return filepath.Ext(name) != ".go" })
		if len(names) == 0 {
			return fmt.Errorf("no Go file matches %s in this version; correct the table in devserver/reduce/main.go",
				pattern)
		}
		for _, name := range names {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	names, err := replacements(dir, p)
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		text, ok := bytes.CutPrefix(data, []byte(notBuilt))
		if !ok {
			return fmt.Errorf("%s does not begin with %q", name, notBuilt)
		}
		if err := os.WriteFile(filepath.Join(pkg, filepath.Base(name)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// goCommand returns the output of a go command in dir. Its downloads are shown.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=off") // the versions of the module itself
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return out, nil
}
