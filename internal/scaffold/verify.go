package scaffold

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
)

// Verifier is a command that tests a repository, and the file that suggests it.
type Verifier struct{ Command, From string }

// Verify proposes the command that tests the software in a folder. Without a known build file it is empty.
func Verify(dir string) Verifier {
	for _, build := range []struct {
		file    string
		command func(text []byte) string
	}{
		{"go.mod", always("go test ./...")},
		{"Cargo.toml", always("cargo test")},
		{"package.json", func(text []byte) string { return npm(dir, text) }},
		{"pyproject.toml", always("pytest")},
		{"pytest.ini", always("pytest")},
		{"setup.py", always("pytest")},
		{"Makefile", makeTest},
	} {
		text, err := os.ReadFile(filepath.Join(dir, build.file))
		if err != nil {
			continue
		}
		if command := build.command(text); command != "" {
			return Verifier{command, build.file}
		}
	}
	return Verifier{}
}

func always(command string) func([]byte) string { return func([]byte) string { return command } }

// npm returns the command for a package with a test script. A new checkout has no node_modules.
func npm(dir string, text []byte) string {
	var p struct {
		Scripts         map[string]string
		Dependencies    map[string]any
		DevDependencies map[string]any
	}
	if json.Unmarshal(text, &p) != nil || p.Scripts["test"] == "" || noTest.MatchString(p.Scripts["test"]) {
		return ""
	}
	if len(p.Dependencies)+len(p.DevDependencies) == 0 {
		return "npm test"
	}
	if _, err := os.Stat(filepath.Join(dir, "package-lock.json")); err == nil {
		return "npm ci && npm test"
	}
	return "npm install && npm test"
}

var (
	noTest     = regexp.MustCompile(`no test specified`) // what `npm init` writes
	testTarget = regexp.MustCompile(`(?m)^test\s*:([^=]|$)`)
)

func makeTest(text []byte) string {
	if testTarget.Match(text) {
		return "make test"
	}
	return ""
}
