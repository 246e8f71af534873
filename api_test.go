// Package passbook_test checks the whole tree: the public API, the source, and documentation that must match the code.
package passbook_test

import (
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/passbook-run/passbook"

// publicPackages are the Go API. Their exported declarations mention no type of an internal package.
var publicPackages = []string{
	"run", "pipeline", "pipeline/template", "client", "workerhost", "rundir", "config", "workflows",
	"activities", "workflows/contract",
}

// excepted: a run directory is a folder, on a disk whose writes tests stop at each step.
var excepted = []string{"Dir mentions internal/disk.Disk", "Dir mentions internal/disk.Folder"}

func TestPublicPackagesMentionNoInternalTypes(t *testing.T) {
	const internal = "internal/host"
	imp := compiled(t, append([]string{internal}, publicPackages...)...)
	for _, name := range append([]string{internal}, publicPackages...) {
		pkg, err := imp.Import(module + "/" + name)
		require.NoError(t, err)
		found := slices.DeleteFunc(internalTypes(pkg), func(what string) bool { return slices.Contains(excepted, what) })
		require.Equal(t, name == internal, len(found) > 0, "%s: %v", name, found)
	}
}

// compiled imports packages of this module, and their imports, from the export data of the compiler.
func compiled(t *testing.T, names ...string) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, name := range names {
		args = append(args, "./"+name)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		files[path] = file
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
	return importer.ForCompiler(token.NewFileSet(), "gc", open)
}

// internalTypes lists the exported declarations of a package that mention a type of an internal package.
func internalTypes(pkg *types.Package) []string {
	var found []string
	for _, name := range pkg.Scope().Names() {
		obj := pkg.Scope().Lookup(name)
		if !obj.Exported() {
			continue
		}
		m := mentions{declaration: name, seen: map[types.Type]bool{}}
		m.object(obj)
		found = append(found, m.found...)
	}
	return found
}

// mentions collects the internal types in one declaration.
type mentions struct {
	declaration string
	seen        map[types.Type]bool
	found       []string
}

func (m *mentions) object(obj types.Object) {
	name, ok := obj.(*types.TypeName)
	if !ok {
		m.typ(obj.Type())
		return
	}
	if name.IsAlias() {
		m.typ(types.Unalias(name.Type()))
		return
	}
	m.typ(name.Type().Underlying())
	methods := types.NewMethodSet(types.NewPointer(name.Type())) // with the promoted ones
	for i := range methods.Len() {
		if method := methods.At(i).Obj(); method.Exported() {
			m.typ(method.Type())
		}
	}
}

// typ visits a type as far as another package can use it.
func (m *mentions) typ(t types.Type) {
	if t == nil || m.seen[t] {
		return
	}
	m.seen[t] = true
	switch t := t.(type) {
	case *types.Named:
		m.named(t.Obj())
		for arg := range t.TypeArgs().Types() {
			m.typ(arg)
		}
	case *types.Alias:
		m.named(t.Obj())
		m.typ(types.Unalias(t))
	case *types.TypeParam:
		m.typ(t.Constraint().Underlying())
	case *types.Struct:
		for field := range t.Fields() {
			m.field(field)
		}
	case *types.Interface:
		for method := range t.Methods() {
			if method.Exported() {
				m.typ(method.Type())
			}
		}
		for embedded := range t.EmbeddedTypes() {
			m.typ(embedded)
		}
	case *types.Signature:
		m.signature(t)
	case *types.Map:
		m.typ(t.Key())
		m.typ(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		m.typ(t.Elem())
	case *types.Union:
		for term := range t.Terms() {
			m.typ(term.Type())
		}
	}
}

// field visits an exported field, and what an embedded field of an unexported type promotes.
func (m *mentions) field(f *types.Var) {
	switch {
	case f.Exported():
		m.typ(f.Type())
	case f.Embedded():
		t := f.Type()
		if p, ok := t.(*types.Pointer); ok {
			t = p.Elem()
		}
		m.typ(t.Underlying())
	}
}

func (m *mentions) signature(s *types.Signature) {
	for _, tuple := range []*types.Tuple{s.Params(), s.Results()} {
		for v := range tuple.Variables() {
			m.typ(v.Type())
		}
	}
	for p := range s.TypeParams().TypeParams() {
		m.typ(p)
	}
}

func (m *mentions) named(obj *types.TypeName) {
	if obj.Pkg() == nil {
		return
	}
	if name, ours := strings.CutPrefix(obj.Pkg().Path(), module+"/"); ours && strings.HasPrefix(name, "internal/") {
		m.found = append(m.found, fmt.Sprintf("%s mentions %s.%s", m.declaration, name, obj.Name()))
	}
}

// TestAPIPageShowsTheExamples compares the Go code of the page with the examples that run as tests.
func TestAPIPageShowsTheExamples(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```go file=(\\S+)\n(.*?)```").FindAllStringSubmatch(read(t, "client/README.md"), -1)
	require.NotEmpty(t, blocks)
	for _, b := range blocks {
		require.Contains(t, read(t, b[1]), b[2], "client/README.md differs from %s", b[1])
	}
}
