package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// Until is a parsed stop condition of a repeated stage: comparisons joined by and/or, and binding tighter.
// It is met when every comparison of at least one group holds.
type Until struct {
	groups [][]comparison
}

type comparison struct {
	name  string // score, verdict or the `as` of a step
	op    string
	value string
}

var (
	untilToken = lazyregexp.New(`^\s*(score_gain\(\d+\)|==|!=|>=|<=|>|<|"[^"]*"|'[^']*'|[A-Za-z0-9_.+-]+|\S)`)
	untilName  = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_-]*$`)
	untilValue = lazyregexp.New(`^("[^"]*"|'[^']*'|[A-Za-z0-9_.+-]+)$`)
	untilNum   = lazyregexp.New(`^[+-]?[0-9]{1,15}(\.[0-9]{1,30})?$`)
)

// ParseUntil reads a condition such as: verdict == done and tests == ok.
func ParseUntil(src string) (Until, error) {
	var u Until
	words := untilWords(src)
	group := []comparison{}
	for {
		c, rest, err := readComparison(src, words)
		if err != nil {
			return Until{}, err
		}
		group = append(group, c)
		if len(rest) > 0 && rest[0] == "and" {
			words = rest[1:]
			continue
		}
		u.groups = append(u.groups, group)
		if len(rest) == 0 {
			return u, nil
		}
		if rest[0] != "or" {
			return Until{}, fmt.Errorf("cannot read %q after %s in %q; join comparisons with and, or", rest[0], c, src)
		}
		group, words = nil, rest[1:]
	}
}

func untilWords(src string) []string {
	var words []string
	for m := untilToken.FindStringSubmatch(src); m != nil; m = untilToken.FindStringSubmatch(src) {
		words = append(words, m[1])
		src = src[len(m[0]):]
	}
	return words
}

func readComparison(src string, words []string) (comparison, []string, error) {
	if len(words) < 3 {
		return comparison{}, nil,
			fmt.Errorf("%q ends in the middle of a comparison; write NAME == VALUE, such as score >= 3.5", src)
	}
	c := comparison{name: words[0], op: words[1], value: unquote(words[2])}
	switch {
	case !c.named():
		return c, nil, fmt.Errorf("%q is not a name in %q; write score, score_gain(N), verdict, or the `as` of a step",
			c.name, src)
	case !slices.Contains([]string{"==", "!=", ">=", ">", "<=", "<"}, c.op):
		return c, nil, fmt.Errorf("%q is not a comparison in %q; write ==, !=, >=, >, <= or <", c.op, src)
	case !untilValue.MatchString(words[2]):
		return c, nil, fmt.Errorf("%q is not a value in %q; write a number, a word, or a text in quotes", words[2], src)
	case c.op[0] != '=' && c.op[0] != '!' && !untilNum.MatchString(c.value):
		return c, nil, fmt.Errorf("%q is not a number in %q; only == and != compare words", c.value, src)
	case c.isScore() && !untilNum.MatchString(c.value):
		return c, nil, fmt.Errorf("%q is not a number in %q; compare %s with a number", c.value, src, c.name)
	}
	return c, words[3:], nil
}

// named reports whether the name can have a value.
func (c comparison) named() bool {
	return c.name != "and" && c.name != "or" && untilName.MatchString(c.name) || c.name != "score" && c.isScore()
}

// isScore reports whether the name is a score or a difference of scores.
func (c comparison) isScore() bool {
	_, gain := ScoreGain(c.name)
	return gain || c.name == "score"
}

func unquote(word string) string {
	if word[0] == '"' || word[0] == '\'' {
		return word[1:max(len(word)-1, 1)]
	}
	return word
}

func (c comparison) String() string { return c.name + " " + c.op + " " + c.value }

// Names lists what the condition asks for, each once, in the order of its first use.
func (u Until) Names() []string {
	var names []string
	for _, group := range u.groups {
		for _, c := range group {
			if !slices.Contains(names, c.name) {
				names = append(names, c.name)
			}
		}
	}
	return names
}

// Eval reports whether the condition is met, and whether that is known: it is known only once every name has a value.
// Scores are decimal strings. An empty value and "null" mean that a reply had none: that is a known value, and meets
// nothing.
func (u Until) Eval(values map[string]string) (met, known bool) {
	for _, name := range u.Names() {
		if _, ok := values[name]; !ok {
			return false, false
		}
	}
	for _, group := range u.groups {
		all := !slices.ContainsFunc(group, func(c comparison) bool { return !c.holds(values[c.name]) })
		met = met || all
	}
	return met, true
}

// Possible reports whether the condition can still be met: by the values that are known, and by any others.
func (u Until) Possible(values map[string]string) bool {
	fails := func(c comparison) bool {
		value, known := values[c.name]
		return known && !c.holds(value)
	}
	return slices.ContainsFunc(u.groups, func(group []comparison) bool { return !slices.ContainsFunc(group, fails) })
}

func (c comparison) holds(value string) bool {
	if value == "" || value == "null" {
		return false
	}
	a, aOK := untilNumber(value)
	b, bOK := untilNumber(c.value)
	if !aOK || !bOK {
		return c.op == "==" && value == c.value || c.op == "!=" && value != c.value
	}
	switch c.op {
	case "==":
		return a == b
	case "!=":
		return a != b
	case ">=":
		return a >= b
	case ">":
		return a > b
	case "<=":
		return a <= b
	default:
		return a < b
	}
}

func untilNumber(s string) (float64, bool) {
	if !untilNum.MatchString(s) {
		return 0, false
	}
	v, err := strconv.ParseFloat(s, 64)
	return v, err == nil
}

// shape is the condition without its thresholds, for ConfigHash: a higher threshold does not make a different pipeline.
func (u Until) shape() string {
	var groups []string
	for _, group := range u.groups {
		var parts []string
		for _, c := range group {
			if untilNum.MatchString(c.value) {
				c.value = "#"
			}
			parts = append(parts, c.String())
		}
		groups = append(groups, strings.Join(parts, " and "))
	}
	return strings.Join(groups, " or ")
}
