package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
)

// all calls f with every kind, agent and source, with and without a command that verifies.
func all(t *testing.T, f func(t *testing.T, o Options, files []File)) {
	for _, k := range Kinds() {
		for _, a := range append(Agents("linux"), Agents("darwin")[1]) {
			for _, verify := range []string{"", `test "$(printf 'it''s')" = it\'s # always`} {
				for _, git := range []bool{true, false} {
					if !git && k.Needs == Repository {
						continue
					}
					name := strings.Join([]string{k.Name, a.Name, map[bool]string{true: "git", false: "folder"}[git],
						map[bool]string{true: "unverified", false: "verified"}[verify == ""]}, "-")
					t.Run(name, func(t *testing.T) {
						o := Options{Kind: k, Agent: a, Verify: verify, Git: git, File: "passbook/x/pipeline.yaml"}
						files, err := Files(o)
						require.NoError(t, err)
						f(t, o, files)
					})
				}
			}
		}
	}
}

func TestEveryPipelineIsValid(t *testing.T) {
	all(t, func(t *testing.T, o Options, files []File) {
		folder := fstest.MapFS{}
		for _, f := range files {
			folder[f.Path] = &fstest.MapFile{Data: f.Data}
		}
		require.Equal(t, Definition, files[0].Path)
		def, problems := pipeline.Parse(Definition, files[0].Data, folder)
		require.Empty(t, problems)
		plan := pipeline.Expand(def)
		require.Equal(t, o.Kind.Name, plan.Pipeline)
		ran := 0
		for _, stage := range plan.Stages {
			for _, round := range stage.Rounds {
				for _, step := range round.Steps {
					if step.Kind == pipeline.KindRun {
						require.Equal(t, o.Verify, step.Run)
						ran++
					}
				}
			}
		}
		require.Equal(t, o.Verify != "" && o.Kind.Name != "page", ran > 0)
		require.Equal(t, o.Kind.Needs != Nothing, plan.Workspace != nil)
		requireComplete(t, o, files)
	})
}

// requireComplete requires that each prompt has the task, an answer and no text of its template.
func requireComplete(t *testing.T, o Options, files []File) {
	t.Helper()
	for _, f := range files {
		text := string(f.Data)
		require.NotContains(t, text, "[[", f.Path)
		require.NotContains(t, text, "\n\n\n", f.Path)
		if strings.HasPrefix(f.Path, "prompts/") {
			require.Contains(t, text, "{{task}}", f.Path)
			require.Contains(t, text, "## Your answer", f.Path)
			require.Equal(t, o.Git && o.Kind.Name != "page" && f.Path != "prompts/plan.md" &&
				f.Path != "prompts/reproduce.md", strings.Contains(text, "{{base}}"), f.Path)
		}
	}
}

func TestEveryTemplateHasARow(t *testing.T) {
	folders, err := fs.ReadDir(templates, "templates")
	require.NoError(t, err)
	var found, want []string
	for _, f := range folders {
		found = append(found, f.Name())
	}
	for _, k := range Kinds() {
		want = append(want, k.Name)
		require.NotEmpty(t, k.About)
		require.NotEmpty(t, k.Task)
	}
	require.ElementsMatch(t, want, found)
}

func TestJudgesOf(t *testing.T) {
	for name, row := range map[string]struct {
		files  []string
		verify string
		want   Judges
	}{
		"unknown": {[]string{"a_test.go"}, "just check", Judges{}},
		"go": {[]string{"x/a_test.go"}, "go vet ./... && go test ./...",
			Judges{Tests: []string{"**/*_test.go"}}},
		"go without":      {[]string{"a.go"}, "go test ./...", Judges{}},
		"of dependencies": {[]string{"node_modules/x/a.test.js"}, "npm ci && npm test", Judges{}},
		"node": {[]string{"src/a.spec.ts"}, "npm test",
			Judges{Tests: []string{"**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs}"}}},
		"make":     {[]string{"Makefile", "tests/a.sh"}, "make test", Judges{[]string{"tests/"}, []string{"Makefile"}}},
		"a script": {[]string{"ci/test.sh"}, "sh ./ci/test.sh --all ../x.sh", Judges{Scripts: []string{"ci/test.sh"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range row.files {
				require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(f)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, f), nil, 0o600))
			}
			require.Equal(t, row.want, JudgesOf(dir, row.verify))
		})
	}
}

func TestTemplatesProtectWhatJudges(t *testing.T) {
	for _, k := range Kinds() {
		if k.Name != "bugfix" && k.Name != "turns" {
			continue
		}
		files, err := Files(Options{Kind: k, Agent: Agents("linux")[0], Verify: "sh test.sh", Git: true,
			File: "passbook/x/pipeline.yaml", Judges: Judges{[]string{"**/*_test.go"}, []string{"test.sh"}}})
		require.NoError(t, err)
		folder := fstest.MapFS{}
		for _, f := range files {
			folder[f.Path] = &fstest.MapFile{Data: f.Data}
		}
		def, problems := pipeline.Parse(Definition, files[0].Data, folder)
		require.Empty(t, problems)
		want := pipeline.Paths{"test.sh"} // the worker writes tests
		if k.Name == "bugfix" {
			want = pipeline.Paths{"**/*_test.go", "test.sh"}
		}
		require.Equal(t, want, def.Workspace.Protect)
		for _, r := range def.Roles {
			require.Equal(t, r.Name != "reproducer", r.Protected(), r.Name)
		}
	}
}

func TestVerify(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  Verifier
	}{
		"nothing": {nil, Verifier{}},
		"go": {map[string]string{"go.mod": "module m", "Makefile": "test:\n"},
			Verifier{"go test ./...", "go.mod"}},
		"rust":       {map[string]string{"Cargo.toml": ""}, Verifier{"cargo test", "Cargo.toml"}},
		"python":     {map[string]string{"pyproject.toml": ""}, Verifier{"pytest", "pyproject.toml"}},
		"old python": {map[string]string{"setup.py": ""}, Verifier{"pytest", "setup.py"}},
		"make": {map[string]string{"Makefile": "all:\n\ntest: all\n\t./t\n"},
			Verifier{"make test", "Makefile"}},
		"make without it": {map[string]string{"Makefile": "test := x\ntests:\n"}, Verifier{}},
		"node": {map[string]string{"package.json": `{"scripts":{"test":"node t"}}`},
			Verifier{"npm test", "package.json"}},
		"node, no test": {map[string]string{
			"package.json": `{"scripts":{"test":"echo \"Error: no test specified\""}}`}, Verifier{}},
		"node, unreadable": {map[string]string{"package.json": `{`, "Makefile": "test:"},
			Verifier{"make test", "Makefile"}},
		"node with dependencies": {map[string]string{
			"package.json": `{"scripts":{"test":"jest"},"devDependencies":{"jest":"1"}}`},
			Verifier{"npm install && npm test", "package.json"}},
		"node with a lock": {map[string]string{"package-lock.json": "",
			"package.json": `{"scripts":{"test":"jest"},"dependencies":{"jest":"1"}}`},
			Verifier{"npm ci && npm test", "package.json"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range row.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			require.Equal(t, row.want, Verify(dir))
		})
	}
}

func TestWriteOverwritesNothing(t *testing.T) {
	files := []File{{"pipeline.yaml", []byte("p")}, {"prompts/a.md", []byte("a")}, {"prompts/b.md", []byte("b")}}
	dir := filepath.Join(t.TempDir(), "new", "pipeline")
	require.NoError(t, Write(dir, files))
	text, err := os.ReadFile(filepath.Join(dir, "prompts", "b.md"))
	require.NoError(t, err)
	require.Equal(t, "b", string(text))

	require.NoError(t, os.Remove(filepath.Join(dir, "prompts", "a.md")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "prompts", "b.md"), []byte("mine"), 0o600))
	var conflict *ConflictError
	require.ErrorAs(t, Write(dir, files), &conflict)
	require.Equal(t, []string{filepath.Join(dir, "pipeline.yaml"), filepath.Join(dir, "prompts", "b.md")},
		conflict.Paths)
	require.NoFileExists(t, filepath.Join(dir, "prompts", "a.md"))
	text, err = os.ReadFile(filepath.Join(dir, "prompts", "b.md"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

func TestWriteNamesFilesInPlaceOfFolders(t *testing.T) {
	root := t.TempDir()
	file, link := filepath.Join(root, "file"), filepath.Join(root, "link")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Symlink(filepath.Join(root, "nowhere"), link))
	for _, in := range []string{file, link} {
		var conflict *ConflictError
		require.ErrorAs(t, Write(filepath.Join(in, "below"), []File{{"a", nil}, {"b/c", nil}}), &conflict)
		require.Equal(t, []string{in}, conflict.Paths)
	}
}

// TestWriteIsAllOrNothing: a failure in the middle leaves no file.
func TestWriteIsAllOrNothing(t *testing.T) {
	root := t.TempDir()
	name := strings.Repeat("x", 300) // too long for any file system
	err := Write(filepath.Join(root, "new"), []File{{"a", nil}, {"b/c", nil}, {name, nil}})
	require.ErrorIs(t, err, syscall.ENAMETOOLONG)
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestExampleHasThePromptsOfItsTemplate, for a repository without a known command.
func TestExampleHasThePromptsOfItsTemplate(t *testing.T) {
	files, err := Files(Options{Kind: Kinds()[0], Agent: Agents("linux")[0], Git: true})
	require.NoError(t, err)
	for _, f := range files[1:] {
		example, err := os.ReadFile(filepath.Join("..", "..", "examples", "review", f.Path))
		require.NoError(t, err)
		require.Equal(t, string(f.Data), string(example), f.Path)
	}
}
