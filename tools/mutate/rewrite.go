package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// switchFile is the file that each changed package gets besides. PASSBOOK_MUTANT is the active mutant; with -1 the
// program writes the numbers of the mutants whose statements it executes to PASSBOOK_MUTANT_REACHED.
const switchFile = `package %s

import (
	mutantOS "os"
	mutantNumbers "strconv"
	mutantSync "sync"
)

var (
	mutantActive, _ = mutantNumbers.Atoi(mutantOS.Getenv("PASSBOOK_MUTANT"))
	mutantReached   = mutantOS.Getenv("PASSBOOK_MUTANT_REACHED") // a test can clear the environment later
	mutantSeen      mutantSync.Map
)

func mutantReach(ids ...int) {
	if _, seen := mutantSeen.LoadOrStore(ids[0], true); seen {
		return
	}
	file, err := mutantOS.OpenFile(mutantReached, mutantOS.O_APPEND|mutantOS.O_CREATE|mutantOS.O_WRONLY, 0o666)
	if err != nil {
		return
	}
	defer file.Close()
	line := ""
	for _, id := range ids {
		line += mutantNumbers.Itoa(id) + "\n"
	}
	file.WriteString(line)
}
`

const switchName = "mutant_switch.go"

// rewrite returns the texts of all changed files by path below the root, and marks the mutants that do not compile.
func (s *source) rewrite(all []*mutant) map[string][]byte {
	files := map[string][]byte{}
	for _, t := range s.targets {
		mine := slices.DeleteFunc(slices.Clone(all), func(m *mutant) bool { return m.pkg != t.folder })
		if len(mine) == 0 {
			continue
		}
		texts := s.compiles(t, mine)
		for path, text := range texts {
			files[path] = text
		}
	}
	return files
}

// compiles writes the files of one package and leaves mutants out until the package has no error of types.
func (s *source) compiles(t *target, mine []*mutant) map[string][]byte {
	for {
		texts := map[string][]byte{t.folder + "/" + switchName: fmt.Appendf(nil, switchFile, t.pkg.Types.Name())}
		for path, text := range t.text {
			of := slices.DeleteFunc(slices.Clone(mine), func(m *mutant) bool { return m.broken || m.file != path })
			texts[path] = s.withCopies(path, text, of)
		}
		if !s.markBroken(t, texts, mine) {
			return texts
		}
	}
}

// withCopies appends a changed copy of its function for each mutant, and lets the function call it.
func (s *source) withCopies(path string, text []byte, mine []*mutant) []byte {
	byFunction := map[*ast.FuncDecl][]*mutant{}
	for _, m := range mine {
		byFunction[m.decl] = append(byFunction[m.decl], m)
	}
	var edits []edit
	var copies bytes.Buffer
	for decl, of := range byFunction {
		names, renames := s.parameters(decl)
		edits = append(edits, renames...)
		cases := ""
		ids := map[token.Pos][]string{}
		for _, m := range of {
			in := statementAt(decl, decl.Pos()+token.Pos(m.from-s.offset(decl.Pos())))
			ids[in] = append(ids[in], strconv.Itoa(m.id))
			call := call(decl, m.id, names)
			if decl.Type.Results == nil || len(decl.Type.Results.List) == 0 {
				cases += fmt.Sprintf("case %d: %s; return; ", m.id, call)
			} else {
				cases += fmt.Sprintf("case %d: return %s; ", m.id, call)
			}
			from, at, end := s.offset(decl.Pos()), s.offset(decl.Name.Pos()), s.offset(decl.End())
			fmt.Fprintf(&copies, "\n%s%s%s%s%s\n", text[from:at], copyName(decl, m.id),
				text[at+len(decl.Name.Name):m.from], m.text, text[m.to:end])
		}
		body := s.offset(decl.Body.Lbrace) + 1
		edits = append(edits, edit{body, body, fmt.Sprintf(" switch mutantActive { %s}; ", cases)})
		for at, of := range ids {
			edits = append(edits, edit{s.offset(at), s.offset(at), fmt.Sprintf("if mutantActive == -1 { mutantReach(%s) }; ",
				strings.Join(of, ", "))})
		}
	}
	return append(apply(text, edits), copies.Bytes()...)
}

// statementAt is where the innermost statement of a list begins that holds a position.
func statementAt(decl *ast.FuncDecl, pos token.Pos) token.Pos {
	at := decl.Body.Lbrace + 1
	look := func(list []ast.Stmt) {
		for _, s := range list {
			switch s.(type) {
			case *ast.CaseClause, *ast.CommClause:
			default:
				if s.Pos() <= pos && pos < s.End() {
					at = s.Pos()
				}
			}
		}
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			look(n.List)
		case *ast.CaseClause:
			look(n.Body)
		case *ast.CommClause:
			look(n.Body)
		}
		return n == nil || n.Pos() <= pos && pos < n.End()
	})
	return at
}

func copyName(decl *ast.FuncDecl, id int) string {
	return fmt.Sprintf("mutant%d_%s", id, decl.Name.Name)
}

func call(decl *ast.FuncDecl, id int, names []string) string {
	name := copyName(decl, id)
	if decl.Recv != nil {
		receiver := "mutantReceiver"
		if n := decl.Recv.List[0].Names; len(n) > 0 && n[0].Name != "_" {
			receiver = n[0].Name
		}
		name = receiver + "." + name
	}
	if decl.Type.TypeParams != nil {
		var of []string
		for _, f := range decl.Type.TypeParams.List {
			for _, n := range f.Names {
				of = append(of, n.Name)
			}
		}
		name += "[" + strings.Join(of, ", ") + "]"
	}
	return name + "(" + strings.Join(names, ", ") + ")"
}

// parameters are the arguments of the call, and the edits that give names to parameters without one.
func (s *source) parameters(decl *ast.FuncDecl) (names []string, edits []edit) {
	if decl.Recv != nil {
		field := decl.Recv.List[0]
		switch at := s.offset(field.Type.Pos()); {
		case len(field.Names) == 0:
			edits = append(edits, edit{at, at, "mutantReceiver "})
		case field.Names[0].Name == "_":
			edits = append(edits, edit{s.offset(field.Pos()), at, "mutantReceiver "})
		}
	}
	for _, field := range decl.Type.Params.List {
		dots := ""
		if _, ok := field.Type.(*ast.Ellipsis); ok {
			dots = "..."
		}
		if len(field.Names) == 0 {
			name, at := fmt.Sprintf("mutantArgument%d", len(names)), s.offset(field.Type.Pos())
			edits = append(edits, edit{at, at, name + " "})
			names = append(names, name+dots)
		}
		for _, n := range field.Names {
			name := n.Name
			if name == "_" {
				name = fmt.Sprintf("mutantArgument%d", len(names))
				edits = append(edits, edit{s.offset(n.Pos()), s.offset(n.End()), name})
			}
			names = append(names, name+dots)
		}
	}
	return names, edits
}

// edit replaces bytes of a text.
type edit struct {
	from, to int
	text     string
}

func apply(text []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	at := 0
	for _, e := range edits {
		out = append(append(out, text[at:e.from]...), e.text...)
		at = e.to
	}
	return append(out, text[at:]...)
}

// markBroken marks mutants whose copies have errors of syntax or types; the result is true if there was one.
func (s *source) markBroken(t *target, texts map[string][]byte, mine []*mutant) bool {
	byID := map[int]*mutant{}
	for _, m := range mine {
		byID[m.id] = m
	}
	set := token.NewFileSet()
	var files []*ast.File
	var found []token.Pos
	for path, text := range texts {
		file, err := parser.ParseFile(set, path, text, parser.SkipObjectResolution)
		if err != nil {
			panic(fmt.Sprintf("%s with mutants: %v", path, err)) // each edit keeps the syntax
		}
		files = append(files, file)
	}
	conf := types.Config{Importer: s, Error: func(err error) {
		if e, ok := err.(types.Error); ok {
			found = append(found, e.Pos)
		}
	}}
	if _, err := conf.Check(t.pkg.PkgPath, set, files, nil); err != nil && len(found) == 0 {
		panic(fmt.Sprintf("%s with mutants: %v", t.folder, err))
	}
	marked := false
	for _, pos := range found {
		id := copyAt(files, pos)
		if m := byID[id]; m != nil {
			m.broken, marked = true, true
		} else {
			panic(fmt.Sprintf("%s with mutants: an error outside of a copy", set.Position(pos)))
		}
	}
	return marked
}

// copyAt is the number of the mutant whose copy has this position.
func copyAt(files []*ast.File, pos token.Pos) int {
	for _, file := range files {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && f.Pos() <= pos && pos < f.End() && strings.HasPrefix(f.Name.Name, "mutant") {
				digits, _, _ := strings.Cut(strings.TrimPrefix(f.Name.Name, "mutant"), "_")
				id, err := strconv.Atoi(digits)
				if err == nil {
					return id
				}
			}
		}
	}
	return 0
}

// Import serves the packages that were loaded, for the type checker.
func (s *source) Import(path string) (*types.Package, error) {
	if p := s.known[path]; p != nil {
		return p, nil
	}
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return nil, fmt.Errorf("import %s: it was not loaded", path)
}
