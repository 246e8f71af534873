package main

import (
	"go/ast"
	values "go/constant"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// finder collects the mutants of one function.
type finder struct {
	code *source
	t    *target
	decl *ast.FuncDecl
	out  []*mutant
}

// find returns all mutants of a target, in the order of its files.
func (s *source) find(t *target) []*mutant {
	var all []*mutant
	for _, file := range t.pkg.Syntax {
		if ast.IsGenerated(file) {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || f.Name.Name == "init" || f.Name.Name == "_" {
				continue
			}
			in := &finder{code: s, t: t, decl: f}
			ast.Inspect(f.Body, in.visit)
			all = append(all, number(in.out)...)
		}
	}
	return all
}

// number counts equal changes of one function.
func number(of []*mutant) []*mutant {
	seen := map[string]int{}
	for _, m := range of {
		key := m.key()
		seen[key]++
		m.nth = seen[key]
	}
	return of
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			f.add(operator, n.OpPos, n.X.Pos(), "")
		}
		if l, ok := n.X.(*ast.BasicLit); ok && n.Op == token.SUB {
			f.literal(l, -1)
			return false
		}
	case *ast.IfStmt:
		f.condition(n.Cond)
	case *ast.BasicLit:
		f.literal(n, 1)
	case *ast.Ident:
		f.name(n)
	case *ast.BlockStmt:
		f.statements(n.List)
	case *ast.CaseClause:
		f.statements(n.Body)
	case *ast.CommClause:
		f.statements(n.Body)
	case *ast.CompositeLit:
		f.fields(n)
	case *ast.SelectorExpr:
		f.selector(n)
		ast.Inspect(n.X, f.visit)
		return false
	case *ast.CallExpr:
		if name := types.ExprString(n.Fun); name == "strconv.ParseFloat" {
			ast.Inspect(n.Args[0], f.visit) // a size in bits that does not exist means 64
			return false
		}
		return !f.onlyText(n)
	}
	return true
}

// onlyText is true of calls that make texts for people, or that take sizes only to save allocations.
func (f *finder) onlyText(c *ast.CallExpr) bool {
	switch name := types.ExprString(c.Fun); {
	case name == "make", name == "errors.New", strings.HasSuffix(name, ".Grow"):
		return true
	default:
		return logs(name)
	}
}

func logs(name string) bool {
	of, method, _ := strings.Cut(name, ".")
	levels := []string{"Debug", "Info", "Warn", "Error"}
	return strings.Contains(strings.ToLower(of), "log") && slices.Contains(levels, method) ||
		strings.Contains(name, "GetLogger")
}

func (f *finder) add(k kind, from, to token.Pos, text string) {
	at := f.code.files.Position(from)
	m := &mutant{
		pkg: f.t.folder, function: functionName(f.decl), kind: k, decl: f.decl,
		file: f.code.relative(at.Filename), line: at.Line, from: at.Offset, to: f.code.offset(to),
		old: f.code.piece(f.t, from, to), text: text,
	}
	if m.old != m.text {
		f.out = append(f.out, m)
	}
}

var otherOperators = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL},
	token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS},
	token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD},
	token.MUL: {token.QUO}, token.QUO: {token.MUL}, token.REM: {token.MUL},
}

func (f *finder) binary(b *ast.BinaryExpr) {
	if b.Op == token.ADD && !f.numeric(b) {
		return
	}
	for _, op := range otherOperators[b.Op] {
		f.add(operator, b.OpPos, b.OpPos+token.Pos(len(b.Op.String())), op.String())
	}
}

func (f *finder) numeric(e ast.Expr) bool {
	t := f.t.pkg.TypesInfo.TypeOf(e)
	if t == nil {
		return false
	}
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsNumeric != 0
}

// condition negates conditions without an operator.
func (f *finder) condition(e ast.Expr) {
	switch e.(type) {
	case *ast.Ident, *ast.CallExpr, *ast.SelectorExpr, *ast.IndexExpr:
		f.add(operator, e.Pos(), e.End(), "!("+f.code.piece(f.t, e.Pos(), e.End())+")")
	}
}

// literal adds a number to a literal: one that moves a negative number, such as the -1 of "all", towards 0.
func (f *finder) literal(l *ast.BasicLit, by int64) {
	if l.Kind != token.INT {
		return
	}
	if n, err := strconv.ParseInt(l.Value, 0, 64); err == nil {
		f.add(constant, l.Pos(), l.End(), strconv.FormatInt(n+by, 10))
	}
}

// name replaces true and false, and a constant of a type of the module by the next one of that type.
func (f *finder) name(id *ast.Ident) {
	switch of := f.t.pkg.TypesInfo.Uses[id].(type) {
	case *types.Const:
		if of.Parent() == types.Universe {
			if of.Val().Kind() == values.Bool {
				f.add(constant, id.Pos(), id.End(), strconv.FormatBool(!values.BoolVal(of.Val())))
			}
			return
		}
		if next := f.nextConstant(of); next != "" {
			f.add(constant, id.Pos(), id.End(), next)
		}
	}
}

func (f *finder) nextConstant(of *types.Const) string {
	named, ok := of.Type().(*types.Named)
	if !ok || of.Pkg() == nil || !strings.HasPrefix(of.Pkg().Path(), f.code.module) {
		return ""
	}
	var same []string
	for _, name := range of.Pkg().Scope().Names() {
		c, ok := of.Pkg().Scope().Lookup(name).(*types.Const)
		if ok && types.Identical(c.Type(), named) && (c.Exported() || of.Pkg() == f.t.pkg.Types) {
			same = append(same, name)
		}
	}
	at := slices.Index(same, of.Name())
	if at < 0 || len(same) < 2 {
		return ""
	}
	return same[(at+1)%len(same)]
}

// statements drops one statement at a time.
func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || f.mayGo(call) {
				f.add(dropped, s.Pos(), s.End(), "{}")
			}
		case *ast.AssignStmt:
			if s.Tok != token.DEFINE {
				f.add(dropped, s.Pos(), s.End(), "{}")
			}
		case *ast.IncDecStmt:
			f.add(dropped, s.Pos(), s.End(), "{}")
		case *ast.BranchStmt:
			if s.Tok == token.CONTINUE || s.Tok == token.BREAK {
				f.add(dropped, s.Pos(), s.End(), "{}")
			}
		}
	}
}

// mayGo is false for calls whose absence only blocks, leaks or changes a log.
func (f *finder) mayGo(call *ast.CallExpr) bool {
	name := types.ExprString(call.Fun)
	for _, suffix := range []string{".Lock", ".Unlock", ".RLock", ".RUnlock", ".Close", ".Wait", ".Done", "panic"} {
		if strings.HasSuffix(name, suffix) {
			return false
		}
	}
	return !f.onlyText(call)
}

// fields exchanges the values of two fields of one type that stand next to each other.
func (f *finder) fields(lit *ast.CompositeLit) {
	t := f.t.pkg.TypesInfo.TypeOf(lit)
	if t == nil {
		return
	}
	if _, ok := t.Underlying().(*types.Struct); !ok {
		return
	}
	for i := 1; i < len(lit.Elts); i++ {
		a, okA := lit.Elts[i-1].(*ast.KeyValueExpr)
		b, okB := lit.Elts[i].(*ast.KeyValueExpr)
		if !okA || !okB || !types.Identical(f.t.pkg.TypesInfo.TypeOf(a.Value), f.t.pkg.TypesInfo.TypeOf(b.Value)) {
			continue
		}
		first, second := f.code.piece(f.t, a.Value.Pos(), a.Value.End()), f.code.piece(f.t, b.Value.Pos(), b.Value.End())
		between := f.code.piece(f.t, a.Value.End(), b.Value.Pos())
		f.add(exchanged, a.Value.Pos(), b.Value.End(), second+between+first)
	}
}

// selector reads the next field of the same type.
func (f *finder) selector(s *ast.SelectorExpr) {
	if next := f.nextConstantOf(s); next != "" {
		f.add(constant, s.Sel.Pos(), s.Sel.End(), next)
		return
	}
	sel := f.t.pkg.TypesInfo.Selections[s]
	if sel == nil || sel.Kind() != types.FieldVal || len(sel.Index()) != 1 {
		return
	}
	of := sel.Recv()
	if p, ok := of.Underlying().(*types.Pointer); ok {
		of = p.Elem()
	}
	st, ok := of.Underlying().(*types.Struct)
	if !ok {
		return
	}
	at := sel.Index()[0]
	for i := 1; i < st.NumFields(); i++ {
		field := st.Field((at + i) % st.NumFields())
		if types.Identical(field.Type(), st.Field(at).Type()) && (field.Exported() || field.Pkg() == f.t.pkg.Types) {
			f.add(exchanged, s.Sel.Pos(), s.Sel.End(), field.Name())
			return
		}
	}
}

func (f *finder) nextConstantOf(s *ast.SelectorExpr) string {
	if c, ok := f.t.pkg.TypesInfo.Uses[s.Sel].(*types.Const); ok {
		return f.nextConstant(c)
	}
	return ""
}
