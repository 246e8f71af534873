// Package operations starts and controls runs: what the command line does with a live run, as a library. Package
// client is its public face. Each operation can be repeated. If the state of a run does not allow an operation, the
// typed error names the commands that it allows.
package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Definition is a valid definition with its plan.
type Definition struct {
	Folder fs.FS // of the definition
	Source []byte
	Parsed *pipeline.Definition
	Plan   *pipeline.Plan
	Home   string // the folder on disk; empty: embedded in the program
	Task   string // of the run; empty: as in the pipeline
	WorkOn string // the repository or folder to work on; empty: as in the definition
	Dirty  string // how uncommitted changes there are treated; empty: as in the definition
	Follow *Follow
	Adopt  *Adoption // nil: the first call begins a conversation
	Forge  *Forge    // nil: the run has no issue and no pull request

	Changed Changed // what to do if the run of the directory was given something else

	// Warnings were found before the start. They are written to the run's log.
	Warnings []string
	// Found are the warnings that are errors. They are written to the run's error log.
	Found []run.ErrorNoted

	issue map[string]string // inputs that the issue fills in
}

// Load reads the definition with that name in its folder; shown is the name in messages. The error contains all
// problems, with file and line. prices are those of models; none: the list prices.
func Load(folder fs.FS, name, shown string, prices ...price.Row) (Definition, error) {
	src, err := readRegular(folder, name)
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		err = &fs.PathError{Op: "open", Path: shown, Err: path.Err} // the name that the caller used
	}
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline: %w", err)
	}
	parsed, problems := pipeline.Parse(shown, src, folder, hasPrice(prices)...)
	if len(problems) > 0 {
		return Definition{}, problems
	}
	return Definition{Folder: folder, Source: src, Parsed: parsed, Plan: pipeline.Expand(parsed)}, nil
}

// hasPrice returns what the check of a budget asks; nothing for the list prices.
func hasPrice(prices price.List) []func(model string) bool {
	if len(prices) == 0 {
		return nil
	}
	return []func(string) bool{prices.Has}
}

// readRegular reads a regular file. A pipe would block the command.
func readRegular(folder fs.FS, name string) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	if err != nil {
		return nil, err
	}
	return fs.ReadFile(folder, name)
}

// LoadFile reads a definition from disk. Files that it names are in its folder and cannot lead out of it.
func LoadFile(name string, prices ...price.Row) (Definition, error) {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline: %w", err)
	}
	def, err := Load(root.FS(), filepath.Base(name), name, prices...)
	if err != nil {
		return def, err
	}
	def.Home, err = filepath.Abs(filepath.Dir(name))
	return def, err
}

// ErrNoWorkspace reports a source for a pipeline without a workspace.
var ErrNoWorkspace = errors.New("--dirty and --source apply to a workspace, and the pipeline has none")

// Ask sets the task of a run, its source, and how uncommitted changes there are treated. Empty: as in the definition.
func (d *Definition) Ask(task, source, dirty string) error {
	d.Task, d.WorkOn, d.Dirty = task, source, dirty
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
	Brief      *run.Blob // of the run that it follows up
	Adopted    *run.Adopted
}

// Upload stores all inputs of a run: the definition, the plan, prompts, files, the seed of the artifact.
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
	policy, err := s.PutJSON(ctx,
		Policy{Version: 1, Agents: d.Plan.Agents, Budget: d.Plan.Budget, Env: d.Plan.CommandEnv(),
			Definition: string(source)})
	if err != nil {
		return st, err
	}
	st.Definition, st.Plan, st.Policy = string(source), string(plan), string(policy)
	if f := d.Follow; f != nil && f.Brief != "" {
		brief, err := blobs.Put(ctx, s, []byte(f.Brief))
		if err != nil {
			return st, err
		}
		st.Brief = &brief
	}
	return st, d.uploadFiles(ctx, s, &st)
}

func (d Definition) uploadFiles(ctx context.Context, s *store.Store, st *Stored) error {
	manifest := rundir.Inputs{Version: 1}
	files := d.files()
	for _, name := range files {
		data, err := fs.ReadFile(d.Folder, name)
		if err != nil {
			return err
		}
		digest, err := s.Put(ctx, data)
		if err != nil {
			return err
		}
		manifest.Files = append(manifest.Files, rundir.InputFile{Path: name, Digest: string(digest),
			Size: int64(len(data))})
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

// seed stores the artifact with which the run starts, in the form of stored artifacts.
func (d Definition) seed(ctx context.Context, s *store.Store, data []byte, st *Stored) error {
	text := pass.Stored(string(data))
	digest, err := s.Put(ctx, text)
	if err != nil {
		return err
	}
	st.Seed = &run.Blob{Digest: string(digest), Size: int64(len(text)), Chars: len([]rune(string(text)))}
	return nil
}

// files lists the paths that the definition names, each once, relative to its folder.
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

// LoadRun reads the definition of a run from its directory: the one in force.
func LoadRun(dir rundir.Dir, prices ...price.Row) (Definition, error) {
	name, err := dir.InForce(rundir.DefinitionFile)
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline of the run: %w", err)
	}
	src, err := dir.ReadFile(name)
	if err != nil {
		return Definition{}, fmt.Errorf("read the pipeline of the run: %w", err)
	}
	inputs, err := dir.InForce(rundir.InputsDir)
	if err != nil {
		return Definition{}, fmt.Errorf("read the inputs of the run: %w", err)
	}
	root, err := os.OpenRoot(dir.Path(inputs))
	if err != nil {
		return Definition{}, fmt.Errorf("read the inputs of the run: %w", err)
	}
	parsed, problems := pipeline.Parse(dir.Path(name), src, root.FS(), hasPrice(prices)...)
	if len(problems) > 0 {
		return Definition{}, problems
	}
	return Definition{Folder: root.FS(), Source: src, Parsed: parsed, Plan: pipeline.Expand(parsed)}, nil
}

// Give sets the inputs of the run by name; those of the run in its directory, or of an earlier one, are kept where none is
// given. The error lists all that are missing, unknown or of another type.
func (d *Definition) Give(values map[string]string, dir string) error {
	all, from := map[string]string{}, rundir.At(dir)
	if d.Follow != nil {
		from = d.Follow.Dir
	}
	if from.Root != "" {
		if plan, err := from.Plan(); err == nil {
			for _, in := range plan.Inputs {
				if known := slices.ContainsFunc(d.Plan.Inputs, func(i pipeline.Input) bool { return i.Name == in.Name }); known &&
					in.Value != nil {
					all[in.Name] = *in.Value
				}
			}
		}
	}
	for name, value := range d.issue {
		if slices.ContainsFunc(d.Plan.Inputs, func(i pipeline.Input) bool { return i.Name == name }) {
			all[name] = value
		}
	}
	maps.Copy(all, values)
	if problems := d.Plan.Give(all); len(problems) > 0 {
		return errors.New(strings.Join(problems, "\n"))
	}
	return nil
}
