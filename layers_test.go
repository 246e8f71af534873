package passbook_test

import (
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
	{"storage", []string{"internal/projector"}},
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
	{"programs", []string{"test/browser", "test/histories", "test/invariants", "test/modelapi", "test/usage"}},
	{"programs", []string{"test/realcli"}},
	{"programs", []string{"test/bench", "test/conformance", "test/e2e", "test/simulation"}},
}

func TestImportsGoDown(t *testing.T) {
	require.Empty(t, violations(list(t), packageLayers))
	for _, planted := range [][2]string{ // a package, and an import that it must not have
		{"internal/store", module + "/workflows"},
		{"run", "os"},
		{"workflows", "go.temporal.io/sdk/client"},
		{"internal/store", "go.temporal.io/sdk/client"},
		{"internal/operations", module + "/activities"},
	} {
		require.NotEmpty(t, wrongImport(packageLayers, planted[0], planted[1]), planted)
	}
}

func TestArchitecturePageListsTheLayers(t *testing.T) {
	_, section, ok := strings.Cut(read(t, "docs/architecture.md"), "## Packages\n")
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
		for _, banned := range []string{module + "/internal/cli", module + "/internal/report", "charm"} {
			require.NotContains(t, d, banned, "the worker imports %s", d)
		}
	}
}
