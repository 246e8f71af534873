package scaffold

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/pelletier/go-toml/v2"
)

var (
	requirements = []string{"requirements.txt", "requirements-dev.txt", "requirements-test.txt", "requirements_dev.txt",
		"dev-requirements.txt", "test-requirements.txt"}
	pytestFiles = []string{"pytest.ini", "conftest.py", "tests/conftest.py", "test/conftest.py"}
)

// python returns the commands of a Python project. Programs run from .venv, whichever tool has made it: a shell that
// has not activated it does not find them.
func python(p place) (test, setup string) {
	runner := p.pythonRunner()
	setup = p.pythonSetup(strings.Contains(runner, "pytest"))
	switch {
	case runner == "":
		return "", p.command(setup)
	case setup != "":
		return ".venv/bin/python -m " + runner, p.command(setup)
	case runner == "pytest":
		return runner, ""
	}
	return "python3 -m " + runner, ""
}

// pythonRunner returns the module that runs the tests: pytest where it is configured, installed or needed. Empty: there
// are no tests.
func (p place) pythonRunner() string {
	if p.first(pytestFiles...) != "" || p.names("pytest") || p.first(".venv/bin/pytest") != "" {
		return "pytest"
	}
	tests := p.pythonTests()
	if len(tests) == 0 {
		return ""
	}
	_, err := exec.LookPath("pytest")
	if err == nil && p.pythonSetup(false) == "" {
		return "pytest"
	}
	unittests := slices.DeleteFunc(tests, func(name string) bool { return !strings.Contains(p.text(name), "unittest") })
	if len(unittests) == 0 {
		return "pytest"
	}
	return p.discover(unittests)
}

// names reports whether the project declares or configures a package.
func (p place) names(pkg string) bool {
	files := append([]string{"pyproject.toml", "setup.cfg", "setup.py", "tox.ini"}, requirements...)
	return slices.ContainsFunc(files, func(file string) bool { return strings.Contains(p.text(file), pkg) })
}

// pythonTests returns the files that pytest and unittest discover.
func (p place) pythonTests() []string {
	found, err := doublestar.Glob(sources{os.DirFS(filepath.Join(p.root, p.dir))}, "**/{test*,*_test}.py")
	if err != nil {
		return nil
	}
	return found
}

// discover returns the arguments with which unittest finds its tests: without any, it searches packages only.
func (p place) discover(tests []string) string {
	outside := ""
	for _, name := range tests {
		top := ""
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if p.first(dir+"/__init__.py") == "" {
				top = path.Dir(name)
			}
		}
		if top == "" {
			return "unittest"
		}
		if outside == "" || len(top) < len(outside) {
			outside = top
		}
	}
	return "unittest discover -s " + outside
}

// project is what a pyproject.toml describes.
type project struct {
	BuildSystem map[string]any `toml:"build-system"`
	Project     *struct {
		Optional map[string]any `toml:"optional-dependencies"`
	}
	Tool map[string]any
}

// pythonSetup returns the command that creates .venv; empty if nothing has to be installed.
func (p place) pythonSetup(pytest bool) string {
	var described project
	if toml.Unmarshal([]byte(p.text("pyproject.toml")), &described) != nil {
		described = project{}
	}
	switch {
	case p.first("uv.lock") != "":
		return "uv sync"
	case p.first("poetry.lock") != "" || described.Tool["poetry"] != nil:
		return "POETRY_VIRTUALENVS_IN_PROJECT=true poetry install"
	}
	install, declared := p.pipArguments(described)
	if _, err := exec.LookPath("pytest"); pytest && !declared && (len(install) > 0 || err != nil || p.first(".venv") != "") {
		install = append(install, "pytest")
	}
	if len(install) == 0 {
		return ""
	}
	return "python3 -m venv .venv && .venv/bin/pip install " + strings.Join(install, " ")
}

// pipArguments returns what pip installs, and whether pytest is part of it.
func (p place) pipArguments(described project) (install []string, pytest bool) {
	for _, name := range requirements {
		if text := p.text(name); text != "" {
			install, pytest = append(install, "-r", name), pytest || strings.Contains(text, "pytest")
		}
	}
	switch {
	case described.Project == nil && described.BuildSystem == nil && p.first("setup.py") == "":
		return install, pytest
	case described.Project != nil:
		for _, extra := range []string{"test", "tests", "testing", "dev"} {
			if described.Project.Optional[extra] != nil {
				return append(install, "-e", "'.["+extra+"]'"), pytest || p.names("pytest")
			}
		}
	}
	return append(install, "-e", "."), pytest
}
