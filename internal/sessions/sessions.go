// Package sessions finds, keeps and copies the files in which claude, codex and gemini store their conversations.
//
// A kept file never changes: a conversation is continued from a copy with a new id, so nothing that a later call leaves
// reaches it. Files may contain secrets: they stay on the host, readable by the user only. It starts no program, and it
// does not decide which session is continued.
//
//	<state>/sessions/<run>/<id>    0600, in folders of mode 0700
package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/sandbox"
)

const (
	folder  = "sessions"
	maxSize = 256 << 20 // of a file that is kept
)

// ErrNone means that this host has no file of the session.
var ErrNone = errors.New("this host has no file of the session")

// ErrID means that a program reported an id that cannot be part of a name.
var ErrID = errors.New("the id of the session is not usable as a name")

var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Valid reports whether an id can be part of a name and an argument of a command.
func Valid(id string) bool { return plainID.MatchString(id) }

// Program is a program whose sessions are known, with the environment that its calls get.
type Program struct {
	Name    string // claude, codex or gemini
	Environ []string
}

// home returns the folder of the program's files.
func (p Program) home() (string, error) {
	for _, row := range []struct{ program, variable, name string }{
		{"claude", "CLAUDE_CONFIG_DIR", ".claude"}, {"codex", "CODEX_HOME", ".codex"}, {"gemini", "", ".gemini"},
	} {
		if row.program != p.Name {
			continue
		}
		if dir := environ.Value(p.Environ, row.variable); row.variable != "" && filepath.IsAbs(dir) {
			return dir, nil
		}
		if home := environ.Value(p.Environ, "HOME"); filepath.IsAbs(home) {
			return filepath.Join(home, row.name), nil
		}
		return "", fmt.Errorf("find the sessions of %s: HOME is not set", p.Name)
	}
	return "", fmt.Errorf("find the sessions of %s: %w", p.Name, errors.ErrUnsupported)
}

// open opens the folder of the program's files. An agent may have left links in it: nothing outside is opened.
func (p Program) open() (root *os.Root, err error) {
	dir, err := p.home()
	if err != nil {
		return nil, err
	}
	if root, err = os.OpenRoot(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open the sessions of %s in %s: %w", p.Name, dir, ErrNone)
	}
	return root, err
}

// find returns the file of a session.
func (p Program) find(root *os.Root, id string) (string, error) {
	if !Valid(id) {
		return "", fmt.Errorf("find session %q of %s: %w", id, p.Name, ErrID)
	}
	file := "/*/*/*/rollout-*-" + id + ".jsonl"
	var found []string
	for _, pattern := range map[string][]string{
		"claude": {"projects/*/" + id + ".jsonl"},
		"codex":  {"sessions" + file, "sessions/*" + file}, // the second: of calls in a sandbox
		"gemini": {"tmp/*/chats/session-*-" + short(id) + ".json*"},
	}[p.Name] {
		names, err := fs.Glob(root.FS(), pattern)
		if err != nil {
			return "", fmt.Errorf("find session %s of %s: %w", id, p.Name, err)
		}
		found = append(found, names...)
	}
	best, size := "", int64(-1) // gemini leaves a second, small file of a session that it continues
	for _, name := range found {
		if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() && info.Size() > size {
			best, size = name, info.Size()
		}
	}
	if best == "" {
		return "", fmt.Errorf("find session %s of %s in %s: %w", id, p.Name, root.Name(), ErrNone)
	}
	return best, nil
}

// Directory returns the working directory in which the program finds a session; empty: in any.
func (p Program) Directory(id string) (dir string, err error) {
	root, err := p.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name, err := p.find(root, id)
	if err != nil || p.Name == "codex" {
		return "", err
	}
	if p.Name == "gemini" {
		of, err := read(root, path.Join(path.Dir(path.Dir(name)), sandbox.RootFile))
		return strings.TrimSpace(string(of)), err
	}
	data, err := read(root, name)
	if err != nil {
		return "", err
	}
	project := path.Base(path.Dir(name))
	for line := range bytes.Lines(data) {
		var row struct {
			Dir string `json:"cwd"`
		}
		if json.Unmarshal(line, &row) == nil && unusual.ReplaceAllString(row.Dir, "-") == project {
			return row.Dir, nil
		}
	}
	return "", fmt.Errorf("find the directory of session %s of %s in %s: %w", id, p.Name, name, ErrNone)
}

// Keep stores the file of a session for a run, and returns its name below the folder of kept sessions.
func (p Program) Keep(state, runID, id string) (name string, err error) {
	dir, err := Dir(state, runID)
	if err != nil {
		return "", err
	}
	root, err := p.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := p.read(root, id)
	if err != nil {
		return "", err
	}
	file := disk.File{Path: filepath.Join(dir, id), Data: data, Perm: 0o600, DirPerm: 0o700}
	if err := (disk.Disk{}).WriteAll([]disk.File{file}); err != nil {
		return "", fmt.Errorf("keep session %s of %s: %w", id, p.Name, err)
	}
	return filepath.Join(runID, id), nil
}

// read reads the file of a session.
func (p Program) read(root *os.Root, id string) ([]byte, error) {
	name, err := p.find(root, id)
	if err != nil {
		return nil, err
	}
	data, err := read(root, name)
	if err != nil {
		return nil, fmt.Errorf("read session %s of %s: %w", id, p.Name, err)
	}
	return data, nil
}

func read(root *os.Root, name string) (data []byte, err error) {
	f, err := disk.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if data, err = io.ReadAll(io.LimitReader(f, maxSize+1)); err == nil && len(data) > maxSize {
		err = fmt.Errorf("larger than %d bytes", maxSize)
	}
	return data, err
}

// Copy is a copy of a kept session that a call continues.
type Copy struct {
	ID   string
	Path string
}

// CopyKept writes a kept session into the program's files, under a new id, for calls in a working directory.
func (p Program) CopyKept(state, name, id, work string) (Copy, error) {
	return p.copy(id, work, func(*os.Root) ([]byte, error) {
		if !filepath.IsLocal(name) {
			return nil, ErrID
		}
		data, err := disk.ReadFile(filepath.Join(state, folder, name), maxSize)
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrNone
		}
		return data, err
	})
}

// Copy copies a session of the program's files.
func (p Program) Copy(id, work string) (Copy, error) {
	return p.copy(id, work, func(root *os.Root) ([]byte, error) { return p.read(root, id) })
}

func (p Program) copy(id, work string, source func(*os.Root) ([]byte, error)) (c Copy, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("copy session %s of %s: %w", id, p.Name, err)
		}
	}()
	if !Valid(id) {
		return c, ErrID
	}
	root, err := p.open()
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	data, err := source(root)
	if err != nil {
		return c, err
	}
	c.ID = uuid.NewString()
	to, err := p.place(root, c.ID, resolved(work))
	if err != nil {
		return c, err
	}
	c.Path = filepath.Join(root.Name(), to)
	return c, write(root, to, p.rewrite(data, id, c.ID))
}

// costState marks the lines in which claude stores what a session has cost. A copy without them costs nothing before
// its first request: totals and --max-budget-usd are about the call.
var costState = []byte(`"type":"cost-state"`)

// rewrite returns the content of a session under another id.
func (p Program) rewrite(data []byte, id, next string) []byte {
	data = bytes.ReplaceAll(data, []byte(id), []byte(next))
	if p.Name != "claude" {
		return data
	}
	out := make([]byte, 0, len(data))
	for line := range bytes.Lines(data) {
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.Contains(line[:min(len(line), 64)], costState) {
			out = append(out, line...)
		}
	}
	return out
}

// resolved returns a path without links, as a program in that directory sees it. It need not exist yet.
func resolved(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, strings.TrimPrefix(path, dir))
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// write creates a file and the folders above it.
func write(root *os.Root, name string, data []byte) error {
	if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// RemoveCopy removes a copy, if it is there.
func (p Program) RemoveCopy(c Copy) error {
	root, err := p.open()
	if errors.Is(err, ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(root.Name(), c.Path)
	if err == nil {
		err = root.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, root.Close())
}

var unusual = lazyregexp.New(`[^A-Za-z0-9]`)

// place returns where a program finds a new session of a working directory.
func (p Program) place(root *os.Root, id, work string) (string, error) {
	const day, at = "2000/01/01/", "2000-01-01T00-00"
	switch p.Name {
	case "claude":
		return "projects/" + unusual.ReplaceAllString(work, "-") + "/" + id + ".jsonl", nil
	case "codex":
		return "sessions/" + sandbox.Folder(work) + "/" + day + "rollout-" + at + "-00-" + id + ".jsonl", nil
	}
	dir, err := geminiProject(root, work)
	return dir + "/chats/session-" + at + "-" + short(id) + ".jsonl", err
}

// geminiProject returns the folder of the sessions of a working directory, and creates it if there is none.
func geminiProject(root *os.Root, work string) (string, error) {
	found, err := fs.Glob(root.FS(), "tmp/*/"+sandbox.RootFile)
	if err != nil {
		return "", err
	}
	for _, name := range found {
		if of, err := read(root, name); err == nil && strings.TrimSpace(string(of)) == work {
			return path.Dir(name), nil
		}
	}
	dir := "tmp/" + sandbox.Folder(work)
	return dir, write(root, dir+"/"+sandbox.RootFile, []byte(work))
}

// short is the part of an id that gemini uses in names.
func short(id string) string { return id[:min(8, len(id))] }

// Dir returns the folder of the kept sessions of a run.
func Dir(state, runID string) (string, error) {
	if state == "" || runID == "" || runID == "." || runID != filepath.Base(runID) || !filepath.IsLocal(runID) {
		return "", fmt.Errorf("find the kept sessions of run %q: no such folder", runID)
	}
	return filepath.Join(state, folder, runID), nil
}

// Remove removes the kept sessions of a run.
func Remove(state, runID string) error {
	dir, err := Dir(state, runID)
	if err != nil {
		return err
	}
	if err := disk.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the kept sessions of run %s: %w", runID, err)
	}
	return nil
}
