package pipeline

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type form = map[string]any

// TestSchemaFollowsFromTheTypes compares the published JSON Schema with the tags and comments of the types, and with the rules.
func TestSchemaFollowsFromTheTypes(t *testing.T) {
	f := former{t: t, about: comments(t), defs: form{}}
	schema := f.object(reflect.TypeFor[Definition](), "")
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", "Passbook pipeline"
	schema["description"] = "A pipeline of agent calls: roles, files and stages. docs/pipelines.md explains every key."
	schema["$defs"] = f.defs
	text := lines(t, schema, 2) + "\n"
	if *update {
		require.NoError(t, os.WriteFile(publishedSchema, []byte(text), 0o644))
	}
	published, err := os.ReadFile(publishedSchema)
	require.NoError(t, err)
	require.Equal(t, string(published), text)
}

// lines is JSON with a line for each member, down to a depth.
func lines(t *testing.T, value any, depth int) string {
	members, ok := value.(form)
	if !ok || depth == 0 {
		text := &strings.Builder{}
		enc := json.NewEncoder(text)
		enc.SetEscapeHTML(false)
		require.NoError(t, enc.Encode(value))
		return strings.TrimSpace(text.String())
	}
	var all []string
	for _, key := range slices.Sorted(maps.Keys(members)) {
		all = append(all, fmt.Sprintf("%q: %s", key, lines(t, members[key], depth-1)))
	}
	return "{\n" + strings.Join(all, ",\n") + "\n}"
}

// comments are those of the fields of structs, by type and field.
func comments(t *testing.T) map[string]string {
	t.Helper()
	about := map[string]string{}
	paths, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, name := range field.Names {
						about[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(field.Doc.Text()+field.Comment.Text()), " ")
					}
				}
			}
			return true
		})
	}
	return about
}

// former forms the schema.
type former struct {
	t     *testing.T
	about map[string]string
	defs  form
}

// object is the schema of a mapping that is below a key of the definition.
func (f former) object(t reflect.Type, below string) form {
	properties, required, scalar := form{}, []string{}, form(nil)
	for _, k := range keysOf(t) {
		if len(k.in) > 0 && !slices.Contains(k.in, below) {
			continue
		}
		field := t.FieldByIndex(k.index)
		under := below
		if t == reflect.TypeFor[Definition]() {
			under = k.name
		}
		s := f.value(field.Type, k, under)
		owner := t
		for _, i := range k.index[:len(k.index)-1] {
			owner = owner.Field(i).Type
		}
		if s["description"] = f.about[owner.Name()+"."+field.Name]; s["description"] == "" && len(keysOf(t)) > 1 {
			f.t.Errorf("%s.%s has no comment", owner, field.Name)
		}
		if k.eg != "" {
			var eg any
			if require.NoError(f.t, yaml.Unmarshal([]byte(k.eg), &eg)); field.Type.Kind() == reflect.String {
				eg = strings.Trim(k.eg, "'")
			}
			s["examples"] = []any{eg}
		}
		if properties[k.name] = s; k.required {
			required = append(required, k.name)
		}
		if k.short {
			scalar = f.value(field.Type, k, under)
		}
	}
	if scalar != nil && len(properties) == 1 {
		return scalar
	}
	s := form{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	var all []any
	for _, r := range rules {
		if reflect.TypeOf(r.of) == t {
			all = append(all, ruleForm(r)...)
		}
	}
	if len(all) > 0 {
		s["allOf"] = all
	}
	if scalar != nil {
		return form{"if": form{"type": "object"}, "then": s, "else": scalar}
	}
	return s
}

// value is the schema of a value.
func (f former) value(t reflect.Type, k key, below string) form {
	scalar := []string{"string", "number", "boolean"}
	_, text := reflect.New(t).Interface().(reader)
	switch {
	case t.Kind() == reflect.Pointer:
		return f.value(t.Elem(), k, below)
	case k.kind == "words":
		return form{"type": append(scalar, "array"), "minItems": 1, "items": form{"type": scalar}}
	case k.kind == "value":
		return form{"type": append(scalar, "array"), "items": f.kind("text")}
	case k.kind == "pair":
		return form{"type": "array", "minItems": 2, "maxItems": 2, "items": form{"type": "number"}}
	case t == reflect.TypeFor[File]():
		return form{"type": "object", "minProperties": 1, "maxProperties": 1,
			"additionalProperties": f.kind("path"), "propertyNames": f.kind("label")}
	case t.Kind() == reflect.Slice && k.named != "":
		s := form{"type": "object", "minProperties": 1, "propertyNames": f.kind("name"),
			"additionalProperties": f.value(t.Elem(), key{}, below)}
		if k.named == "project" {
			s["maxProperties"] = maxProjects
		}
		return s
	case t.Kind() == reflect.Slice:
		only := k
		only.single, only.eg = false, ""
		s := form{"type": "array", "items": f.value(t.Elem(), only, below)}
		if k.least > 0 {
			s["minItems"] = k.least
		}
		if k.unique {
			s["uniqueItems"] = true
		}
		if !k.single {
			return s
		}
		if k.singles != nil {
			only.kind, only.choices = "", k.singles
		}
		return form{"if": form{"type": "array"}, "then": s, "else": f.value(t.Elem(), only, below)}
	case t.Kind() == reflect.Struct && !text && below == "limits" && t == reflect.TypeFor[Limits]():
		return f.object(t, below)
	case t.Kind() == reflect.Struct && !text:
		if f.defs[t.Name()] == nil {
			f.defs[t.Name()] = form{}
			f.defs[t.Name()] = f.object(t, below)
		}
		return form{"$ref": "#/$defs/" + t.Name()}
	case t.Kind() == reflect.Bool:
		return form{"type": "boolean"}
	case t.Kind() == reflect.String || text || t == reflect.TypeFor[time.Duration]():
		if k.choices != nil {
			return form{"type": "string", "enum": k.choices}
		}
		return f.kind(k.kindOf(t))
	}
	s := form{"type": "number"}
	if t.Kind() != reflect.Float64 {
		s["type"] = "integer"
	}
	if from, to := k.bounds(); k.to != "" {
		s["minimum"], s["maximum"] = from, to
		if k.above {
			delete(s, "minimum")
			s["exclusiveMinimum"] = from
		}
	}
	return s
}

// kind is the schema of a kind of texts.
func (f former) kind(name string) form {
	k, ok := kinds[name]
	if !ok {
		require.Empty(f.t, name, "no such kind")
		return form{"type": "string"}
	}
	s := form{"type": "string"}
	if k.schema != "" {
		require.NoError(f.t, json.Unmarshal([]byte("{"+k.schema+"}"), &s))
		s["type"] = "string"
	}
	if k.pattern != nil {
		s["pattern"] = k.pattern().String()
	}
	if k.scalar {
		s = form{"anyOf": []any{form{"const": 0}, s}}
	}
	if k.says != "" {
		s["errorMessage"] = k.says
	}
	f.defs[name] = s
	return form{"$ref": "#/$defs/" + name}
}

// ruleForm is the schema of a rule.
func ruleForm(r rule) (all []any) {
	add := func(then any) {
		if r.when != "" {
			then = form{"if": conditionForm(r.when), "then": then}
		}
		all = append(all, then)
	}
	var keys []any
	for _, k := range strings.Fields(r.one + r.any) {
		keys = append(keys, form{"required": []string{k}})
	}
	if r.one != "" {
		add(form{"oneOf": keys})
	} else if r.any != "" {
		add(form{"anyOf": keys})
	}
	say := func(s form) form {
		s["errorMessage"] = r.says
		if r.says == "" {
			s["errorMessage"] = "does not go with " + r.when + "; leave it out"
		}
		return s
	}
	for _, path := range strings.Fields(r.need) {
		steps := strings.Split(path, ".")
		s := form{"required": steps[len(steps)-1:]}
		if r.says != "" {
			say(s)
		}
		add(nested(steps[:len(steps)-1], s))
	}
	for _, path := range strings.Fields(r.not) {
		s := form{"not": form{}}
		if at, pattern, ok := strings.Cut(path, "~"); ok {
			add(nested(strings.Split(at, "."), form{"pattern": pattern}))
			continue
		}
		path, words, only := strings.Cut(path, "!=")
		path, refused, some := strings.Cut(path, "=")
		if only {
			s = form{"enum": strings.Split(words, "|")}
		} else if some {
			s = form{"not": form{"enum": strings.Split(refused, "|")}}
		}
		add(nested(strings.Split(path, "."), say(s)))
	}
	return all
}

// nested is the schema of what has a value at a path.
func nested(steps []string, s form) form {
	for i := len(steps) - 1; i >= 0; i-- {
		switch n, err := strconv.Atoi(steps[i]); {
		case err == nil:
			s = form{"minItems": n + 1, "prefixItems": []any{s}}
		case steps[i] == "*" && steps[i-1] == "roles":
			s = form{"additionalProperties": s}
		case steps[i] == "*":
			s = form{"items": s}
		default:
			s = form{"properties": form{steps[i]: s}}
		}
	}
	return s
}

// conditionForm is the schema of what meets a condition of a rule.
func conditionForm(when string) form {
	var alternatives []any
	for _, words := range strings.Split(when, " or ") {
		var all []any
		for _, w := range strings.Fields(words) {
			w, not := strings.CutPrefix(w, "!")
			path, values, some := strings.Cut(w, "=")
			steps := strings.Split(path, ".")
			s := form{}
			if some {
				s["enum"] = strings.Split(values, "|")
			}
			for i := len(steps) - 1; i >= 0; i-- {
				s = nested(steps[i:i+1], s)
				if _, err := strconv.Atoi(steps[i]); err == nil {
					s["type"] = "array"
				} else {
					s["type"], s["required"] = "object", steps[i:i+1]
				}
			}
			if not {
				s = form{"not": s}
			}
			all = append(all, s)
		}
		alternatives = append(alternatives, form{"allOf": all})
	}
	return form{"anyOf": alternatives}
}
