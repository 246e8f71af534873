// Package passbook_test checks the whole tree: the direction of imports, the public API, and documentation that must
// match the code.
package passbook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/passbook-run/passbook"

// goPackage is a package as `go list -json` prints it.
type goPackage struct {
	ImportPath string
	Name       string
	GoFiles    []string
	Imports    []string
}

// pure packages compute. io and io/fs are here as interfaces, time for its types and layouts.
var pure = strings.Fields(
	`bytes cmp crypto/sha256 encoding/base64 encoding/hex encoding/json errors fmt hash io io/fs iter maps math math/bits
	net/url path regexp slices sort strconv strings text/tabwriter time unicode unicode/utf8`,
)

// allowed are the imports from outside that a folder may have besides the pure ones.
var allowed = map[string][]string{
	"pipeline": {"go.yaml.in/yaml/v3", "embed", "reflect", "regexp/syntax", "sync",
		"github.com/santhosh-tekuri/jsonschema/v6",
		"github.com/bmatcuk/doublestar/v4", "github.com/santhosh-tekuri/jsonschema/v6/kind"},
	"run":            {"reflect"}, // decodes payloads
	"internal/price": {"embed"},
	"workflows": {
		"go.temporal.io/api/enums/v1", "go.temporal.io/sdk/converter", "go.temporal.io/sdk/log",
		"go.temporal.io/sdk/temporal", "go.temporal.io/sdk/worker", "go.temporal.io/sdk/workflow",
		"math/rand", // inside a side effect
	},
}

// importers are the only packages that may import a package: activities are for a worker, and hold no library code.
var importers = map[string][]string{"activities": {"internal/hosting", "test/bench", "test/e2e"}}

// list asks the go command for every package of this module that is more than tests.
func list(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,GoFiles,Imports", "-deps", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var pkgs []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		require.NoError(t, d.Decode(&p))
		if _, ours := inModule(p.ImportPath); ours && len(p.GoFiles) > 0 {
			pkgs = append(pkgs, p)
		}
	}
	require.Greater(t, len(pkgs), 15, "the go command did not list the module")
	return pkgs
}

// violations reports every import that breaks a rule, one line each.
func violations(pkgs []goPackage, layers []layer) []string {
	var out []string
	for _, p := range pkgs {
		name, _ := inModule(p.ImportPath)
		if level(layers, name) < 0 {
			out = append(out, name+" has no layer: add it to packageLayers")
			continue
		}
		for _, i := range p.Imports {
			if wrong := wrongImport(layers, name, i); wrong != "" {
				out = append(out, wrong)
			}
		}
	}
	return out
}

func wrongImport(layers []layer, name, imported string) string {
	own := level(layers, name)
	if below, ours := inModule(imported); ours {
		if folder(below) != folder(name) && level(layers, below) >= own {
			return fmt.Sprintf("%s imports %s, which is not below it", name, below)
		}
		if only, limited := importers[below]; limited && !slices.Contains(only, folder(name)) {
			return fmt.Sprintf("%s imports %s; only %s may", name, below, strings.Join(only, ", "))
		}
		return ""
	}
	known := slices.Contains(pure, imported) || slices.Contains(allowed[folder(name)], imported)
	switch layer := layers[own].name; {
	case layer == "pure" && !known:
		return fmt.Sprintf("%s imports %s; the layer is pure", name, imported)
	case folder(name) == "workflows" && !known:
		return fmt.Sprintf("%s imports %s; workflow code does no IO", name, imported)
	case slices.Contains([]string{"storage", "views"}, layer) && strings.HasPrefix(imported, "go.temporal.io/"):
		return fmt.Sprintf("%s imports %s; only the engine and the layers above it use Temporal", name, imported)
	}
	return ""
}

// inModule returns a package's path inside this module.
func inModule(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

// folder returns the package of the table that a package belongs to: itself, or the one above it.
func folder(name string) string {
	parts := strings.Split(name, "/")
	depth := 1
	if slices.Contains([]string{"internal", "test"}, parts[0]) || name == "activities/contract" {
		depth = 2
	}
	return strings.Join(parts[:min(depth, len(parts))], "/")
}

// level returns the position of a package's layer, bottom up, or -1.
func level(layers []layer, name string) int {
	return slices.IndexFunc(layers, func(l layer) bool { return slices.Contains(l.packages, folder(name)) })
}
