package pipeline

import (
	"cmp"
	_ "embed" // the schema
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"
)

// schemaSource is the JSON Schema (draft 2020-12) of a definition, for Parse and for editors. Its keyword errorMessage,
// which editors show too, contains the message for a violation, and its keyword wants what to write instead of another
// type. Patterns and conditions without errorMessage are for
// editors: Parse checks the same on the decoded definition, with a better message.
//
//go:embed definition.schema.json
var schemaSource string

const schemaURL = "https://passbook.invalid/definition.schema.json"

type definitionSchema struct {
	compiled *jsonschema.Schema
	source   any
}

// schema is compiled once, with the formats that only Go can check.
var schema = sync.OnceValue(func() definitionSchema {
	source, err := jsonschema.UnmarshalJSON(strings.NewReader(schemaSource))
	if err != nil {
		panic(err) // embedded in the program
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for name, check := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: check})
	}
	if err := c.AddResource(schemaURL, source); err != nil {
		panic(err)
	}
	return definitionSchema{compiled: c.MustCompile(schemaURL), source: source}
})

// checkShape reports violations of the schema, and empties values that do not fit the Go types. It returns the
// locations that it leaves to other checks.
func (d *decoder) checkShape() []location {
	err := schema().compiled.Validate(plain(d.root, map[*yaml.Node]any{}))
	var refused *jsonschema.ValidationError
	if !errors.As(err, &refused) {
		return nil
	}
	s := shapeErrors{d: d}
	s.add(refused)
	for _, n := range s.useless {
		*n = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line, Column: n.Column}
	}
	for _, at := range d.mappingsOfNames() {
		for _, key := range d.keys(at.location) {
			if n, _, _ := d.find(at.key(key)); !nameShape.MatchString(key) {
				d.problem(n, "%s: %s %q %s", d.name(at.location), at.what, key, nameAdvice)
			}
		}
	}
	return s.left
}

// unreadable reports what no other check has reported: values left to other checks, and errors of the YAML library.
func (d *decoder) unreadable(left []location) {
	for _, at := range left {
		d.wrong(at, "has a value that is not allowed; see docs/pipelines.md")
	}
	for _, text := range d.unread {
		line, what, _ := strings.Cut(strings.TrimPrefix(text, "line "), ": ")
		n, _ := strconv.Atoi(line)
		d.problemAt(n, "%s; write another value", what)
	}
}

// shapeErrors turns the errors of the schema into readable problems.
type shapeErrors struct {
	d       *decoder
	useless []*yaml.Node
	left    []location
}

// rule is a schema, or a part of one.
type rule map[string]any

func (r rule) text(keyword string) string {
	text, _ := r[keyword].(string)
	return text
}

// ruleAt returns the part of the schema with a URL, its enclosing parts from the innermost outwards, and the steps of
// the URL.
func ruleAt(location string) (innermost rule, around []rule, steps []string) {
	_, pointer, _ := strings.Cut(location, "#")
	var part any = schema().source
	innermost, _ = part.(map[string]any)
	around = []rule{innermost}
	for _, step := range strings.Split(pointer, "/")[1:] {
		if plain, err := url.PathUnescape(step); err == nil {
			step = plain
		}
		switch whole := part.(type) {
		case map[string]any:
			part = whole[step]
		case []any:
			i, _ := strconv.Atoi(step)
			part = whole[i]
		}
		innermost, _ = part.(map[string]any)
		around, steps = append(around, innermost), append(steps, step)
	}
	slices.Reverse(around)
	return innermost, around, steps
}

func (s *shapeErrors) add(e *jsonschema.ValidationError) {
	at := location(e.InstanceLocation)
	r, around, steps := ruleAt(e.SchemaURL)
	name, message := s.d.name(at), r.text("errorMessage")
	key, value, _ := s.d.find(at)
	report := s.d.problem
	switch k := e.ErrorKind.(type) {
	case *kind.Type, *kind.Minimum, *kind.Maximum:
		s.useless = append(s.useless, value)
		if s.unquoted(r, value) {
			report(value, "%s is %s, not a text; put it in quotes: %q", name, kindOf(value), value.Value)
		} else {
			report(value, "%s is %s; write %s", name, kindOf(value), r.wants())
		}
	case *kind.Format:
		s.useless = append(s.useless, value)
		if message == "" {
			message = k.Err.Error()
		}
		report(value, "%s%s", name, after(k.Want != "condition", value)+message)
	case *kind.Pattern:
		if message == "" {
			s.left = append(s.left, at)
			return
		}
		report(value, "%s%s", name, after(true, value)+message)
	case *kind.Enum:
		if value.Tag == "!!str" {
			advice := cmp.Or(replaced[at.last()+": "+value.Value],
				strings.TrimSpace(suggest(value.Value, texts(k.Want))+" "+message))
			report(value, "%s is %q; %s", name, value.Value, advice)
		}
	case *kind.Required:
		for _, missing := range k.Missing {
			if message == "" || r["properties"] != nil {
				report(value, "%s is missing in %s; write %s", missing, name, example(around, missing))
			} else {
				report(value, "%s %s", name, message)
			}
		}
	case *kind.AdditionalProperties:
		for _, unknown := range k.Properties {
			s.unknown(at, unknown, r.keys())
		}
	case *kind.MinItems, *kind.MinProperties, *kind.MaxProperties:
		if message == "" {
			message = "is empty; put something in it or leave the key out"
		}
		report(value, "%s %s", name, message)
	case *kind.UniqueItems:
		again := value.Content[k.Duplicates[1]]
		report(again, "%s has %s twice; keep one", name, again.Value)
	case *kind.OneOf:
		s.choice(at, r.choices("oneOf"), around)
	case *kind.AnyOf:
		s.choice(at, r.choices("anyOf"), around)
	case *kind.Not:
		if not, _ := r["not"].(map[string]any); len(not) == 0 {
			value = key // the key must not be there
		}
		if message == "" {
			s.left = append(s.left, at)
			return
		}
		report(value, "%s %s", name, message)
	case *kind.FalseSchema:
		s.forbidden(at, around[2], steps)
	case *kind.PropertyNames: // reported by mappingsOfNames and files, with a position
	default:
		for _, cause := range e.Causes {
			s.add(cause)
		}
		if len(e.Causes) == 0 {
			s.left = append(s.left, at)
		}
	}
}

// unquoted reports a text without quotes that YAML reads as another type.
func (s *shapeErrors) unquoted(r rule, n *yaml.Node) bool {
	text := r.text("type") == "string" && r.text("format") != "go-duration" && r.text("format") != "byte-size"
	return text && n.Kind == yaml.ScalarNode && n.Tag != "!!null"
}

// forbidden reports a key that cannot be combined with another key, or with the condition of the enclosing rule.
func (s *shapeErrors) forbidden(at location, around rule, steps []string) {
	key, _, _ := s.d.find(at)
	if message := around.text("errorMessage"); message != "" {
		s.d.problem(key, "%s %s", s.d.name(at), message)
		return
	}
	if i := slices.Index(steps, "dependentSchemas"); i >= 0 {
		owner := at[:len(at)-1]
		step, _, _ := ruleAt(schemaURL + "#/" + strings.Join(steps[:i], "/"))
		present := s.present(owner, step.choices("oneOf"))
		if len(present) > 0 && present[0] == steps[i+1] {
			s.d.problem(key, "%s: %s does not go with %s; leave it out", s.d.name(owner), at[len(at)-1], steps[i+1])
		}
	}
}

// choice reports a mapping that must have exactly one of some keys and has none or several.
func (s *shapeErrors) choice(at location, keys []string, around []rule) {
	_, value, _ := s.d.find(at)
	switch present := s.present(at, keys); {
	case len(keys) == 0:
	case len(present) == 0:
		names := strings.Join(keys, ", ")
		s.d.problem(value, "%s has none of %s; write one, such as %s", s.d.name(at), names, example(around, keys[0]))
	default:
		s.d.problem(value, "%s has %s; keep one", s.d.name(at), strings.Join(present, " and "))
	}
}

func (s *shapeErrors) present(at location, keys []string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return s.d.get(at.key(k)) == nil })
}

// choices lists the keys of rules that each require one key.
func (r rule) choices(keyword string) []string {
	var keys []string
	list, _ := r[keyword].([]any)
	for _, item := range list {
		one, _ := item.(map[string]any)
		required, _ := one["required"].([]any)
		keys = append(keys, texts(required)...)
	}
	return keys
}

func (r rule) keys() []string {
	properties, _ := r["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// wants describes the values that the rule allows.
func (r rule) wants() string {
	if text := r.text("wants"); text != "" {
		return text
	}
	switch r["type"] {
	case "object":
		if r["maxProperties"] != nil {
			return "one label and its path, such as Rules: grammar/rules.md"
		}
		return "a mapping of keys and values"
	case "array":
		return "a list"
	case "boolean":
		return "true or false"
	case "integer":
		return fmt.Sprintf("a whole number from %v to %v", r["minimum"], r["maximum"])
	case "number":
		return fmt.Sprintf("a number from %v to %v", r["minimum"], r["maximum"])
	case "string":
		if r.text("format") == "go-duration" {
			return "a duration with its unit, such as 5s, 10m or 1h30m"
		}
		if r.text("format") == "byte-size" {
			return "a size with its unit, such as 500KB, 32MB or 2GB"
		}
		return "a text"
	default:
		return "a text or a list of texts"
	}
}

// example shows how to write a missing key, from the innermost rule that defines it.
func example(around []rule, key string) string {
	for _, r := range around {
		properties, _ := r["properties"].(map[string]any)
		property, ok := properties[key].(map[string]any)
		if !ok {
			continue
		}
		if choices, _ := property["enum"].([]any); choices != nil {
			words := texts(choices)
			last := max(0, len(words)-2)
			return key + ": " + strings.Join(append(words[:last:last], strings.Join(words[last:], " or ")), ", ")
		}
		if examples, _ := property["examples"].([]any); len(examples) > 0 {
			return key + ": " + flow(examples[0])
		}
	}
	return "it"
}

// flow writes a value of the schema as YAML on one line.
func flow(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for key, value := range v {
			parts = append(parts, key+": "+flow(value))
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, item := range v {
			parts = append(parts, flow(item))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	default:
		return fmt.Sprint(v)
	}
}

func texts(values []any) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// after joins the name of a location to the message, with the value between them if it is a scalar.
func after(quote bool, n *yaml.Node) string {
	switch {
	case n.Kind != yaml.ScalarNode:
		return " "
	case quote:
		return fmt.Sprintf(": %q ", n.Value)
	default:
		return ": "
	}
}

// unknown reports a key that does not exist, or no longer.
func (s *shapeErrors) unknown(at location, key string, known []string) {
	n, _, _ := s.d.find(at.key(key))
	if advice := cmp.Or(replaced[at.last()+"."+key], replaced[key]); advice != "" {
		s.d.problem(n, "%s.%s no longer exists: %s", s.d.name(at), key, advice)
		return
	}
	s.d.problem(n, "unknown key %q in %s; %s", key, s.d.name(at), suggest(key, known))
}

// replaced are keys of earlier releases, and what to write instead.
var replaced = map[string]string{
	"as":    "write id instead; conditions name members of its output, such as tests.ok",
	"scope": "write schema: plan; the files of the plan are the declared scope",

	"verdict.schema": "write schema: review in the role",
	"gives: list":    "write gives: report and a schema, whose output has the list",
	"rate_limit":     "a limit of the provider uses no attempt; write wait: {first: 30s, max: 15m} and max_wait: 12h",
}
