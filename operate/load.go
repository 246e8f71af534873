// Package operate starts runs and speaks to them: what the CLI does with a live run, as library calls. Each call is idempotent; what a run's
// state does not allow is a typed error that names the next command that works.
package operate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
)

// Definition is a definition that was read and found good.
type Definition struct {
	Folder fs.FS // the definition's own
	Source []byte
	Parsed *pipeline.Definition
	Plan   *pipeline.Plan
	Home   string // the definition's folder on disk; empty: it comes with the program
	Task   string // what this run is to do, in words; empty: what the pipeline says
	WorkOn string // the repository or folder to work on, where it is not beside the definition
	Follow *Follow

	Schedule run.Scheduled // the occurrence that starts it; zero: a person does
	// Warnings are what was found before the start; they go into the run's log.
	Warnings []string
	// Found are those of them that are errors; they go into the run's record of errors.
	Found []run.ErrorNoted
}

// Load reads the definition of that name in its folder; shown is the name for messages. Problems are all of them, with file and line.
func Load(folder fs.FS, name, shown string) (Definition, error) {
	src, err := fs.ReadFile(folder, name)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = &fs.PathError{Op: "open", Path: shown, Err: path.Err} // as it was given
	}
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline: %w", err)
	}
	parsed, problems := pipeline.Parse(shown, src, folder)
	if len(problems) > 0 {
		return Definition{}, problems
	}
	return Definition{Folder: folder, Source: src, Parsed: parsed, Plan: pipeline.Expand(parsed)}, nil
}

// LoadFile reads a definition from disk. Files that it names are looked up beside it, and cannot lead out of there.
func LoadFile(name string) (Definition, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline: %w", err)
	}
	def, err := Load(root.FS(), filepath.Base(name), name)
	def.Home = filepath.Dir(name)
	return def, err
}

// ErrNoWorkspace says that a source was named for a pipeline that works on none.
var ErrNoWorkspace = errors.New("--dirty and --source speak of a workspace, and the pipeline has none")

// Ask sets what a run is to do, what it works on, and what becomes of changes there that are not committed. Empty: as the definition says.
func (d *Definition) Ask(task, source, dirty string) error {
	d.Task, d.WorkOn = task, source
	if d.Plan.Workspace == nil && (source != "" || dirty != "") {
		return ErrNoWorkspace
	}
	if dirty != "" {
		d.Plan.Workspace.Dirty = dirty
	}
	return nil
}

// Stored are the digests of a run's inputs.
type Stored struct {
	Definition string
	Plan       string
	Inputs     string
	Policy     string
	Seed       *run.Blob
	Workspace  *run.Workspace
}

// Upload puts everything a run is given into the store: the definition, the plan, prompts, files, the seed of the artifact.
func (d Definition) Upload(ctx context.Context, s *store.Store) (Stored, error) {
	var st Stored
	source, err := s.Put(ctx, d.Source)
	if err != nil {
		return st, err
	}
	plan, err := s.PutJSON(ctx, d.Plan)
	if err != nil {
		return st, err
	}
	policy, err := s.PutJSON(ctx, Policy{Version: 1, Agents: d.Plan.Agents, Budget: d.Plan.Budget, Definition: string(source)})
	if err != nil {
		return st, err
	}
	st.Definition, st.Plan, st.Policy = string(source), string(plan), string(policy)
	return st, d.uploadFiles(ctx, s, &st)
}

func (d Definition) uploadFiles(ctx context.Context, s *store.Store, st *Stored) error {
	manifest := rundir.Inputs{Version: 1}
	files := d.files()
	for i, name := range files {
		report(ctx, "Storing the inputs", i, len(files))
		data, err := fs.ReadFile(d.Folder, name)
		if err != nil {
			return err
		}
		digest, err := s.Put(ctx, data)
		if err != nil {
			return err
		}
		manifest.Files = append(manifest.Files, rundir.InputFile{Path: name, Digest: string(digest), Size: int64(len(data))})
		if d.Plan.Artifact != nil && d.Plan.Artifact.Seed == name {
			if err := d.seed(ctx, s, data, st); err != nil {
				return err
			}
		}
	}
	inputs, err := s.PutJSON(ctx, manifest)
	st.Inputs = string(inputs)
	return err
}

// seed stores the artifact that the run starts from, in the form in which artifacts are kept.
func (d Definition) seed(ctx context.Context, s *store.Store, data []byte, st *Stored) error {
	text := pass.Stored(string(data))
	digest, err := s.Put(ctx, text)
	if err != nil {
		return err
	}
	st.Seed = &run.Blob{Digest: string(digest), Size: int64(len(text)), Chars: len([]rune(string(text)))}
	return nil
}

// files are the paths that the definition names, each once, relative to its folder.
func (d Definition) files() []string {
	var out []string
	add := func(p string) {
		if p != "" && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if d.Plan.Artifact != nil {
		add(d.Plan.Artifact.Seed)
	}
	for _, r := range d.Plan.Roles {
		add(r.Prompt)
	}
	for _, f := range d.Plan.AlwaysRead {
		add(f.Path)
	}
	for _, set := range d.Plan.Sets {
		for _, f := range set.Files {
			add(f.Path)
		}
	}
	return out
}

// LoadRun reads the definition that a run was started with, from its directory.
func LoadRun(dir rundir.Dir) (Definition, error) {
	src, err := os.ReadFile(dir.Path(rundir.DefinitionFile))
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline of the run: %w", err)
	}
	root, err := os.OpenRoot(dir.Path(rundir.InputsDir))
	if err != nil {
		return Definition{}, fmt.Errorf("read the inputs of the run: %w", err)
	}
	parsed, problems := pipeline.Parse(dir.Path(rundir.DefinitionFile), src, root.FS())
	if len(problems) > 0 {
		return Definition{}, problems
	}
	return Definition{Folder: root.FS(), Source: src, Parsed: parsed, Plan: pipeline.Expand(parsed)}, nil
}
