package passbook_test

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layer is a set of packages that do not import each other.
type layer struct {
	name     string
	packages []string
}

// packageLayers lists the packages of each layer, bottom up. A package imports only from layers below its own.
var packageLayers = []layer{
	{"pure", []string{"internal/terminal"}},
	{"pure", []string{"run"}},
	{"pure", []string{"internal/adapter", "internal/agent/limits", "internal/price"}},
	{"pure", []string{"pipeline"}},
	{"pure", []string{"internal/pass", "activities/contract"}},
	{"storage", []string{"internal/folder"}},
	{"storage", []string{"internal/awake", "internal/build", "internal/durable", "internal/process", "internal/redact",
		"internal/regular", "internal/sandbox", "internal/scaffold", "internal/shell", "internal/testenv",
		"internal/volume"}},
	{"storage", []string{"internal/keyfile", "internal/layout", "internal/telemetry"}},
	{"storage", []string{"internal/certs", "internal/journal", "internal/object"}},
	{"storage", []string{"internal/environ", "internal/supervisor"}},
	{"storage", []string{"internal/sessions"}},
	{"storage", []string{"internal/agent", "internal/browser", "config", "internal/repo", "rundir", "internal/store"}},
	{"storage", []string{"internal/records", "internal/agent/probe", "internal/format"}},
	{"storage", []string{"internal/projector", "internal/traces"}},
	{"storage", []string{"internal/fsck"}},
	{"storage", []string{"internal/secrets", "internal/grants", "internal/identity", "internal/links"}},
	{"storage", []string{"internal/accounts", "internal/blobs", "internal/workspace"}},
	{"storage", []string{"internal/calls"}},
	{"storage", []string{"internal/costs"}},
	{"engine", []string{"internal/codec"}},
	{"views", []string{"internal/figures"}},
	{"views", []string{"internal/view"}},
	{"views", []string{"internal/evidence"}},
	{"views", []string{"internal/live"}},
	{"views", []string{"internal/report", "internal/watch"}},
	{"engine", []string{"workflows"}},
	{"engine", []string{"internal/history"}},
	{"engine", []string{"activities"}},
	{"control", []string{"internal/local", "internal/operations"}},
	{"control", []string{"internal/connect", "internal/hosting"}},
	{"control", []string{"client", "workerhost"}},
	{"control", []string{"internal/api", "internal/doctor", "internal/workercmd"}},
	{"programs", []string{"examples"}},
	{"programs", []string{"internal/mcp"}},
	{"programs", []string{"internal/console"}},
	{"programs", []string{"internal/cli"}},
	{"programs", []string{"starter"}},
	{"programs", []string{"worker"}},
	{"programs", []string{"test/browser", "test/histories", "test/modelapi"}},
	{"programs", []string{"test/realcli"}},
	{"programs", []string{"test/bench", "test/conformance", "test/e2e", "test/simulation"}},
}

func TestImportsGoDown(t *testing.T) {
	require.Empty(t, violations(list(t), packageLayers))
}

// The checker reports each kind of violation.
func TestUpwardImportIsFound(t *testing.T) {
	for _, row := range []struct {
		name, pkg, imports, want string
	}{
		{"up a layer", "internal/store", module + "/workflows",
			"internal/store imports workflows, which is not below it"},
		{"up within the engine", "workflows", module + "/activities",
			"workflows imports activities, which is not below it"},
		{"beside", "run", module + "/pipeline/template", "run imports pipeline/template, which is not below it"},
		{"from a subpackage", "internal/store/clouds", module + "/rundir",
			"internal/store/clouds imports rundir, which is not below it"},
		{"disk in a pure package", "run", "os", "run imports os; the layer is pure"},
		{"network in a pure package", "internal/pass", "net/http", "internal/pass imports net/http; the layer is pure"},
		{"a program in a pure package", "pipeline/template", "os/exec",
			"pipeline/template imports os/exec; the layer is pure"},
		{"Temporal in a pure package", "activities/contract", "go.temporal.io/sdk/workflow",
			"activities/contract imports go.temporal.io/sdk/workflow; the layer is pure"},
		{"another module in a pure package", "run", "go.yaml.in/yaml/v3",
			"run imports go.yaml.in/yaml/v3; the layer is pure"},
		{"disk in a workflow", "workflows", "os", "workflows imports os; workflow code does no IO of its own"},
		{"a client in a workflow", "workflows", "go.temporal.io/sdk/client",
			"workflows imports go.temporal.io/sdk/client; workflow code does no IO of its own"},
		{"Temporal below the engine", "internal/store", "go.temporal.io/sdk/client",
			"internal/store imports go.temporal.io/sdk/client; only the engine and the layers above it use Temporal"},
		{"library code from the activities", "internal/operations", module + "/activities",
			"internal/operations imports activities; only internal/hosting, test/bench, test/e2e may"},
		{"no layer", "internal/misc", "fmt",
			"internal/misc has no layer: add it to packageLayers"},
	} {
		t.Run(row.name, func(t *testing.T) {
			planted := goPackage{ImportPath: module + "/" + row.pkg, GoFiles: []string{"planted.go"},
				Imports: []string{row.imports}}
			require.Equal(t, []string{row.want}, violations([]goPackage{planted}, packageLayers))
		})
	}
}

func TestArchitecturePageListsTheLayers(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(page), "## Packages\n")
	require.True(t, ok)
	var documented, built []string
	for _, m := range regexp.MustCompile(`(?m)^- \*\*(\w+)\*\*`).FindAllStringSubmatch(section, -1) {
		documented = append(documented, m[1])
	}
	for _, l := range slices.Backward(packageLayers) {
		if !slices.Contains(built, l.name) {
			built = append(built, l.name)
		}
	}
	require.Equal(t, built, documented)
}

// TestWorkerDoesNotImportTheCommandLine keeps the terminal's and the reports' libraries out of the worker program.
func TestWorkerDoesNotImportTheCommandLine(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "./worker").Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, module+"/internal/hosting")
	for _, d := range deps {
		for _, banned := range []string{module + "/internal/cli", module + "/internal/report", "charm", "gonum.org/"} {
			require.NotContains(t, d, banned, "the worker imports %s", d)
		}
	}
}
