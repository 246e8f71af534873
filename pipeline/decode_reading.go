package pipeline

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Names of the checks that the engine knows by itself. Any other name needs `any` or `none`.
const (
	CheckNonEmpty       = "non-empty"
	CheckMinimumLength  = "minimum-length"
	CheckHTMLPresent    = "html-present"
	CheckHTMLComplete   = "html-complete"
	CheckContainerWidth = "container-width"
)

// argument is the one key that a known check needs beside its name.
var argument = map[string]string{CheckNonEmpty: "", CheckMinimumLength: "over", CheckHTMLPresent: "", CheckHTMLComplete: "", CheckContainerWidth: "between"}

func (d *decoder) checks(o object) []Check {
	n := o.values["checks"]
	if n == nil {
		return nil
	}
	var out []Check
	lines := map[string]int{}
	for _, item := range d.list(n, o.at("checks")) {
		c, ok := d.check(item, o.at("checks"))
		if !ok {
			continue
		}
		if line, dup := lines[c.Name]; dup {
			d.problem(item, "check %q is there twice in %s, first on line %d; keep one of them", c.Name, o.at("checks"), line)
		}
		lines[c.Name] = item.Line
		out = append(out, c)
	}
	return out
}

func (d *decoder) check(n *yaml.Node, path string) (Check, bool) {
	var c Check
	o, ok := d.object(n, path, "name", "over", "between", "any", "none")
	if !ok {
		return c, false
	}
	c.Name = o.needText("name", "name: what the check is called")
	if c.Name == "" || !d.checkName(o.values["name"], "check", c.Name) {
		return c, false
	}
	d.checkArguments(o, c.Name)
	o.whole("over", &c.Over, 0, 1e9)
	if lo, hi, ok := o.between("between"); ok {
		c.Between = []int{int(lo), int(hi)}
	}
	c.Any, c.None = o.texts("any"), o.texts("none")
	return c, true
}

func (d *decoder) checkArguments(o object, name string) {
	want, known := argument[name]
	if !known {
		if !o.has("any") && !o.has("none") {
			d.problem(o.node, "check %q says nothing to look for; write any: [...] or none: [...], or %s", name, suggest(name, knownChecks()))
		}
		want = "any none"
	}
	for _, key := range []string{"over", "between", "any", "none"} {
		switch needed := key == want; {
		case needed && !o.has(key):
			d.problem(o.node, "check %q needs %s; write %s", name, key, map[string]string{"over": "over: 500", "between": "between: [940, 960]"}[key])
		case !strings.Contains(want, key) && o.has(key):
			d.problemAt(o.line(key), "check %q does not use %s; leave it out", name, key)
		}
	}
}

func knownChecks() []string {
	return []string{CheckNonEmpty, CheckMinimumLength, CheckHTMLPresent, CheckHTMLComplete, CheckContainerWidth}
}

func (d *decoder) tally(o object) []Tally {
	n := o.values["tally"]
	if n == nil {
		return nil
	}
	var out []Tally
	d.named(n, o.at("tally"), "tally", func(key, value *yaml.Node, path string) {
		out = append(out, Tally{Name: key.Value, Heading: d.text(value, path)})
	})
	return out
}

func (d *decoder) score(o object) *Score {
	n := o.values["score"]
	if n == nil {
		return nil
	}
	s := &Score{Name: "score", Range: []float64{0, 0}}
	f, ok := d.object(n, o.at("score"), "name", "find", "take", "range")
	if !ok {
		return s
	}
	if f.has("name") {
		s.Name = f.text("name")
	}
	s.Find = d.pattern(f)
	s.Take = f.oneOf("take", "last", "first")
	if f.need("range", "range: [0, 4]") != nil {
		s.Range[0], s.Range[1], _ = f.between("range")
	}
	return s
}

func (d *decoder) verdict(o object) *Verdict {
	n := o.values["verdict"]
	if n == nil {
		return nil
	}
	f, _ := d.object(n, o.at("verdict"), "find")
	return &Verdict{Find: d.pattern(f)}
}

// pattern reads `find`, a regular expression with one group.
func (d *decoder) pattern(o object) string {
	if o.node.Kind != yaml.MappingNode {
		return ""
	}
	find := o.needText("find", `find: 'a regular expression with one (group)'`)
	if find == "" {
		return ""
	}
	re, err := regexp.Compile(find)
	switch {
	case err != nil:
		d.problemAt(o.line("find"), "%s is not a regular expression: %s; correct it (the syntax is RE2)", o.at("find"), reason(err))
	case re.NumSubexp() != 1:
		d.problemAt(o.line("find"), "%s has %d groups; put round brackets around exactly the part to take, and (?:...) around others", o.at("find"), re.NumSubexp())
	}
	return find
}

func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

func (d *decoder) roleNamed(name string) (Role, bool) {
	i := slices.IndexFunc(d.def.Roles, func(r Role) bool { return r.Name == name })
	if i < 0 {
		return Role{}, false
	}
	return d.def.Roles[i], true
}

func (d *decoder) roleNames() []string {
	names := make([]string, len(d.def.Roles))
	for i, r := range d.def.Roles {
		names[i] = r.Name
	}
	return names
}
