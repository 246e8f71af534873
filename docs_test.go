package passbook_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows"
)

// goMod is the output of `go mod edit -json`.
type goMod struct {
	Require []struct {
		Path     string
		Indirect bool
	}
	Tool []struct{ Path string }
}

// direct returns the modules that were chosen: required for an import or for a tool.
func (m goMod) direct() (paths []string) {
	holders := map[string]bool{} // of the modules whose path a tool's begins with, the longest
	for _, t := range m.Tool {
		holder := ""
		for _, r := range m.Require {
			if strings.HasPrefix(t.Path+"/", r.Path+"/") && len(r.Path) > len(holder) {
				holder = r.Path
			}
		}
		holders[holder] = true
	}
	for _, r := range m.Require {
		if !r.Indirect || holders[r.Path] {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

func TestEveryDependencyHasItsReason(t *testing.T) {
	page := read(t, "tools/dependencies.md")
	for heading, dir := range map[string]string{"Passbook": ".", "devserver": "devserver", "tools": "tools",
		"tools/vale": "tools/vale", "tools/golangci": "tools/golangci", "tools/release": "tools/release"} {
		t.Run(heading, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "go", "-C", dir, "mod", "edit", "-json").Output()
			require.NoError(t, err)
			var mod goMod
			require.NoError(t, json.Unmarshal(out, &mod))
			require.NotEmpty(t, mod.direct())
			_, section, ok := strings.Cut(page, "\n## "+heading+"\n")
			require.True(t, ok)
			section, _, _ = strings.Cut(section, "\n## ")
			require.ElementsMatch(t, mod.direct(), firsts(section),
				"tools/dependencies.md has one line for each direct dependency")
		})
	}
}

// firsts are the names of the items of a list that have a licence, a purpose and a reason.
func firsts(list string) []string {
	var out []string
	item := regexp.MustCompile("(?m)^- `(\\S+)` \\([^)]+\\): [^;]+; .+$")
	for _, m := range item.FindAllStringSubmatch(strings.ReplaceAll(list, "\n  ", " "), -1) {
		out = append(out, m[1])
	}
	return out
}

func TestMapShowsEveryFolder(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Map\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\n## ")
	out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files").Output()
	if err != nil {
		t.Skip("no checkout: the map can be compared with what git keeps, and with nothing else")
	}
	there := map[string]bool{}
	for path := range strings.FieldsSeq(string(out)) {
		if dir, _, in := strings.Cut(path, "/"); in {
			there[dir+"/"] = true
		}
	}
	for _, m := range regexp.MustCompile("`([a-z0-9.]+/)`").FindAllStringSubmatch(section, -1) {
		require.DirExists(t, m[1], "the map shows what is not there")
		delete(there, m[1])
	}
	require.Empty(t, there, "folders that the map of CONTRIBUTING.md does not show")
}

func TestLinksHaveTargets(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, page := range append(pages, "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md",
		"examples/README.md", "client/README.md", "test/README.md", "test/bench/README.md", "test/conformance/README.md", "workflows/README.md",
		"rundir/README.md", "tools/dependencies.md") {
		for _, m := range regexp.MustCompile(`\]\(([^)#\s]*)#?([^)\s]*)\)`).FindAllStringSubmatch(read(t, page), -1) {
			target := page
			if strings.Contains(m[1], "://") {
				continue
			}
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s links to %s", page, m[1])
			if m[2] != "" && strings.HasSuffix(target, ".md") {
				require.Contains(t, anchors(read(t, target)), m[2], "%s links to a heading of %s", page, target)
			}
		}
	}
}

// anchors are the links to the headings of a page, as GitHub names them.
func anchors(page string) []string {
	var out []string
	for _, m := range regexp.MustCompile("(?m)^#+ (.+)$").FindAllStringSubmatch(page, -1) {
		plain := regexp.MustCompile(`[^\pL\pN_ -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(plain, " ", "-"))
	}
	return out
}

// One list of browsers is in Go, for the pictures; the other in a script, which runs before there is anything built.
// TestNamedTestsExist: a page names the test of a promise.
func TestNamedTestsExist(t *testing.T) {
	page, err := os.ReadFile("docs/security.md")
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test[A-Za-z]+)`").FindAllStringSubmatch(string(page), -1)
	require.NotEmpty(t, named)
	for _, n := range named {
		require.NoError(t, exec.Command("git", "grep", "-q", "^func "+n[1]+"(", "--", "*_test.go").Run(), n[1])
	}
}

func TestScriptAndPicturesUseTheSameFolder(t *testing.T) {
	_, list, ok := strings.Cut(read(t, "internal/browser/find.go"), "var knownPrograms = []string{")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "\n}")
	names := regexp.MustCompile(`"(.+)"`).FindAllStringSubmatch(list, -1)
	require.NotEmpty(t, names)
	script := read(t, "scripts/chromium")
	for _, m := range names {
		require.Contains(t, script, m[1])
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

func TestSearchAttributesAreDocumented(t *testing.T) {
	page := read(t, "docs/cluster.md")
	for name, kind := range workflows.SearchAttributes() {
		require.Contains(t, page, fmt.Sprintf("--sa %s=%s", name, kind))
	}
}

// A closed execution keeps its search attributes: after a reset the previous one is still paused.
func TestQueriesForLiveRunsNameOpenExecutions(t *testing.T) {
	query := regexp.MustCompile("`([^`\\n]*Passbook(?:Status|Stage|Score|CostUSD) *(?:=|!=|<|>|IN|STARTS_WITH) " +
		"*[\"'(0-9][^`\\n]*)`")
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	found := 0
	for _, page := range append(pages, "README.md") {
		for _, m := range query.FindAllStringSubmatch(read(t, page), -1) {
			if !closedOnly(m[1]) {
				found++
				require.Contains(t, m[1], `ExecutionStatus = "Running"`, page)
			}
		}
	}
	require.NotZero(t, found, "no page documents a query")
}

// closedOnly reports whether a query asks for statuses that only closed runs have.
func closedOnly(query string) bool {
	clause := regexp.MustCompile(`PassbookStatus *(?:=|IN|STARTS_WITH) *(\([^)]*\)|"[^"]*")`).FindStringSubmatch(query)
	if clause == nil {
		return false
	}
	words := strings.FieldsFunc(clause[1], func(r rune) bool { return strings.ContainsRune(`(), "`, r) })
	return !slices.ContainsFunc(words, func(word string) bool { return !run.Status(word).Closed() })
}

// TestFilesOfARunDirectoryAreReserved: no artifact can have the name of a file or folder that the page lists, neither
// in a definition nor in an event.
func TestFilesOfARunDirectoryAreReserved(t *testing.T) {
	_, list, ok := strings.Cut(read(t, "docs/run-directory.md"), "\n## Files\n")
	require.True(t, ok)
	list, _, _ = strings.Cut(list, "\nBelow ")
	rows := regexp.MustCompile("(?m)^- `([a-z_.]+)/?[`/]").FindAllStringSubmatch(list, -1)
	require.Greater(t, len(rows), 12)
	for _, m := range rows {
		_, problems := pipeline.Parse("p.yaml", []byte("pipeline: p\nartifact: {file: "+m[1]+"}\n"), fstest.MapFS{})
		require.Contains(t, problems.Error(), "is a file that the run directory keeps for itself", m[1])
		_, err := run.ParseEvent([]byte(`{"kind":"run.start","payload":{"artifact":{"file":"` + m[1] + `"}}}`))
		require.ErrorContains(t, err, "is not a name of a file in a run directory", m[1])
	}
}

// TestComposeFile: a worker that may not change the namespace depends on the search attributes that the set-up of the
// cluster registers, and a stop of the container waits for the calls of the worker.
func TestComposeFile(t *testing.T) {
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Grace       string `yaml:"stop_grace_period"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &compose))
	var wanted []string
	for name, kind := range workflows.SearchAttributes() {
		wanted = append(wanted, name+"="+kind.String())
	}
	registered := compose.Services["namespace"].Environment["SEARCH_ATTRIBUTES"]
	require.ElementsMatch(t, wanted, strings.Fields(registered))
	require.Contains(t, read(t, "Dockerfile"), " PASSBOOK_DRAIN="+compose.Services["worker"].Grace+"\n")
}
