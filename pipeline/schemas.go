package pipeline

import (
	_ "embed" // the schemas
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

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
		d.wrong(at, "names %s, which is not a JSON Schema: %s; correct it", r.Schema, schemaFault(err))
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
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return err
	}
	if err := compiled.Validate(v); err != nil {
		return errors.New(schemaFault(err))
	}
	return nil
}

// compileSchema compiles a JSON Schema that refers to nothing outside of it.
func compileSchema(text string) (*jsonschema.Schema, error) {
	source, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // it refers to nothing else
	const url = "https://passbook.invalid/reply.json"
	if err := c.AddResource(url, source); err != nil {
		return nil, err
	}
	return c.Compile(url)
}

// schemaFault is what a JSON Schema does not allow, with the place in the value, without the addresses of schemas.
func schemaFault(err error) string {
	if load := (*jsonschema.LoadURLError)(nil); errors.As(err, &load) {
		return "it refers to " + load.URL + ", and a schema has all its parts in its own file"
	}
	if invalid := (*jsonschema.SchemaValidationError)(nil); errors.As(err, &invalid) {
		err = invalid.Err
	}
	var faults []string
	deeper := func(l string) int { return len(l) - len(strings.TrimLeft(l, " ")) }
	lines := strings.Split(strings.TrimSpace(err.Error()), "\n")
	for i, l := range lines {
		fault, place := strings.CutPrefix(strings.TrimSpace(l), "- ")
		if place && (i+1 == len(lines) || deeper(lines[i+1]) <= deeper(l)) { // it has no causes
			faults = append(faults, fault)
		}
	}
	if len(faults) == 0 {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	if more := len(faults) - maxFaults; more > 0 {
		faults = append(faults[:maxFaults], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(faults, ", ")
}

// maxFaults is the maximum number of faults of a value that a message names.
const maxFaults = 5
