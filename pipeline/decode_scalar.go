package pipeline

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

const maxName = 64

// nameShape is the shape of everything that becomes part of a file name or an id.
var nameShape = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// checkName says whether s may name a role, stage, set, note, order, agent or step.
func (d *decoder) checkName(n *yaml.Node, what, s string) bool {
	ok := nameShape.MatchString(s) && len(s) <= maxName && !strings.HasSuffix(s, ".")
	if !ok && s != "" {
		d.problem(n, "%s %q cannot be a name; use letters, digits, dots, dashes and underscores, at most %d", what, s, maxName)
	}
	return ok
}

// label checks a text that people read: one line, not blank, at most 200 bytes.
func (d *decoder) label(n *yaml.Node, what, s string) bool {
	ok := strings.TrimSpace(s) != "" && len(s) <= 200 && !strings.ContainsAny(s, "\r\n")
	if !ok {
		d.problem(n, "%s %q cannot be a label; write one line of at most 200 characters", what, s)
	}
	return ok
}

// duration lays a duration under key over the one in into.
func (o object) duration(key string, into *time.Duration) {
	n := o.values[key]
	if n == nil {
		return
	}
	v, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		o.d.problem(n, "%s is %s; write a duration such as 5s or 10m", o.at(key), kindOf(n))
	case n.Tag == "!!int" || n.Tag == "!!float":
		o.d.problem(n, "%s is the plain number %s; write its unit too, such as %ss or 10m", o.at(key), n.Value, n.Value)
	case err != nil:
		o.d.problem(n, "%s is %q, not a duration; write one such as 5s, 10m or 1h30m", o.at(key), n.Value)
	case v <= 0:
		o.d.problem(n, "%s is %s; write a duration above zero", o.at(key), n.Value)
	default:
		*into = v
	}
}

// whole lays a whole number from lo to hi over the one in into.
func (o object) whole(key string, into *int, lo, hi int) {
	n := o.values[key]
	if n == nil {
		return
	}
	v, err := strconv.Atoi(n.Value)
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" || err != nil || v < lo || v > hi {
		o.d.problem(n, "%s is %s; write a whole number from %d to %d", o.at(key), kindOf(n), lo, hi)
		return
	}
	*into = v
}

// number lays a number from lo to hi over the one in into.
func (o object) number(key string, into *float64, lo, hi float64) {
	n := o.values[key]
	if n == nil {
		return
	}
	v, ok := float(n)
	if !ok || v < lo || v > hi {
		o.d.problem(n, "%s is %s; write a number from %s to %s", o.at(key), kindOf(n), decimal(lo), decimal(hi))
		return
	}
	*into = v
}

func float(n *yaml.Node) (float64, bool) {
	v, err := strconv.ParseFloat(n.Value, 64)
	number := n.Kind == yaml.ScalarNode && (n.Tag == "!!int" || n.Tag == "!!float")
	return v, err == nil && number && !math.IsNaN(v) && !math.IsInf(v, 0)
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// yesNo is the truth value under key; false without the key.
func (o object) yesNo(key string) bool {
	n := o.values[key]
	if n == nil {
		return false
	}
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		o.d.problem(n, "%s is %s; write true or false", o.at(key), kindOf(n))
	}
	return strings.EqualFold(n.Value, "true")
}

// between is a list of exactly two numbers, the first not above the second.
func (o object) between(key string) (lo, hi float64, ok bool) {
	n := o.values[key]
	if n == nil || n.Kind != yaml.SequenceNode || len(n.Content) != 2 {
		if n != nil {
			o.d.problem(n, "%s is not a list of two numbers; write the lowest and the highest allowed, such as [0, 4]", o.at(key))
		}
		return 0, 0, false
	}
	lo, okLo := float(resolve(n.Content[0]))
	hi, okHi := float(resolve(n.Content[1]))
	if !okLo || !okHi || lo > hi {
		o.d.problem(n, "%s does not go up from one number to another; write the lowest and the highest allowed, such as [0, 4]", o.at(key))
		return 0, 0, false
	}
	return lo, hi, true
}
