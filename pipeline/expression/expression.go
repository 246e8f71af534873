// Package expression reads the conditions of definitions: expressions of expr-lang/expr over inputs and the outputs of
// steps. It evaluates without a clock, random numbers or the order of maps: the same values always have the same result.
//
// Workflow code must not import it: an activity evaluates, and the journal keeps the result.
package expression

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/types"
)

// Error is a fault of an expression, with its place in the text.
type Error struct {
	Line, Column int // from 1 and 0, as characters
	What         string
}

func (e *Error) Error() string { return e.What }

// Variables of every expression.
const (
	Approved = "approved" // whether the last verdict approves the work
	Verdict  = "verdict"  // the word of the last verdict
	Score    = "score"    // the last score
	Scores   = "scores"   // the scores of the rounds of the loop, the newest last
	Round    = "round"    // of the loop, from 1
	Task     = "task"
)

// Reserved lists the variables that every expression has.
func Reserved() []string { return []string{Approved, Verdict, Score, Scores, Round, Task} }

// disabled are functions whose results depend on a clock or on the order of a map.
func disabled() []string {
	return []string{"now", "date", "duration", "timezone", "keys", "values", "toPairs"}
}

// Name reports whether a word can be a variable.
func Name(word string) bool {
	tree, err := parser.Parse(word)
	if err != nil {
		return false
	}
	id, ok := tree.Node.(*ast.IdentifierNode)
	return ok && id.Value == word
}

// Expression is the syntax of a condition.
type Expression struct {
	text string
	node ast.Node
}

// Parse reads the syntax of a condition. The error is an [Error].
func Parse(text string) (Expression, error) {
	tree, err := parser.Parse(text)
	if err != nil {
		return Expression{}, faultOf(err)
	}
	return Expression{text: text, node: tree.Node}, nil
}

func faultOf(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return &Error{Line: 1, What: err.Error()}
	}
	return &Error{Line: max(at.Line, 1), Column: at.Column, What: at.Message}
}

// visitor calls a function for each node, outer ones last.
type visitor func(ast.Node)

func (v visitor) Visit(n *ast.Node) { v(*n) }

func (e Expression) walk(visit visitor) {
	if e.node != nil {
		ast.Walk(&e.node, visit)
	}
}

// Use is a variable of an expression, or a member of one: tests.ok. Safe: it may have no value.
type Use struct {
	Path         []string
	Safe         bool
	Line, Column int
}

// Name is the variable.
func (u Use) Name() string { return u.Path[0] }

// String writes it as in an expression.
func (u Use) String() string { return strings.Join(u.Path, ".") }

// Uses lists the variables with the members that the expression names, each path once, in the order of their first use.
func (e Expression) Uses() []Use {
	local := map[string]bool{}
	inner := map[ast.Node]bool{} // part of a longer path
	e.walk(func(n ast.Node) {
		switch n := n.(type) {
		case *ast.VariableDeclaratorNode:
			local[n.Name] = true
		case *ast.MemberNode:
			if _, named := n.Property.(*ast.StringNode); named {
				inner[n.Node] = true
			}
		}
	})
	var uses []Use
	e.walk(func(n ast.Node) {
		if inner[n] {
			return
		}
		path, safe, ok := pathOf(n)
		if !ok || local[path[0]] {
			return
		}
		u := Use{Path: path, Safe: safe}
		u.Line, u.Column = e.position(base(n).Location().From)
		if !slices.ContainsFunc(uses, func(o Use) bool { return slices.Equal(o.Path, path) && o.Safe == safe }) {
			uses = append(uses, u)
		}
	})
	return uses
}

// pathOf reads a.b?.c. safe: its first member is optional.
func pathOf(n ast.Node) (path []string, safe, ok bool) {
	switch n := n.(type) {
	case *ast.IdentifierNode:
		return []string{n.Value}, false, true
	case *ast.MemberNode:
		property, named := n.Property.(*ast.StringNode)
		if !named {
			return nil, false, false
		}
		if path, safe, ok = pathOf(n.Node); !ok {
			return nil, false, false
		}
		return append(path, property.Value), safe || len(path) == 1 && n.Optional, true
	}
	return nil, false, false
}

// base is the variable at the beginning of a path.
func base(n ast.Node) ast.Node {
	if m, ok := n.(*ast.MemberNode); ok {
		return base(m.Node)
	}
	return n
}

// position turns an offset in characters into a line, from 1, and a column, from 0.
func (e Expression) position(offset int) (line, column int) {
	line = 1
	for i, r := range []rune(e.text) {
		if i == offset {
			break
		}
		if column++; r == '\n' {
			line, column = line+1, 0
		}
	}
	return line, column
}

// Names lists the variables of the expression, each once, in the order of their first use.
func (e Expression) Names() (names []string) {
	for _, u := range e.Uses() {
		if !slices.Contains(names, u.Name()) {
			names = append(names, u.Name())
		}
	}
	return names
}

// Compared reports whether a name is one side of a comparison with == or !=: a word without its quotes, perhaps. of is the
// other side.
func (e Expression) Compared(name string) (of string, yes bool) {
	e.walk(func(n ast.Node) {
		b, ok := n.(*ast.BinaryNode)
		if !ok || b.Operator != "==" && b.Operator != "!=" {
			return
		}
		for _, side := range [][2]ast.Node{{b.Left, b.Right}, {b.Right, b.Left}} {
			if id, is := side[1].(*ast.IdentifierNode); is && id.Value == name && !yes {
				of, yes = side[0].String(), true
			}
		}
	})
	return of, yes
}

// Shape is the expression with each number as #: another threshold does not make another pipeline.
func (e Expression) Shape() string {
	again, err := Parse(e.text)
	if err != nil || e.node == nil {
		return ""
	}
	ast.Walk(&again.node, numbers{})
	return again.node.String()
}

type numbers struct{}

func (numbers) Visit(n *ast.Node) {
	switch (*n).(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		ast.Patch(n, &ast.IdentifierNode{Value: "#"})
	}
}

// Threshold is the number of the first comparison score >= or score >; nil: there is none.
func (e Expression) Threshold() (least *float64) {
	e.walk(func(n ast.Node) {
		b, ok := n.(*ast.BinaryNode)
		if !ok || least != nil || b.Operator != ">=" && b.Operator != ">" {
			return
		}
		id, named := b.Left.(*ast.IdentifierNode)
		v, number := numberOf(b.Right)
		if named && number && id.Value == Score {
			least = &v
		}
	})
	return least
}

func numberOf(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.IntegerNode:
		return float64(n.Value), true
	case *ast.FloatNode:
		return n.Value, true
	case *ast.UnaryNode:
		v, ok := numberOf(n.Node)
		if n.Operator == "-" {
			v = -v
		}
		return v, ok
	}
	return 0, false
}

// Literals lists the numbers and the texts of the expression.
func (e Expression) Literals() (numbers []float64, texts []string) {
	e.walk(func(n ast.Node) {
		if v, ok := numberOf(n); ok {
			numbers = append(numbers, v)
		}
		if s, ok := n.(*ast.StringNode); ok {
			texts = append(texts, s.Value)
		}
	})
	return numbers, texts
}

// Type is the type of a value.
type Type = types.Type

// Types are the types of the variables, by name.
type Types = types.Map

// Check reports the first name that is unknown, and the first operation that does not fit the types of its operands, or a
// result that is not true or false. The error is an [Error].
func Check(text string, known Types) error {
	_, err := compile(text, known)
	return err
}

func compile(text string, env any) (run func(any) (any, error), err error) {
	options := []expr.Option{expr.Env(env), expr.AsBool()}
	for _, name := range disabled() {
		options = append(options, expr.DisableBuiltin(name))
	}
	program, err := expr.Compile(text, options...)
	if err != nil {
		return nil, faultOf(err)
	}
	return func(values any) (any, error) { return expr.Run(program, values) }, nil
}

// Eval evaluates a condition. Values are those of JSON: nil, bool, float64, string, []any, map[string]any. A name without a
// value is an error.
func Eval(text string, values map[string]any) (holds bool, err error) {
	e, err := Parse(text)
	if err != nil {
		return false, err
	}
	for _, name := range e.Names() {
		if _, ok := values[name]; !ok {
			return false, fmt.Errorf("%s has no value", name)
		}
	}
	run, err := compile(text, anything(values))
	if err != nil {
		return false, err
	}
	result, err := run(values)
	if err != nil {
		return false, faultOf(err)
	}
	holds, ok := result.(bool)
	if !ok {
		return false, fmt.Errorf("its result is %v, which is neither true nor false", result)
	}
	return holds, nil
}

// anything has a type of any value for each name: what the values are is known only now.
func anything(values map[string]any) Types {
	known := Types{}
	for name := range values {
		known[name] = types.Any
	}
	return known
}

// Lookup returns the member of a value that a path names; nil: there is none.
func Lookup(value any, path []string) any {
	for _, key := range path {
		object, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = object[key]
	}
	return value
}

// Text writes a value for a prompt: a text as it is, a list with one item on each line, anything else as JSON; nothing for
// nil.
func Text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	case []any:
		lines := make([]string, len(v))
		for i, item := range v {
			lines[i] = Text(item)
		}
		return strings.Join(lines, "\n")
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return JSON(value)
}

// JSON writes a value as JSON on one line.
func JSON(value any) string {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if enc.Encode(value) != nil {
		return ""
	}
	return strings.TrimSpace(out.String())
}

// String is the text of the expression.
func (e Expression) String() string { return e.text }

// maxCombinations bounds the search of [Expression.Possible].
const maxCombinations = 20_000

// Possible reports whether some combination of values meets the condition; of lists the values of a name. Without such a
// list, and with too many combinations, it is possible.
func (e Expression) Possible(of func(Use) []any) bool {
	uses, combinations := e.Uses(), 1
	lists := make([][]any, len(uses))
	for i, u := range uses {
		if lists[i] = of(u); len(lists[i]) == 0 {
			return true
		}
		if combinations *= len(lists[i]); combinations > maxCombinations {
			return true
		}
	}
	run, err := compile(e.text, Types{})
	if len(uses) > 0 {
		known := map[string]any{}
		for _, u := range uses {
			known[u.Name()] = nil
		}
		run, err = compile(e.text, anything(known))
	}
	if err != nil {
		return true
	}
	for n := range combinations {
		values := map[string]any{}
		for i, u := range uses {
			set(values, u.Path, lists[i][n%len(lists[i])])
			n /= len(lists[i])
		}
		if holds, err := run(values); err != nil || holds == true {
			return true
		}
	}
	return false
}

// set puts a value at a path.
func set(values map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		inner, ok := values[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			values[key] = inner
		}
		values = inner
	}
	values[path[len(path)-1]] = value
}
