package operations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestPipelineIsFoundByItsNameFromAnyFolderOfTheRepository(t *testing.T) {
	repo := repository(t)
	write(t, repo, map[string]string{
		"passbook/review/pipeline.yaml": "pipeline: review\n", "passbook/bugfix/pipeline.yaml": "pipeline: bugfix\n",
		"src/deep/own.yaml": "", "src/passbook/inner/pipeline.yaml": "", "src/deep/review/note.md": "",
	})
	t.Chdir(filepath.Join(repo, "src", "deep"))
	for name, want := range map[string]string{
		"review":   "../../passbook/review/pipeline.yaml", // a folder with that name is none
		"inner":    "../passbook/inner/pipeline.yaml",
		"own.yaml": "own.yaml",
		"no.yaml":  "no.yaml", // reported when it is read
	} {
		file, err := PipelineFile(name)
		require.NoError(t, err, name)
		require.Equal(t, want, file)
	}
	_, err := PipelineFile("revew")
	require.EqualError(t, err, "revew is neither a file nor a pipeline of this repository: "+
		"the pipelines here are bugfix, inner, review; or name a file")
	_, err = PipelineFile("")
	require.EqualError(t, err,
		"name the pipeline to run: the pipelines here are bugfix, inner, review; or name a file")
	t.Chdir(t.TempDir())
	_, err = PipelineFile("review")
	require.ErrorContains(t, err, "there is no pipeline here: write one with starter init, or name a file")
}

// TestNewRunDir: the same start finds its open run; another task, and the same one when that run has ended, get new
// directories.
func TestNewRunDir(t *testing.T) {
	root := t.TempDir()
	dirOf := func(task, area string) string {
		def := Definition{Home: "/home/repo", Task: task, Plan: &pipeline.Plan{Pipeline: "review"}}
		if area != "" {
			def.Plan.Inputs = []pipeline.Input{{Name: "area", Value: &area}}
		}
		return def.NewRunDir(t.Context(), root)
	}
	first := dirOf("Add a --json flag, please!", "")
	require.Regexp(t, `/review/add-a-json-flag-please-[0-9a-f]{8}$`, first)
	require.Equal(t, first, dirOf("Add a --json flag, please!", ""), "it has not begun")
	require.NotEqual(t, first, dirOf("Add a --json flag, please!", "docs/"))
	require.Regexp(t, `/review/remove-a-flag-[0-9a-f]{8}$`, dirOf("Remove a flag", ""))
	require.Regexp(t, `/review/review-[0-9a-f]{8}$`, dirOf("", ""))
	long := filepath.Base(dirOf("Rewrite the whole documentation of the import so that newcomers understand it", ""))
	require.LessOrEqual(t, len(long), maxWords+9)

	become := func(status run.Status) {
		m := rundir.Meta{}
		m.Status = string(status)
		require.NoError(t, os.WriteFile(filepath.Join(first, rundir.MetaFile), must(disk.Marshal(m))(t), 0o600))
	}
	begun(t, first, "r-1", "begun")
	become(run.Running)
	require.Equal(t, first, dirOf("Add a --json flag, please!", ""), "it is open")
	become(run.Done)
	require.Equal(t, first+"-2", dirOf("Add a --json flag, please!", ""))
}

// A run that is there keeps the inputs that a start or an amendment does not name.
func TestGiveKeepsTheInputsOfTheRunInItsDirectory(t *testing.T) {
	value, level := "3", pipeline.Input{Name: "level", Type: pipeline.InputNumber}
	given := level
	given.Value = &value
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(rundir.PlanFile)), 0o755))
	plan, err := json.Marshal(pipeline.Plan{Version: pipeline.PlanVersion, Inputs: []pipeline.Input{given}})
	require.NoError(t, err)
	require.NoError(t, disk.WriteFile(filepath.Join(dir, rundir.PlanFile), plan))
	def := Definition{Plan: &pipeline.Plan{Inputs: []pipeline.Input{level}}}
	require.ErrorContains(t, def.Give(nil, ""), "input level has no value")
	require.NoError(t, def.Give(nil, dir))
	require.Equal(t, "3", *def.Plan.Inputs[0].Value)
	require.NoError(t, def.Give(map[string]string{"level": "4"}, dir))
	require.Equal(t, "4", *def.Plan.Inputs[0].Value)
}
