package pipeline

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/pipeline/expression"
)

// Keys of conditions.
const (
	ConditionUntil = "until"
	ConditionWhen  = "when"
	ConditionGate  = "quality_gate"
)

// checkConditions checks the conditions of a stage and of its steps.
func (d *decoder) checkConditions(at location, stage int) {
	s := d.def.Stages[stage]
	end := d.def.untilEnd(stage)
	if s.Repeat != nil {
		d.checkCondition(at.key("repeat").key(ConditionUntil), s.Repeat.Until, end)
	}
	d.checkCondition(at.key(ConditionGate), s.Gate, end)
	d.checkCondition(at.key(ConditionWhen), s.When, where{stage, ofStage})
	for pi, p := range s.Steps {
		d.checkCondition(d.steps(at, s).item(pi).key(ConditionWhen), p.When, where{stage, pi})
	}
}

// checkCondition reports what is wrong with a condition, each problem at its place in the text.
func (d *decoder) checkCondition(at location, text string, from where) {
	if n := d.get(at); n == nil || n.Tag != "!!str" {
		return // reported by the schema
	}
	if strings.TrimSpace(text) == "" {
		d.wrong(at, "is blank; write a condition such as approved and tests.ok")
		return
	}
	e, err := expression.Parse(text)
	if err != nil {
		d.faulty(at, err, "; write a condition such as score >= 3.5, or approved and tests.ok")
		return
	}
	found := len(d.found)
	known := d.def.known()
	for _, u := range e.Uses() {
		if what := d.refusedUse(e, u, known, from); what != "" {
			d.reportIn(at, u.Line, u.Column, what)
		}
	}
	if len(d.found) > found {
		return
	}
	if err := expression.Check(text, known); err != nil {
		d.faulty(at, err, "")
		return
	}
	d.checkPossible(at, e, from)
}

// faulty reports a fault of a condition, with advice.
func (d *decoder) faulty(at location, err error, advice string) {
	fault := &expression.Error{Line: 1, What: err.Error()}
	errors.As(err, &fault)
	d.reportIn(at, fault.Line, fault.Column, "cannot be read: "+fault.What+advice)
}

// reportIn reports a problem at a line and a column of a text.
func (d *decoder) reportIn(at location, line, column int, what string) {
	_, value, _ := d.find(at)
	p := Problem{File: d.file, Line: max(value.Line, 1), Column: value.Column}
	switch {
	case value.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		p.Line, p.Column = p.Line+line, 0
	case value.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		p.Column += column + 1
	default:
		p.Column += column
	}
	p.What = d.name(at) + " " + what
	d.found = append(d.found, p)
}

// refusedUse returns why a name of a condition, or a member of one, cannot be used at a place; empty: it can.
func (d *decoder) refusedUse(e expression.Expression, u expression.Use, known expression.Types, from where) string {
	name := u.Name()
	if _, ok := known[name]; !ok {
		return d.unknownName(e, name, known)
	}
	if slices.Contains(expression.Reserved(), name) {
		return d.refusedVariable(name, from)
	}
	for _, o := range d.def.outputs() {
		if o.id != name {
			continue
		}
		why, maybe := o.seenFrom(d.def, from)
		switch _, ok := expression.Member(o.typ, u.Path[1:]); {
		case why != "":
			return fmt.Sprintf("asks for %s, %s", name, why)
		case len(u.Path) == 1 && !expression.IsList(o.typ):
			if of, compared := e.Compared(name); compared && (of == "ok" || of == "failed") {
				return "" // the other side is reported
			}
			return fmt.Sprintf("asks for %s, the whole output of a step; name a member: %s", name,
				strings.Join(prefixed(name, sortedMembers(o.typ)), ", "))
		case !ok:
			return fmt.Sprintf("asks for %s, which is not in the output of %s; %s", u, name,
				suggest(u.Path[len(u.Path)-1], sortedMembers(o.typ)))
		case maybe && len(u.Path) > 1 && !u.Safe:
			return fmt.Sprintf("asks for %s, and the step may be skipped; write %s?.%s", u, name,
				strings.Join(u.Path[1:], "."))
		}
	}
	return ""
}

func prefixed(id string, members []string) []string {
	out := make([]string, len(members))
	for i, m := range members {
		out[i] = id + "." + m
	}
	return out
}

// unknownName describes what a name may mean: a text without quotes, a result of a command in the form of earlier definitions,
// a mistyped name.
func (d *decoder) unknownName(e expression.Expression, name string, known expression.Types) string {
	names := slices.Sorted(maps.Keys(known))
	of, compared := e.Compared(name)
	switch {
	case compared && name == "ok":
		return fmt.Sprintf("has the unknown name %s; whether a command passed is %s.%s", name, of, OutputOK)
	case compared && name == "failed":
		return fmt.Sprintf("has the unknown name %s; whether a command failed is not %s.%s", name, of, OutputOK)
	case compared && len(Nearest(name, names)) == 0:
		return fmt.Sprintf("has the unknown name %s; texts are quoted: %q", name, name)
	}
	return fmt.Sprintf("has the unknown name %s; %s", name, suggest(name, names))
}

func (d *decoder) commandNamed(id string) bool {
	return slices.ContainsFunc(d.def.outputs(), func(o output) bool {
		return o.id == id && d.def.Stages[o.stage].Steps[o.step].Run != ""
	})
}

// refusedVariable returns why a variable never has a value at a place.
func (d *decoder) refusedVariable(name string, from where) string {
	s := d.def.Stages[from.stage]
	atEnd := from.step == len(s.Steps)
	before := func(has func(Role) bool) bool {
		for si, other := range d.def.Stages[:from.stage+1] {
			if atEnd && si < from.stage {
				continue // a round has its own values
			}
			for pi, p := range other.Steps {
				if si == from.stage && pi >= from.step && other.Repeat == nil {
					continue
				}
				for _, member := range append(slices.Clone(p.Together), p.Role) {
					if r, ok := d.roleNamed(member); ok && has(r) {
						return true
					}
				}
			}
		}
		return false
	}
	place := "before it"
	if atEnd {
		place = "of the stage"
	}
	switch name {
	case expression.Approved, expression.Verdict:
		if !before(Role.Judges) {
			return fmt.Sprintf("asks for %s, and no role step %s has a verdict; write schema: review or verdict: {find: ...} in "+
				"the role that does", name, place)
		}
	case expression.Score, expression.Scores:
		if !before(func(r Role) bool { return r.Score != nil }) {
			return fmt.Sprintf("asks for %s, and no role step %s has one; write score: {find: ..., range: ...} in the role that "+
				"does", name, place)
		}
	}
	if (name == expression.Round || name == expression.Scores) && s.Repeat == nil {
		return fmt.Sprintf("asks for %s, and the stage has no repeat", name)
	}
	return ""
}

// checkPossible reports a condition that no result can meet, as far as the possible values can be listed.
func (d *decoder) checkPossible(at location, e expression.Expression, from where) {
	numbers, _ := e.Literals()
	unknown := false
	possible := e.Possible(func(u expression.Use) []any {
		values := d.candidates(u, from, numbers)
		unknown = unknown || values == nil
		return values
	})
	if possible || unknown {
		return
	}
	var only []string
	for _, u := range e.Uses() {
		only = append(only, u.String()+" is "+d.scale(u, from, numbers))
	}
	what := fmt.Sprintf("waits for %s, which no result meets", oneLine(e.String()))
	if len(only) > 0 {
		what += ": " + strings.Join(only, ", ")
	}
	d.wrong(at, "%s", what)
}

// scale describes what a name can be.
func (d *decoder) scale(u expression.Use, from where, numbers []float64) string {
	if r := d.scoreRange(u, from); r != nil {
		return fmt.Sprintf("from %g to %g", r[0], r[1])
	}
	var texts []string
	for _, v := range d.candidates(u, from, numbers) {
		if text, ok := v.(string); ok {
			texts = append(texts, fmt.Sprintf("%q", text))
		} else {
			texts = append(texts, fmt.Sprint(v))
		}
	}
	return strings.Join(texts, " or ")
}

// candidates lists what a name can be, with a number between and beside each two of a condition; nil: it is not known.
func (d *decoder) candidates(u expression.Use, from where, numbers []float64) []any {
	last := u.Path[len(u.Path)-1]
	if last == expression.Approved || last == OutputOK && d.commandNamed(u.Name()) {
		return []any{true, false}
	}
	if r := d.scoreRange(u, from); r != nil {
		bounds := append(slices.Clone(numbers), r...)
		slices.Sort(bounds)
		var values []any
		for i, n := range bounds {
			if i > 0 {
				values = append(values, (bounds[i-1]+n)/2)
			}
			values = append(values, n)
		}
		return slices.DeleteFunc(values, func(v any) bool { return v.(float64) < r[0] || v.(float64) > r[1] })
	}
	if last == expression.Verdict {
		return d.verdicts(u, from)
	}
	return nil
}

// rolesOf lists the roles whose score or verdict a name of a condition is.
func (d *decoder) rolesOf(u expression.Use, from where) (roles []Role) {
	for si, s := range d.def.Stages {
		for _, p := range s.Steps {
			for _, name := range append(slices.Clone(p.Together), p.Role) {
				r, ok := d.roleNamed(name)
				own := len(u.Path) == 1 && si == from.stage || len(u.Path) > 1 && (d.def.idOf(p) == u.Name() || name == u.Name())
				if ok && own {
					roles = append(roles, r)
				}
			}
		}
	}
	return roles
}

// scoreRange is the range of a score; nil: the name is none, or its range is not known.
func (d *decoder) scoreRange(u expression.Use, from where) []float64 {
	if u.Path[len(u.Path)-1] != expression.Score {
		return nil
	}
	var found []float64
	for _, r := range d.rolesOf(u, from) {
		switch {
		case r.Score == nil:
		case len(r.Score.Range) != 2 || r.Score.Range[0] >= r.Score.Range[1]:
			return nil // reported by another check
		case found == nil:
			found = slices.Clone(r.Score.Range)
		default:
			found = []float64{min(found[0], r.Score.Range[0]), max(found[1], r.Score.Range[1])}
		}
	}
	return found
}

// verdicts lists the words that a verdict can be; nil: they cannot be listed.
func (d *decoder) verdicts(u expression.Use, from where) (words []any) {
	for _, r := range d.rolesOf(u, from) {
		if r.Schema == SchemaReview {
			return nil // a role may return any word
		}
		if r.Verdict == nil {
			continue
		}
		found, ok := alternatives(r.Verdict.Find)
		if !ok {
			return nil
		}
		for _, w := range found {
			words = append(words, w)
		}
	}
	return words
}

// checkApproves reports a verdict whose words never approve the work.
func (d *decoder) checkApproves(at location, r Role) {
	if r.Verdict == nil || r.Schema == SchemaReview {
		return
	}
	found, ok := alternatives(r.Verdict.Find)
	if !ok || slices.ContainsFunc(found, func(w string) bool { return Approves(r.Approval(), w) }) {
		return
	}
	if len(r.Verdict.Approves) > 0 {
		d.wrong(at.key("approves"), "is %s, and the verdict is only ever %s; write one of them",
			strings.Join(r.Verdict.Approves, " or "), strings.Join(found, " or "))
		return
	}
	d.wrong(at, "is only ever %s, and none of them approves the work; write approves: WORD with the word that does",
		strings.Join(found, " or "))
}
