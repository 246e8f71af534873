// Package passbook_test holds what no package can hold about itself: which way imports go, and that what is written about the
// tree is true of it.
package passbook_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/passbook-run/passbook"

// goPackage is what `go list -json` says of a package.
type goPackage struct {
	ImportPath string
	GoFiles    []string
	Imports    []string
}

// pure packages compute. io and io/fs are here as interfaces, time for its types and layouts.
var pure = strings.Fields(`bytes cmp crypto/sha256 encoding/base64 encoding/hex encoding/json errors fmt hash io io/fs iter maps math math/bits
	net/url path regexp slices sort strconv strings text/tabwriter time unicode unicode/utf8`)

// allowed are the imports from outside that a folder may have besides the pure ones.
var allowed = map[string][]string{
	"pipeline": {"go.yaml.in/yaml/v3"},
	"workflows": {
		"go.temporal.io/api/enums/v1", "go.temporal.io/sdk/converter", "go.temporal.io/sdk/log", "go.temporal.io/sdk/temporal", "go.temporal.io/sdk/worker", "go.temporal.io/sdk/workflow",
		"math/rand", // inside a side effect
	},
}

// list asks the go command for every package of this module that is more than tests.
func list(t *testing.T) []goPackage {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,GoFiles,Imports", "-deps", "./...")
	cmd.Stderr = &said
	out, err := cmd.Output()
	require.NoError(t, err, said.String())
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

// violations says what is wrong with the imports, one line each.
func violations(pkgs []goPackage, house []layer) []string {
	var out []string
	for _, p := range pkgs {
		name, _ := inModule(p.ImportPath)
		if level(house, name) < 0 {
			out = append(out, name+" has no floor: give it one in docs/architecture.md and in house")
			continue
		}
		for _, i := range p.Imports {
			if wrong := wrongImport(house, name, i); wrong != "" {
				out = append(out, wrong)
			}
		}
	}
	return out
}

func wrongImport(house []layer, name, imported string) string {
	mine := level(house, name)
	if below, ours := inModule(imported); ours {
		if folder(below) != folder(name) && level(house, below) >= mine {
			return fmt.Sprintf("%s imports %s, which is not below it", name, below)
		}
		return ""
	}
	known := slices.Contains(pure, imported) || slices.Contains(allowed[folder(name)], imported)
	switch floor := house[mine].floor; {
	case floor == "1" && !known:
		return fmt.Sprintf("%s imports %s; floor 1 is pure", name, imported)
	case folder(name) == "workflows" && !known:
		return fmt.Sprintf("%s imports %s; workflow code does no IO of its own", name, imported)
	case floor == "2" && strings.HasPrefix(imported, "go.temporal.io/"):
		return fmt.Sprintf("%s imports %s; only floor 3 and above speak to Temporal", name, imported)
	}
	return ""
}

// inModule gives a package's path inside this module.
func inModule(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

func folder(name string) string {
	top, _, _ := strings.Cut(name, "/")
	return top
}

// level is the place of a package's folder in the house, from the ground up; -1: nowhere.
func level(house []layer, name string) int {
	return slices.IndexFunc(house, func(l layer) bool { return slices.Contains(l.folders, folder(name)) })
}
