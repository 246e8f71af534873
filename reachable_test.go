package passbook_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodeIsReachable finds functions and methods that only tests use. Roots are main functions, the exported
// declarations of public packages, packages of and for tests, and what the tests of the whole system in test/ call. A
// method also counts as used if its type implements an interface that has it.
func TestCodeIsReachable(t *testing.T) {
	all := list(t)
	imported := map[string]bool{}
	var names []string
	for _, p := range all {
		for _, from := range p.Imports {
			imported[from] = true
		}
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/"))
	}
	calls, imp := newCallGraph(), sourceImporter{checked: map[string]*types.Package{}, others: compiled(t, names...)}
	for i, p := range all { // after its imports
		fset, files := token.NewFileSet(), []*ast.File(nil)
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(names[i], name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, file)
		}
		support := !imported[p.ImportPath] && p.Name != "main" || strings.HasPrefix(names[i], "test/")
		imp.checked[p.ImportPath] = calls.add(t, p.ImportPath, imp, fset, files, slices.Contains(publicPackages, names[i]),
			support)
	}
	paths, err := filepath.Glob("test/*/*_test.go")
	require.NoError(t, err)
	for _, name := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		calls.addTest(file)
	}
	require.Greater(t, len(calls.position), 3000)
	require.Empty(t, calls.unreachable(), "remove this code, or test the code that uses it")
	delete(calls.uses[""], module+"/starter.main")
	require.NotEmpty(t, calls.unreachable(), "the search finds nothing")
}

// sourceImporter imports packages of this module as they were checked, so that their types are identical everywhere.
type sourceImporter struct {
	checked map[string]*types.Package
	others  types.Importer
}

func (s sourceImporter) Import(path string) (*types.Package, error) {
	if p := s.checked[path]; p != nil {
		return p, nil
	}
	return s.others.Import(path)
}

// callGraph are the references between functions and methods, by their names.
type callGraph struct {
	position   map[string]string
	uses       map[string]map[string]bool // the name "" has the roots
	methods    map[string]*types.Func
	interfaces map[string][]*types.Interface // by the name of a method
	read       map[string]bool               // packages whose interfaces were added
}

func newCallGraph() *callGraph {
	g := &callGraph{position: map[string]string{}, uses: map[string]map[string]bool{"": {}},
		methods: map[string]*types.Func{}, interfaces: map[string][]*types.Interface{}, read: map[string]bool{}}
	g.addInterface(types.Universe.Lookup("error").Type())
	return g
}

// add adds a package. Of a public package the exported declarations are roots, of a support package all.
func (g *callGraph) add(t *testing.T, pkgPath string, imp types.Importer, fset *token.FileSet, files []*ast.File,
	public, support bool) *types.Package {
	t.Helper()
	info := types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: imp}
	pkg, err := conf.Check(pkgPath, fset, files, &info)
	require.NoError(t, err)
	g.addInterfaces(pkg, imp)
	for expr, tv := range info.Types {
		if _, ok := expr.(*ast.InterfaceType); ok {
			g.addInterface(tv.Type)
		}
	}
	for _, file := range files {
		for _, d := range file.Decls {
			from := ""
			if f, ok := d.(*ast.FuncDecl); ok {
				from = g.declare(info.Defs[f.Name].(*types.Func), fset.Position(f.Pos()).String(), public, support)
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					if f, ok := info.Uses[id].(*types.Func); ok && f.Pkg() != nil {
						g.uses[from][functionName(f)] = true
					}
				}
				return true
			})
		}
	}
	return pkg
}

// addTest adds the functions of this module that a test refers to.
func (g *callGraph) addTest(file *ast.File) {
	imports := map[string]string{}
	for _, i := range file.Imports {
		from := strings.Trim(i.Path.Value, `"`)
		name := path.Base(from)
		if i.Name != nil {
			name = i.Name.Name
		}
		imports[name] = from
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := s.X.(*ast.Ident); ok && imports[pkg.Name] != "" {
				g.uses[""][imports[pkg.Name]+"."+s.Sel.Name] = true
			}
		}
		return true
	})
}

func (g *callGraph) declare(f *types.Func, position string, public, support bool) string {
	name := functionName(f)
	g.position[name] = position
	g.uses[name] = map[string]bool{}
	receiver := receiverOf(f)
	if receiver != nil {
		g.methods[name] = f
	}
	exported := f.Exported() && (receiver == nil || receiver.Obj().Exported())
	if support || public && exported || receiver == nil && (f.Name() == "main" || f.Name() == "init") {
		g.uses[""][name] = true
	}
	return name
}

func (g *callGraph) addInterface(t types.Type) {
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			g.interfaces[m.Name()] = append(g.interfaces[m.Name()], i)
		}
	}
}

// addInterfaces adds the interfaces of a package and of its imports.
func (g *callGraph) addInterfaces(pkg *types.Package, imp types.Importer) {
	if g.read[pkg.Path()] {
		return
	}
	g.read[pkg.Path()] = true
	for _, name := range pkg.Scope().Names() {
		g.addInterface(pkg.Scope().Lookup(name).Type())
	}
	for _, p := range pkg.Imports() {
		if whole, err := imp.Import(p.Path()); err == nil && p.Path() != "unsafe" { // export data has parts of imports
			g.addInterfaces(whole, imp)
		}
	}
}

// implements reports whether a method belongs to an interface that its type implements. Package errors finds Unwrap, Is
// and As of an error without a named interface.
func (g *callGraph) implements(m *types.Func) bool {
	pointer := types.NewPointer(receiverOf(m))
	failure := types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	if slices.Contains([]string{"Unwrap", "Is", "As"}, m.Name()) && types.Implements(pointer, failure) {
		return true
	}
	return slices.ContainsFunc(g.interfaces[m.Name()], func(i *types.Interface) bool {
		return types.Implements(pointer, i)
	})
}

func receiverOf(f *types.Func) *types.Named {
	r := f.Signature().Recv()
	if r == nil {
		return nil
	}
	t := types.Unalias(r.Type())
	if p, ok := t.(*types.Pointer); ok {
		t = types.Unalias(p.Elem())
	}
	named, _ := t.(*types.Named)
	return named
}

func functionName(f *types.Func) string {
	f = f.Origin()
	if r := receiverOf(f); r != nil {
		return f.Pkg().Path() + "." + r.Obj().Name() + "." + f.Name()
	}
	return f.Pkg().Path() + "." + f.Name()
}

// unreachable lists the functions that no root reaches, each with its position.
func (g *callGraph) unreachable() []string {
	for name, m := range g.methods {
		if g.implements(m) {
			g.uses[""][name] = true
		}
	}
	seen, next := map[string]bool{}, []string{""}
	for len(next) > 0 {
		name := next[len(next)-1]
		next = next[:len(next)-1]
		for to := range g.uses[name] {
			if !seen[to] {
				seen[to] = true
				next = append(next, to)
			}
		}
	}
	var found []string
	for name, position := range g.position {
		if !seen[name] {
			found = append(found, position+" "+name)
		}
	}
	slices.Sort(found)
	return found
}
