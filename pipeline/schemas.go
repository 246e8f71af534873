package pipeline

import (
	_ "embed" // the schemas
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/passbook-run/passbook/pipeline/expression"
)

// Schemas that Passbook ships, by their names in definitions.
const (
	SchemaReview = "review" // verdict, ship_ready, findings, blockers, gaps; a reply with it has a verdict
	SchemaPlan   = "plan"   // summary, risk, files, steps; its files are the declared scope of the work
)

//go:embed plan.schema.json
var planSchema string

// reviewType is the type of a review.
var reviewType = expression.Object(map[string]expression.Type{
	"verdict": expression.String, "approved": expression.Bool, "ship_ready": expression.Bool, "summary": expression.String,
	"findings": expression.List(findingType), "blockers": expression.List(findingType), "gaps": expression.List(findingType),
})

var findingType = expression.Object(map[string]expression.Type{
	"severity": expression.String, "file": expression.String, "line": expression.Number, "text": expression.String,
})

// schemaType is the type of the JSON that a role with a schema returns.
func schemaType(r Role) expression.Type {
	if r.Schema == SchemaReview {
		return reviewType
	}
	var schema any
	if json.Unmarshal([]byte(r.SchemaText), &schema) != nil {
		return expression.Any // reported by checkSchema
	}
	return expression.OfSchema(schema)
}

func (d *decoder) checkSchemas() {
	for i := range d.def.Roles {
		d.checkSchema(location{"roles", d.def.Roles[i].Name, "schema"}, &d.def.Roles[i])
	}
}

// checkSchema reads the JSON Schema of a role's reply.
func (d *decoder) checkSchema(at location, r *Role) {
	switch n := d.get(at); {
	case n == nil || r.Schema == "":
		return
	case r.Gives == GivesArtifact:
		d.wrong(at, "describes the JSON at the end of a reply, and the role outputs the artifact; use a separate role")
		return
	case r.Schema == SchemaReview:
		return
	case r.Schema == SchemaPlan:
		r.SchemaText = planSchema
		return
	}
	clean, ok := d.existing(at)
	if r.Schema = clean; !ok {
		return
	}
	raw, err := fs.ReadFile(d.folder, r.Schema)
	if err == nil {
		_, err = compileSchema(string(raw))
	}
	if err != nil {
		d.wrong(at, "names %s, which is not a JSON Schema: %v; correct it", r.Schema, err)
		return
	}
	r.SchemaText = string(raw)
}

// CheckValue checks JSON against a JSON Schema. The error lists what does not fit, with the places in the value.
func CheckValue(schema, value string) error {
	compiled, err := compileSchema(schema)
	if err != nil {
		return err
	}
	var v any
	if err := json.NewDecoder(strings.NewReader(value)).Decode(&v); err != nil {
		return err
	}
	if err = compiled.Validate(v); err == nil {
		return nil
	}
	var root any
	if err := json.Unmarshal([]byte(schema), &root); err != nil {
		return err
	}
	faults := faultsOf(root, root, v, "")
	if len(faults) == 0 {
		faults = []string{"at '': " + reason(err)}
	}
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return errors.New(strings.Join(faults, ", "))
}

// faultsOf lists what does not fit a schema: first in the value itself, then in its members or items.
func faultsOf(root, schema, value any, at string) (faults []string) {
	s, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	if ref, _ := s["$ref"].(string); ref != "" && strings.HasPrefix(ref, "#") {
		return faultsOf(root, partOf(root, ref), value, at)
	}
	itself, below := maps.Clone(s), []string{}
	for _, defs := range []string{"$defs", "definitions"} {
		itself[defs] = expression.Lookup(root, []string{defs})
	}
	members, _ := value.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	if properties = maps.Clone(properties); properties != nil {
		itself["properties"] = properties
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if v, ok := members[name]; ok {
			below = append(below, faultsOf(root, properties[name], v, at+"/"+name)...)
		}
		properties[name] = true
	}
	if items, ok := value.([]any); ok && s["items"] != nil {
		for i, v := range items {
			below = append(below, faultsOf(root, s["items"], v, at+"/"+strconv.Itoa(i))...)
		}
		itself["items"] = true
	}
	text, err := json.Marshal(itself)
	if err != nil {
		return append(faults, err.Error())
	}
	if compiled, err := compileSchema(string(text)); err == nil {
		if err = compiled.Validate(value); err != nil {
			faults = append(faults, fmt.Sprintf("at '%s': %s", at, reason(err)))
		}
	}
	return append(faults, below...)
}

// reason is an error of the library without the path in the schema.
func reason(err error) string {
	text := err.Error()
	for strings.HasPrefix(text, "validating ") {
		_, text, _ = strings.Cut(text, ": ")
	}
	return cutValue(text)
}

// compileSchema compiles a JSON Schema that refers to nothing outside of it.
func compileSchema(text string) (*jsonschema.Resolved, error) {
	var source any
	if err := json.Unmarshal([]byte(text), &source); err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if fault := wrongPart(source, source, nil); fault != "" {
		return nil, errors.New(fault)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		return nil, err
	}
	elsewhere := func(uri *url.URL) (*jsonschema.Schema, error) {
		return nil, &elsewhereError{uri.String()}
	}
	compiled, err := schema.Resolve(&jsonschema.ResolveOptions{Loader: elsewhere})
	if refers := (*elsewhereError)(nil); errors.As(err, &refers) {
		return nil, refers
	} else if err != nil {
		return nil, err
	}
	if err := compiled.Validate(nil); err != nil && strings.Contains(err.Error(), "cannot validate version") {
		return nil, err
	}
	return compiled, nil
}

type elsewhereError struct{ uri string }

func (e *elsewhereError) Error() string {
	return "it refers to " + e.uri + ", and a schema has all its parts in its own file"
}

// wrongPart returns a fault that the library does not report: a type that JSON does not have, which no value has, and a part
// that is within itself, whose check never ends. refs are the references that led to a part about the same value.
func wrongPart(root, schema any, refs []string) string {
	switch s := schema.(type) {
	case []any:
		for _, part := range s {
			if fault := wrongPart(root, part, refs); fault != "" {
				return fault
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(s)) {
			word, text := s[key].(string)
			fault := ""
			switch {
			case key == "enum", key == "const", key == "default", key == "examples", refs != nil && !slices.Contains(inPlace, key):
			case key == "type" && text && !slices.Contains(jsonTypes, word):
				fault = fmt.Sprintf("it has the type %q; write one of: %s", word, strings.Join(jsonTypes, ", "))
			case key == "$ref" && text && slices.Contains(refs, word):
				fault = "its part " + word + " is within itself"
			case key == "$ref" && strings.HasPrefix(word, "#"):
				fault = wrongPart(root, partOf(root, word), append(slices.Clone(refs), word))
			default:
				fault = wrongPart(root, s[key], refs)
			}
			if fault != "" {
				return fault
			}
		}
	}
	return ""
}

// partOf is the part of a schema that a reference names.
func partOf(root any, ref string) any {
	return expression.Lookup(root, strings.Split(ref, "/")[1:])
}

var (
	jsonTypes = []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	// inPlace are keywords with schemas of the value itself
	inPlace = []string{"$ref", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"}
)

// maxFaults is the maximum number of faults of a value that a message names.
const maxFaults = 5
