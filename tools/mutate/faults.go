package main

import (
	"bytes"
	"fmt"
	"go/ast"
)

// namedFault is a change that the tests must detect. old stands exactly once in the function.
type namedFault struct{ name, file, function, old, text string }

// namedFaults returns the faults whose packages are chosen as mutants.
func (s *source) namedFaults() ([]*mutant, error) {
	var all []*mutant
	for _, f := range s.faults {
		for _, t := range s.targets {
			text, ok := t.text[f.file]
			if !ok {
				continue
			}
			decl := functionOf(t, s, f.file, f.function)
			if decl == nil {
				return nil, fmt.Errorf("plant fault %q: %s has no function %s", f.name, f.file, f.function)
			}
			from, to := s.offset(decl.Pos()), s.offset(decl.End())
			if n := bytes.Count(text[from:to], []byte(f.old)); n != 1 {
				return nil, fmt.Errorf("plant fault %q: %q stands %d times in %s of %s; it must stand once", f.name, f.old,
					n, f.function, f.file)
			}
			at := from + bytes.Index(text[from:to], []byte(f.old))
			all = append(all, &mutant{name: f.name, pkg: t.folder, function: f.function, kind: fault, decl: decl,
				file: f.file, line: 1 + bytes.Count(text[:at], []byte("\n")), from: at, to: at + len(f.old),
				old: f.old, text: f.text})
		}
	}
	return all, nil
}

func functionOf(t *target, s *source, file, name string) *ast.FuncDecl {
	for _, syntax := range t.pkg.Syntax {
		if s.relative(s.files.Position(syntax.Pos()).Filename) != file {
			continue
		}
		for _, d := range syntax.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && functionName(f) == name {
				return f
			}
		}
	}
	return nil
}
