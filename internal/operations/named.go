package operations

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// PipelinesDir is the folder of a repository that has its pipelines, each in a folder with its name.
const PipelinesDir = "passbook"

// definitionFile is the file of a pipeline in its folder.
const definitionFile = "pipeline.yaml"

// unknownPipeline reports a name that is neither a file nor a pipeline of the repository; empty: none was given.
func unknownPipeline(name string, pipelines []string) error {
	known := "there is no pipeline here: write one with starter init, or name a file"
	if len(pipelines) > 0 {
		known = "the pipelines here are " + strings.Join(pipelines, ", ") + "; or name a file"
	}
	if name == "" {
		return errors.New("name the pipeline to run: " + known)
	}
	return fmt.Errorf("%s is neither a file nor a pipeline of this repository: %s", name, known)
}

// PipelineFile returns the file of a pipeline that is named by its file, or by its name in this folder or one above.
func PipelineFile(name string) (string, error) {
	if info, err := os.Stat(name); name != "" && err == nil && !info.IsDir() {
		return name, nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	var known []string
	for _, p := range PipelinesOf(here) {
		if p.Name == name {
			if rel, err := filepath.Rel(here, p.File); err == nil {
				return rel, nil
			}
			return p.File, nil
		}
		known = append(known, p.Name)
	}
	if strings.ContainsAny(name, `/\.`) { // it was meant as a file
		return name, nil
	}
	slices.Sort(known)
	return "", unknownPipeline(name, slices.Compact(known))
}

// NamedPipeline is a pipeline of a repository.
type NamedPipeline struct {
	Name string // of its folder
	File string
	Root string // the folder that has its pipelines
}

// PipelinesOf returns the pipelines of a folder and of those above it, up to the root of its repository, the nearest
// first.
func PipelinesOf(folder string) (all []NamedPipeline) {
	for dir := folder; ; dir = filepath.Dir(dir) {
		entries, err := os.ReadDir(filepath.Join(dir, PipelinesDir))
		if err != nil {
			entries = nil // it has none, or not for this user
		}
		for _, e := range entries {
			if file := filepath.Join(dir, PipelinesDir, e.Name(), definitionFile); isRegular(file) {
				all = append(all, NamedPipeline{e.Name(), file, dir})
			}
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return all
		}
	}
}

func isRegular(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular()
}

// NewRunDir returns the directory of a run that names none: that of the open run which was given the same pipeline, task,
// source and inputs, or a new one, whose name has the words of the task.
func (d Definition) NewRunDir(ctx context.Context, runRoot string) string {
	name := cmp.Or(taskWords(d.Task), d.Plan.Pipeline)
	given := []string{d.Home, d.Plan.Pipeline, d.Task}
	if d.Plan.Workspace != nil {
		if source, err := sourceOf(d); err == nil { // the start reports what is wrong with it
			given = append(given, source)
		}
	}
	for _, in := range d.Plan.Inputs {
		if in.Value != nil {
			given = append(given, in.Name, *in.Value)
		}
	}
	first := d.RunDir(ctx, runRoot, fmt.Sprintf("%s-%.8s", name, disk.Digest(fmt.Appendf(nil, "%q", given))))
	for n := 1; ; n++ {
		dir := first
		if n > 1 {
			dir = fmt.Sprintf("%s-%d", first, n)
		}
		at := rundir.At(dir)
		if _, err := at.Claim(); err != nil {
			return dir // new, or the start reports why it cannot be used
		}
		if m, err := at.Meta(); err != nil || !run.Status(m.Status).Closed() {
			return dir
		}
	}
}
