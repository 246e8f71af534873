package passbook_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layer is a part of a floor whose packages do not import each other.
type layer struct {
	floor   string
	folders []string
}

// house is the table of docs/architecture.md, from the ground up. A package imports only from layers below its own.
var house = []layer{
	{"1", []string{"run", "pipeline"}},
	{"1", []string{"pass", "work"}},
	{"2", []string{"durable", "internal", "process", "redact", "volume"}},
	{"2", []string{"environ", "supervisor"}},
	{"2", []string{"agent", "browser", "config", "repo", "rundir", "store"}},
	{"3", []string{"codec"}},
	{"2", []string{"figures"}},
	{"3", []string{"workflows"}},
	{"3", []string{"activities"}},
	{"4", []string{"local", "operate"}},
	{"4", []string{"serve"}},
	{"4", []string{"doctor"}},
	{"top", []string{"examples"}},
	{"top", []string{"starter"}},
	{"top", []string{"worker"}},
	{"top", []string{"bench", "conformance", "e2e"}},
}

func TestImportsGoDown(t *testing.T) {
	require.Empty(t, violations(list(t), house))
}

// The same checker, shown one wall after another with a hole in it.
func TestAnImportThatGoesUpIsSeen(t *testing.T) {
	for _, row := range []struct {
		name, pkg, imports, want string
	}{
		{"up a floor", "store", module + "/workflows", "store imports workflows, which is not below it"},
		{"up within a floor", "workflows", module + "/activities", "workflows imports activities, which is not below it"},
		{"beside", "run", module + "/pipeline/template", "run imports pipeline/template, which is not below it"},
		{"from a part of a folder", "store/clouds", module + "/rundir", "store/clouds imports rundir, which is not below it"},
		{"disk in a pure package", "run", "os", "run imports os; floor 1 is pure"},
		{"network in a pure package", "pass", "net/http", "pass imports net/http; floor 1 is pure"},
		{"a program in a pure package", "pipeline/template", "os/exec", "pipeline/template imports os/exec; floor 1 is pure"},
		{"Temporal in a pure package", "work", "go.temporal.io/sdk/workflow", "work imports go.temporal.io/sdk/workflow; floor 1 is pure"},
		{"another module in a pure package", "run", "go.yaml.in/yaml/v3", "run imports go.yaml.in/yaml/v3; floor 1 is pure"},
		{"disk in a workflow", "workflows", "os", "workflows imports os; workflow code does no IO of its own"},
		{"a client in a workflow", "workflows", "go.temporal.io/sdk/client", "workflows imports go.temporal.io/sdk/client; workflow code does no IO of its own"},
		{"Temporal below the workflows", "store", "go.temporal.io/sdk/client", "store imports go.temporal.io/sdk/client; only floor 3 and above speak to Temporal"},
		{"a folder without a floor", "attic", "fmt", "attic has no floor: give it one in docs/architecture.md and in house"},
	} {
		t.Run(row.name, func(t *testing.T) {
			planted := goPackage{ImportPath: module + "/" + row.pkg, GoFiles: []string{"planted.go"}, Imports: []string{row.imports}}
			require.Equal(t, []string{row.want}, violations([]goPackage{planted}, house))
		})
	}
}

func TestTheTableIsTheHouse(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(page), "## The house\n")
	require.True(t, ok)
	said := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| (\\d|top) \\| `([a-z0-9]+)/` \\| .+ \\|$").FindAllStringSubmatch(table, -1) {
		said[m[2]] = m[1]
	}
	built := map[string]string{}
	for _, l := range house {
		for _, f := range l.folders {
			built[f] = l.floor
		}
	}
	require.Equal(t, built, said)
}
