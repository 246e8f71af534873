// Package scaffold writes a small pipeline with complete prompts for a repository: the templates of `starter init`.
//
// A kind of pipeline is a row of [Kinds] and a folder of the same name in templates.
package scaffold

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// Source is what a pipeline works on.
type Source int

// Sources, each with less than the one before.
const (
	Repository Source = iota // a git repository
	Folder                   // a folder, or a git repository
	Nothing                  // the task only
)

// Kind is a kind of pipeline.
type Kind struct {
	Name  string
	About string // what it does, for a list
	Task  string // an example
	Needs Source
}

// Kinds are all kinds, the usual ones first.
func Kinds() []Kind {
	return []Kind{
		{"review", "plan a change, implement it, review it until it is approved",
			"Add a --json flag to the list command", Repository},
		{"bugfix", "reproduce a bug with a failing test, fix it, review the fix",
			"The total is wrong when the last line has no line feed", Repository},
		{"migrate", "plan a migration, carry it out step by step, review it", "Replace the logger by log/slog", Repository},
		{"page", "write an HTML page, revise it until a reader has no question left",
			"Explain to new users how to restore a backup", Nothing},
		{"turns", "work in turns until the task is done and the tests pass",
			"Write the program that README.md describes", Folder},
	}
}

// Adopt is the kind that continues a conversation. `starter init` does not offer it.
func Adopt() Kind { return Kind{Name: "adopt", Needs: Repository} }

// Options are what a pipeline is written for.
type Options struct {
	Kind   Kind
	Agent  string   // name of a preset
	Judges Judges   // of Verify
	Setup  []string // shell commands that prepare a checkout
	Verify string   // shell command that passes if the work is correct; empty: none is known
	Git    bool     // the source is a git repository
	Base   string   // of [Adopt]: the commit before the work
	// the result is a pull request, which the run follows
	PullRequests bool
	Name         string // what names the definition to a command: its name in the repository, or its path
}

// File is one file to write.
type File struct {
	Path string // slash-separated, below the folder of the pipeline
	Data []byte
}

// Definition is the name of the pipeline file.
const Definition = "pipeline.yaml"

// Files renders the files of a pipeline, the definition first.
func Files(o Options) ([]File, error) {
	root := path.Join("templates", o.Kind.Name)
	var files []File
	err := fs.WalkDir(templates, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := render(name, o)
		if err != nil {
			return err
		}
		f := File{strings.TrimPrefix(name, root+"/"), data}
		if f.Path == Definition {
			files = append([]File{f}, files...)
		} else {
			files = append(files, f)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("render the pipeline %s: %w", o.Kind.Name, err)
	}
	return files, nil
}

// render expands [[ ]]: prompts contain {{ }}.
func render(name string, o Options) ([]byte, error) {
	text, err := templates.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Delims("[[", "]]").Parse(string(text))
	if err != nil {
		return nil, err
	}
	setup := sequence(o.Setup)
	if len(o.Setup) == 1 {
		setup = quoted(o.Setup[0])
	}
	var out bytes.Buffer
	err = t.Execute(&out, map[string]any{
		"Agent": o.Agent, "Task": o.Kind.Task, "Git": o.Git, "Base": o.Base,
		"Name": filepath.ToSlash(o.Name), "Verify": o.Verify, "Scripts": sequence(o.Judges.Scripts),
		"Tests":      sequence(append(slices.Clone(o.Judges.Tests), o.Judges.Scripts...)),
		"VerifyYAML": quoted(o.Verify), "Setup": setup,
	})
	return out.Bytes(), err
}
