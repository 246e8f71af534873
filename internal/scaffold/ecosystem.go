package scaffold

import (
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/internal/shell"
)

// ecosystem is one way to build and test software. Everything that depends on the ecosystem of a repository is in its
// row of [ecosystems].
type ecosystem struct {
	files    []string                           // any of them identifies it
	programs []string                           // a command that names one of them tests with this ecosystem
	judges   []string                           // globs of the files by which its tests judge
	find     func(p place) (test, setup string) // commands, in the folder and in the root; empty: none
	installs string                             // folder that setup creates
	wraps    bool                               // its targets run the programs of other ecosystems
}

// ecosystems are all of them. Of those that a folder has, the first one with tests counts.
func ecosystems() []ecosystem {
	pytest, pyTests := []string{"pytest", "unittest", "pip", "uv", "poetry"}, []string{"**/test_*.py", "**/*_test.py", "**/conftest.py"}
	java := []string{"**/src/test/"}
	javaScript := []string{"**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs}", "**/__tests__/"}
	return []ecosystem{
		{files: []string{"go.mod"}, programs: []string{"go"}, judges: []string{"**/*_test.go"},
			find: only("go test ./...")},
		{files: []string{"Cargo.toml"}, programs: []string{"cargo"}, judges: []string{"tests/"},
			find: only("cargo test")},
		{files: []string{"package.json"}, programs: []string{"pnpm"}, judges: javaScript, find: pnpm, installs: "node_modules"},
		{files: []string{"package.json"}, programs: []string{"yarn"}, judges: javaScript, find: yarn, installs: "node_modules"},
		{files: []string{"package.json"}, programs: []string{"npm", "npx"}, judges: javaScript, find: npm, installs: "node_modules"},
		{files: append([]string{"pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini"}, requirements...),
			programs: pytest, judges: pyTests, find: python, installs: ".venv"},
		{files: []string{"build.gradle", "build.gradle.kts"}, programs: []string{"gradlew", "gradle"}, judges: java,
			find: wrapped("gradlew", "gradle")},
		{files: []string{"pom.xml"}, programs: []string{"mvnw", "mvn"}, judges: java, find: wrapped("mvnw", "mvn")},
		{files: makefiles, programs: []string{"make"}, judges: []string{"tests/", "test/"}, find: makeTest, wraps: true},
		{files: pyTests, programs: pytest, judges: pyTests, find: python, installs: ".venv"}, // a few scripts, not a project
	}
}

// Commands set up and test the software of a repository. They run in its root.
type Commands struct {
	Setup []string // none: a checkout is ready
	Test  string   // empty: none is known
	From  string   // the file that suggests Test
}

// Find proposes the commands for a folder below the root of a repository, or else for the root.
func Find(root, below string) Commands {
	for _, p := range []place{{root, below}, {root, "."}} {
		for _, e := range ecosystems() {
			from := p.first(e.files...)
			if from == "" {
				continue
			}
			if test, _ := e.find(p); test != "" {
				test = p.command(test)
				return Commands{Setup(root, p.dir, test), test, filepath.Join(p.dir, from)}
			}
		}
	}
	return Commands{Setup: Setup(root, ".", "")}
}

// Setup proposes the commands that prepare a checkout for a test command: those of the ecosystems that it names, or of
// all that the folder has.
func Setup(root, below, test string) []string {
	p, named := place{root, below}, named(test)
	named = slices.DeleteFunc(named, func(e ecosystem) bool { return e.wraps })
	if len(named) == 0 {
		named = ecosystems()
	}
	var all []string
	for _, e := range named {
		if p.first(e.files...) == "" {
			continue
		}
		if _, setup := e.find(p); setup != "" && !slices.Contains(all, setup) {
			all = append(all, setup)
		}
	}
	return all
}

// Installs lists the folders that setup commands create.
func Installs(setup []string) (folders []string) {
	for _, e := range named(strings.Join(setup, " ")) {
		if e.installs != "" && !slices.Contains(folders, e.installs) {
			folders = append(folders, e.installs)
		}
	}
	return folders
}

// named returns the ecosystems that a command names.
func named(test string) []ecosystem {
	words := strings.FieldsFunc(test, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._+-", r)
	})
	return slices.DeleteFunc(ecosystems(), func(e ecosystem) bool {
		return !slices.ContainsFunc(e.programs, func(name string) bool { return slices.Contains(words, name) })
	})
}

// Missing returns the programs of commands that a shell does not find. Programs in the repository are not searched.
func Missing(commands ...string) []string {
	var missing []string
	for _, c := range commands {
		if i := strings.IndexAny(c, "'\"`$(<"); i >= 0 {
			c = c[:i] // what a separator means there takes a parser
		}
		for _, part := range separators.Split(c, -1) {
			words := strings.Fields(assignments.ReplaceAllString(part, ""))
			if len(words) == 0 || !programName.MatchString(words[0]) || slices.Contains(missing, words[0]) {
				continue
			}
			if exec.Command("sh", "-c", `command -v "$1"`, "sh", words[0]).Run() != nil {
				missing = append(missing, words[0])
			}
		}
	}
	return missing
}

var (
	separators  = lazyregexp.New(`[;&|\n]+`)
	assignments = lazyregexp.New(`^\s*(\w+=\S*\s+)+`)
	programName = lazyregexp.New(`^\w[\w.+-]*$`)
)

// place is a folder of a repository.
type place struct{ root, dir string }

// first returns the first file or glob that the folder has, or "".
func (p place) first(names ...string) string {
	for _, name := range names {
		if exists(filepath.Join(p.root, p.dir), name) {
			return name
		}
	}
	return ""
}

func (p place) text(name string) string {
	text, err := os.ReadFile(filepath.Join(p.root, p.dir, name))
	if err != nil {
		return ""
	}
	return string(text)
}

// nearest returns the first folder from this one up to the root that has one of the files.
func (p place) nearest(names ...string) (place, bool) {
	for {
		if p.first(names...) != "" {
			return p, true
		}
		if p.dir == "." {
			return p, false
		}
		p.dir = path.Dir(p.dir)
	}
}

// command returns a command that runs in the folder from the root.
func (p place) command(text string) string {
	if p.dir == "." || text == "" {
		return text
	}
	return shell.Sprintf("cd %s && ", p.dir) + text
}

func only(test string) func(place) (string, string) {
	return func(place) (string, string) { return test, "" }
}

// wrapped prefers the program in the repository that installs the right version.
func wrapped(wrapper, program string) func(place) (string, string) {
	return func(p place) (string, string) {
		if p.first(wrapper) != "" {
			return "./" + wrapper + " test", ""
		}
		return program + " test", ""
	}
}

var (
	makefiles  = []string{"GNUmakefile", "makefile", "Makefile"}
	testTarget = lazyregexp.New(`(?m)^test\s*:([^=]|$)`)
)

func makeTest(p place) (test, setup string) {
	if testTarget.MatchString(p.text(p.first(makefiles...))) {
		return "make test", ""
	}
	return "", ""
}
