package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// blankCode replaces everything in Go source by spaces, except line feeds, comments, and string literals of two words
// or more. Lines and columns stay as they are.
func blankCode(name string, source []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read text of code: %w", err)
	}
	blank := make([]byte, len(source))
	for i, c := range source {
		if blank[i] = ' '; c == '\n' {
			blank[i] = c
		}
	}
	keep := func(at token.Pos, text string) { copy(blank[files.Position(at).Offset:], text) }
	for _, group := range file.Comments {
		for _, c := range group.List {
			keep(c.Pos(), "  "+c.Text[2:]) // the marks are // or /*
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag != nil {
				n.Tag.Value = "" // keys for encoders
			}
		case *ast.BasicLit:
			text := unescaped.Replace(n.Value)
			if n.Kind == token.STRING && strings.Contains(strings.Trim(text, ` "`), " ") {
				keep(n.Pos(), text)
			}
		}
		return true
	})
	return blank, nil
}

// unescaped keeps the length of a literal: an escaped line feed is not a part of the word after it.
var unescaped = strings.NewReplacer(`\n`, "  ", `\t`, "  ", `\"`, " '", `\\`, `\\`, "`", " ")
