package operations

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/run"
)

// BoundsOf returns what the settings allow to the processes of runs on this host.
func BoundsOf(s config.Settings) allow.Bounds {
	return allow.On(s.Sandbox, s.Policy.Agents, s.StateDir)
}

// RequestError is what a definition asks for beyond the settings, as long as no operator has confirmed it. Nothing was
// started or changed.
type RequestError struct{ Asked allow.Confirmation }

func (e *RequestError) Error() string {
	lines := []string{e.Asked.Definition + " asks for more than the settings of this host allow:"}
	for _, r := range e.Asked.Requests {
		lines = append(lines, "  "+r.String())
	}
	command := []string{"starter", "allow", e.Asked.Definition}
	if e.Asked.Repository != "" {
		command = append(command, "--source", e.Asked.Repository)
	}
	return strings.Join(append(lines, "Nothing was started. To allow it: "+shell.Line(command...)), "\n")
}

// Requests returns what a definition asks for beyond the settings, to be confirmed.
func (d Definition) Requests(s config.Settings) (allow.Confirmation, error) {
	c := allow.Confirmation{Definition: d.Parsed.File, Repository: repositoryOf(d), At: run.Time(time.Now()),
		Requests: BoundsOf(s).Requests(d.Plan)}
	if len(c.Requests) == 0 {
		return c, nil
	}
	if d.Home != "" {
		c.Definition = filepath.Join(d.Home, filepath.Base(d.Parsed.File))
	}
	read := map[string]string{}
	for _, name := range d.files() {
		data, err := fs.ReadFile(d.Folder, name)
		if err != nil {
			return c, err
		}
		read[name] = disk.Digest(data)
	}
	for _, r := range c.Requests {
		for _, file := range programsIn(c.Repository, r.Argv) {
			data, err := disk.ReadFile(file, maxProgram)
			if err != nil {
				return c, fmt.Errorf("read the program of %s: %w", r.What, err)
			}
			read[file] = disk.Digest(data)
		}
	}
	all, err := json.Marshal([]any{string(d.Source), d.Plan.ConfigHash, read})
	c.Digest = disk.Digest(all)
	return c, err
}

// programsIn returns the files of a repository that a command names, also in the words of a shell: ./test.sh && make -C x.
func programsIn(repository string, argv []string) (files []string) {
	if repository == "" {
		return nil
	}
	root := repository
	for at := repository; at != filepath.Dir(at); at = filepath.Dir(at) { // a workspace has the whole checkout
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			root = at
			break
		}
	}
	parts := func(c rune) bool { return unicode.IsSpace(c) || strings.ContainsRune("\"'`;|&()<>=$", c) }
	for _, word := range slices.Concat(argv, strings.FieldsFunc(strings.Join(argv, " "), parts)) {
		for _, folder := range []string{repository, root} {
			file := filepath.Join(folder, word)
			if filepath.IsAbs(word) {
				file = filepath.Clean(word)
			}
			if !strings.HasPrefix(file, root+"/") {
				continue
			}
			file, err := filepath.EvalSymlinks(file)
			if err != nil || slices.Contains(files, file) {
				continue
			}
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				files = append(files, file)
			}
		}
	}
	return files
}

// maxProgram bounds the size of a program in a repository, in bytes.
const maxProgram = 1 << 30

// CheckRequests reports what a definition asks for beyond the settings and no operator confirmed.
func (d Definition) CheckRequests(s config.Settings) error {
	asked, err := d.Requests(s)
	if err != nil || len(asked.Requests) == 0 {
		return err
	}
	confirmed, err := BoundsOf(s).Confirmed(asked)
	if err != nil || confirmed {
		return err
	}
	return &RequestError{asked}
}
