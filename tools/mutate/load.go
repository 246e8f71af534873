package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// source is the code of the targets.
type source struct {
	root   string // folder of the module
	module string // its path

	helpers    []string     // packages of programs that tests start
	faults     []namedFault // to plant
	equivalent string       // file below the root with the mutants that no test can detect
	files      *token.FileSet
	targets    []*target
	known      map[string]*types.Package // by import path
}

// target is one package whose code is changed.
type target struct {
	folder string
	tests  []string // folders of the packages whose tests must detect its faults
	pkg    *packages.Package
	text   map[string][]byte // by path below the root
}

// load reads the packages of targets that o chooses, with their types.
func load(ctx context.Context, root string, all []target, o options) (*source, error) {
	s := &source{root: root, files: token.NewFileSet(), known: map[string]*types.Package{}}
	wanted := strings.FieldsFunc(o.packages, func(r rune) bool { return r == ',' })
	var patterns []string
	for _, t := range all {
		if len(wanted) == 0 || slices.Contains(wanted, t.folder) {
			if o.own {
				t.tests = []string{t.folder}
			}
			s.targets = append(s.targets, &target{folder: t.folder, tests: t.tests, text: map[string][]byte{}})
			patterns = append(patterns, "./"+t.folder)
		}
	}
	if len(patterns) == 0 || len(wanted) > len(patterns) {
		return nil, fmt.Errorf("choose packages %s: not all are targets; the table in targets.go has them", o.packages)
	}
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
		packages.NeedDeps | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedSyntax |
		packages.NeedExportFile | packages.NeedModule
	patterns = append(patterns, "os", "strconv", "sync") // what the switch file imports
	loaded, err := packages.Load(&packages.Config{Context: ctx, Mode: mode, Dir: s.root, Fset: s.files,
		Env: append(os.Environ(), "GOWORK=off")}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	var broken []error
	packages.Visit(loaded, nil, func(p *packages.Package) {
		s.known[p.PkgPath] = p.Types
		for _, e := range p.Errors {
			broken = append(broken, e)
		}
	})
	if len(broken) > 0 {
		return nil, fmt.Errorf("load packages: %w", errors.Join(broken...))
	}
	for _, p := range loaded {
		if p.Module == nil {
			continue
		}
		folder, err := filepath.Rel(s.root, filepath.Dir(p.GoFiles[0]))
		if err != nil {
			return nil, err
		}
		s.module = p.Module.Path
		t := s.targets[slices.IndexFunc(s.targets, func(t *target) bool { return t.folder == folder })]
		t.pkg = p
		for _, path := range p.CompiledGoFiles {
			if t.text[s.relative(path)], err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

func (s *source) relative(path string) string {
	rel, err := filepath.Rel(s.root, path)
	if err != nil {
		return path
	}
	return rel
}

// offset is where a node begins in its file.
func (s *source) offset(p token.Pos) int { return s.files.Position(p).Offset }

// piece is the text of a node.
func (s *source) piece(t *target, from, to token.Pos) string {
	at := s.files.Position(from)
	return string(t.text[s.relative(at.Filename)][at.Offset:s.offset(to)])
}

// functionName is how a report calls a function: f or T.f.
func functionName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch x := of.(type) {
	case *ast.IndexExpr:
		of = x.X
	case *ast.IndexListExpr:
		of = x.X
	}
	if id, ok := of.(*ast.Ident); ok {
		return id.Name + "." + d.Name.Name
	}
	return d.Name.Name
}
