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

// setups are those of test commands.
var setups = map[string][]string{"": {"npm ci"}, `test "$(printf 'it''s')" = it\'s # always`: {"a", "it's # b"}}

// all calls f with every kind, agent and source, with and without a command that verifies.
func all(t *testing.T, f func(t *testing.T, o Options, files []File)) {
	for _, k := range Kinds() {
		for _, a := range pipeline.Presets() {
			for _, verify := range []string{"", `test "$(printf 'it''s')" = it\'s # always`} {
				for _, git := range []bool{true, false} {
					if !git && k.Needs == Repository {
						continue
					}
					name := strings.Join([]string{k.Name, a.Name, map[bool]string{true: "git", false: "folder"}[git],
						map[bool]string{true: "unverified", false: "verified"}[verify == ""]}, "-")
					t.Run(name, func(t *testing.T) {
						o := Options{Kind: k, Agent: a.Name, Verify: verify, Git: git, Name: "x",
							Setup: setups[verify]}
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
		if plan.Workspace != nil {
			require.Equal(t, pipeline.Commands(o.Setup), plan.Workspace.Setup)
		}
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
	want = append(want, Adopt().Name)
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
		"pnpm": {[]string{"a/__tests__/a.js"}, "cd a && pnpm test", Judges{Tests: []string{"**/__tests__/"}}},
		"unittest": {[]string{"test_a.py", ".venv/a_test.py"}, ".venv/bin/python -m unittest",
			Judges{Tests: []string{"**/test_*.py"}}},
		"maven":    {[]string{"a/src/test/java/A.java", "mvnw"}, "./mvnw test", Judges{[]string{"**/src/test/"}, []string{"mvnw"}}},
		"make":     {[]string{"Makefile", "tests/a.sh"}, "make test", Judges{[]string{"tests/"}, []string{"Makefile"}}},
		"a script": {[]string{"ci/test.sh"}, "sh ./ci/test.sh --all ../x.sh", Judges{Scripts: []string{"ci/test.sh"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, strings.Join(row.files, " "))
			require.Equal(t, row.want, JudgesOf(dir, row.verify))
		})
	}
}

func TestTemplatesProtectWhatJudges(t *testing.T) {
	for _, k := range Kinds() {
		if k.Name != "bugfix" && k.Name != "turns" {
			continue
		}
		files, err := Files(Options{Kind: k, Agent: "claude", Verify: "sh test.sh", Git: true,
			Name: "x", Judges: Judges{[]string{"**/*_test.go"}, []string{"test.sh"}}})
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

// script is a package.json with a test.
const script = `{"scripts":{"test":"jest"}}`

func TestFind(t *testing.T) {
	const venv = "python3 -m venv .venv && .venv/bin/pip install "
	const unittest = "unittest"
	for name, row := range map[string]struct {
		files string // see writeFiles
		want  Commands
	}{
		"nothing": {"README.md", Commands{}},
		"go":      {"go.mod Makefile=test:", Commands{nil, "go test ./...", "go.mod"}},
		"rust":    {"Cargo.toml Cargo.lock", Commands{nil, "cargo test", "Cargo.toml"}},

		"make":                  {`Makefile=all:\n\ntest:all\n`, Commands{nil, "make test", "Makefile"}},
		"make, GNU":             {`GNUmakefile=test:\n`, Commands{nil, "make test", "GNUmakefile"}},
		"make without it":       {`Makefile=test:=x\ntests:\n`, Commands{}},
		"make runs other tools": {"Makefile=test: package.json={} package-lock.json", Commands{[]string{"npm ci"}, "make test", "Makefile"}},

		"gradle, wrapped": {"build.gradle.kts gradlew", Commands{nil, "./gradlew test", "build.gradle.kts"}},
		"gradle":          {"build.gradle", Commands{nil, "gradle test", "build.gradle"}},
		"maven, wrapped":  {"pom.xml mvnw", Commands{nil, "./mvnw test", "pom.xml"}},
		"maven":           {"pom.xml", Commands{nil, "mvn test", "pom.xml"}},

		"node":             {"package.json=" + script, Commands{nil, "npm test", "package.json"}},
		"node, no test":    {`package.json={"scripts":{"test":"no\stest\sspecified"}}`, Commands{}},
		"node, unreadable": {"package.json={ Makefile=test:", Commands{nil, "make test", "Makefile"}},
		"npm without a lock": {`package.json={"scripts":{"test":"jest"},"devDependencies":{"jest":"1"}}`,
			Commands{[]string{"npm install"}, "npm test", "package.json"}},
		"npm":          {"package-lock.json package.json=" + script, Commands{[]string{"npm ci"}, "npm test", "package.json"}},
		"npm, no test": {"package-lock.json package.json={}", Commands{Setup: []string{"npm ci"}}},
		"pnpm": {"pnpm-lock.yaml package.json=" + script,
			Commands{[]string{"pnpm install --frozen-lockfile"}, "pnpm test", "package.json"}},
		"pnpm without a lock": {`package.json={"packageManager":"pnpm@9","scripts":{"test":"x"},"dependencies":{"x":"1"}}`,
			Commands{[]string{"pnpm install"}, "pnpm test", "package.json"}},
		"the key decides": {`pnpm-lock.yaml package-lock.json package.json={"packageManager":"npm@10","scripts":{"test":"x"}}`,
			Commands{[]string{"npm ci"}, "npm test", "package.json"}},
		"yarn 1": {"yarn.lock=#yarn package.json=" + script,
			Commands{[]string{"yarn install --frozen-lockfile"}, "yarn test", "package.json"}},
		"yarn 4": {`yarn.lock=#\n__metadata:\n package.json=` + script,
			Commands{[]string{"yarn install --immutable"}, "yarn test", "package.json"}},
		"a package of a monorepo": {"yarn.lock=#yarn package.json={} go.mod below/package.json=" + script,
			Commands{[]string{"yarn install --frozen-lockfile"}, "cd below && yarn test", "below/package.json"}},
		"a package with its own lock": {"go.mod below/package-lock.json below/package.json=" + script,
			Commands{[]string{"cd below && npm ci"}, "cd below && npm test", "below/package.json"}},
		"nothing below": {"go.mod below/README.md", Commands{nil, "go test ./...", "go.mod"}},

		"pytest in PATH": {"pyproject.toml bin/pytest test_a.py", Commands{nil, "pytest", "pyproject.toml"}},
		"pytest nowhere": {"pytest.ini test_a.py", Commands{[]string{venv + "pytest"}, ".venv/bin/python -m pytest", "pytest.ini"}},
		"pytest of the project": {"setup.cfg .venv/bin/pytest test_a.py=" + unittest,
			Commands{[]string{venv + "pytest"}, ".venv/bin/python -m pytest", "setup.cfg"}},
		"pytest required": {"requirements.txt=pytest bin/pytest test_a.py", Commands{[]string{venv + "-r requirements.txt"},
			".venv/bin/python -m pytest", "requirements.txt"}},
		"pytest configured, not required": {"requirements.txt=x bin/pytest conftest.py", Commands{
			[]string{venv + "-r requirements.txt pytest"}, ".venv/bin/python -m pytest", "requirements.txt"}},
		"pytest of an extra": {`pyproject.toml=[project]\n[project.optional-dependencies]\ntest=["pytest"]`, Commands{
			[]string{venv + "-e '.[test]'"}, ".venv/bin/python -m pytest", "pyproject.toml"}},
		"unittest": {"setup.py test_a.py=" + unittest,
			Commands{[]string{venv + "-e ."}, ".venv/bin/python -m unittest", "setup.py"}},
		"unittest of requirements": {"requirements.txt=x bin/pytest test_a.py=" + unittest, Commands{
			[]string{venv + "-r requirements.txt"}, ".venv/bin/python -m unittest", "requirements.txt"}},
		"unittest of scripts": {"test_a.py=" + unittest, Commands{nil, "python3 -m unittest", "**/test_*.py"}},
		"unittest of a package": {"a/__init__.py a/test_a.py=" + unittest,
			Commands{nil, "python3 -m unittest", "**/test_*.py"}},
		"unittest of a folder": {"tests/b/test_b.py=unittest tests/test_a.py=" + unittest,
			Commands{nil, "python3 -m unittest discover -s tests", "**/test_*.py"}},
		"tests of dependencies": {"pyproject.toml .venv/lib/test_a.py venv/test_b.py", Commands{}},
		"scripts beside make":   {"Makefile=test: test_a.py=" + unittest, Commands{nil, "make test", "Makefile"}},
		"uv":                    {"uv.lock pyproject.toml=pytest", Commands{[]string{"uv sync"}, ".venv/bin/python -m pytest", "pyproject.toml"}},
		"poetry": {`pyproject.toml=[tool.poetry]\n[tool.pytest.ini_options]\n`, Commands{
			[]string{"POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"}, ".venv/bin/python -m pytest", "pyproject.toml"}},
		"python, no test": {"requirements.txt=x", Commands{Setup: []string{venv + "-r requirements.txt"}}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeFiles(t, dir, row.files)
			t.Setenv("PATH", filepath.Join(dir, "bin"))
			require.Equal(t, row.want, Find(dir, "below"))
		})
	}
}

// writeFiles writes files that are separated by spaces: name, or name=text, in which \n and \s are spaces.
func writeFiles(t *testing.T, dir, files string) {
	t.Helper()
	for _, file := range strings.Fields(files) {
		name, text, _ := strings.Cut(file, "=")
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(strings.NewReplacer(`\n`, "\n", `\s`, " ").Replace(text)), 0o700))
	}
}

// TestSetup: that of the ecosystems that a command names, else that of all.
func TestSetup(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, "go.mod requirements.txt=x package-lock.json package.json={}")
	pip := "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
	for test, want := range map[string][]string{
		"go test ./...":                nil,
		"cd x && npm run check":        {"npm ci"},
		"npx jest && python -m pytest": {"npm ci", pip},
		"yarn test":                    nil,
		"make test":                    {"npm ci", pip},
		"./check.sh":                   {"npm ci", pip},
	} {
		require.Equal(t, want, Setup(dir, ".", test), test)
	}
}

func TestInstalls(t *testing.T) {
	for setup, want := range map[string][]string{
		"":                                      nil,
		"cd a && npm ci":                        {"node_modules"},
		"uv sync":                               {".venv"},
		"yarn install & npm ci":                 {"node_modules"},
		"pnpm install; .venv/bin/pip install x": {"node_modules", ".venv"},
	} {
		require.Equal(t, want, Installs([]string{setup}), setup)
	}
}

func TestMissing(t *testing.T) {
	for commands, want := range map[string][]string{
		"":                                  nil,
		"sh x && cd a; true | ls":           nil,
		"no-such-a && sh; A=b no-such-b -x": {"no-such-a", "no-such-b"},
		"no-such-a && no-such-a":            {"no-such-a"},
		".venv/bin/python -m pytest":        nil,
		`sh -c "true; no-such-a"`:           nil,
	} {
		require.Equal(t, want, Missing(commands), commands)
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
	files, err := Files(Options{Kind: Kinds()[0], Agent: "claude", Git: true})
	require.NoError(t, err)
	for _, f := range files[1:] {
		example, err := os.ReadFile(filepath.Join("..", "..", "examples", "review", f.Path))
		require.NoError(t, err)
		require.Equal(t, string(f.Data), string(example), f.Path)
	}
}
