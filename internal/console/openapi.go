package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// describe connects the addresses of the API with their handlers, and returns their description as OpenAPI 3.1.
func (s *Server) describe(mux *http.ServeMux) ([]byte, error) {
	d := describer{huma.NewMapRegistry("#/components/schemas/", schemaName)}
	config := huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Passbook", Version: "1",
				Description: "Start, control and read runs on a host. Fields are only added within a version."},
			Components: &huma.Components{
				Schemas: d.registry,
				SecuritySchemes: map[string]*huma.SecurityScheme{"token": {Type: "http", Scheme: "bearer",
					Description: "a token of starter token create NAME --can read|decide|operate"}},
			},
			Security: []map[string][]string{{"token": {}}},
		},
		Formats:       map[string]huma.Format{"application/json": {Marshal: toJSON, Unmarshal: json.Unmarshal}},
		DefaultFormat: "application/json",
	}
	server := humago.New(mux, config)
	for _, rt := range routes() {
		op, handle := d.operation(rt), s.allowed(rt)
		server.OpenAPI().AddOperation(op)
		server.Adapter().Handle(op, func(ctx huma.Context) {
			r, w := humago.Unwrap(ctx)
			handle(w, r)
		})
	}
	raw, err := json.Marshal(server.OpenAPI())
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	var text bytes.Buffer
	if err := json.Indent(&text, raw, "", "  "); err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	return append(text.Bytes(), '\n'), nil
}

func toJSON(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// schemaName names the schema of a type by its package, unless that is the table of operations.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name := huma.DefaultSchemaNamer(t, hint)
	if pkg := path.Base(t.PkgPath()); pkg != "api" && pkg != "console" && pkg != "." {
		name = strings.ToUpper(pkg[:1]) + pkg[1:] + name
	}
	return name
}

// describer describes types as schemas, with the texts of their fields.
type describer struct{ registry huma.Registry }

// operation describes an address.
func (d describer) operation(rt route) *huma.Operation {
	op := &huma.Operation{
		OperationID: rt.name, Method: rt.method, Path: rt.path, Summary: rt.summary, Description: rt.details,
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{}}},
	}
	op.Description = strings.TrimSpace(op.Description + " Access: " + string(rt.access) + ".")
	for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(rt.path, -1) {
		kind := huma.TypeString
		if m[1] == "pass" || m[1] == "seq" {
			kind = huma.TypeInteger
		}
		op.Parameters = append(op.Parameters, &huma.Param{Name: m[1], In: "path", Required: true,
			Schema: &huma.Schema{Type: kind}, Description: pathTexts[m[1]]})
	}
	for _, f := range rt.query {
		op.Parameters = append(op.Parameters, &huma.Param{Name: keyOf(f), In: "query",
			Schema: d.schema(f.Type), Description: f.Tag.Get("jsonschema")})
	}
	ok := op.Responses["200"]
	if rt.method == http.MethodPost {
		op.Parameters = append(op.Parameters, &huma.Param{Name: "Idempotency-Key", In: "header",
			Schema:      &huma.Schema{Type: huma.TypeString, MaxLength: new(200)},
			Description: "a new value for each request: a repetition with the same value has no second effect"})
		op.RequestBody = &huma.RequestBody{Content: map[string]*huma.MediaType{"application/json": {Schema: d.body(rt)}}}
	} else {
		ok.Headers = map[string]*huma.Param{"ETag": {Schema: &huma.Schema{Type: huma.TypeString},
			Description: "for If-None-Match"}}
	}
	if rt.output != nil {
		ok.Content["application/json"] = &huma.MediaType{Schema: d.schema(rt.output)}
	}
	if rt.media != "" {
		ok.Content[rt.media] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	d.addProblems(op, rt)
	return op
}

var pathTexts = map[string]string{
	"id": "id of the run, or the beginning of it", "pass": "seq of the pass", "seq": "seq of the round",
	"name": "name of the picture",
}

// addProblems describes the problems of an address, by their statuses.
func (d describer) addProblems(op *huma.Operation, rt route) {
	codes := append(slices.Clone(rt.problems), codeUnauthenticated, codeForbidden, codeTooMany, codeNotHere)
	if rt.method == http.MethodPost {
		codes = append(codes, codeTooLarge, codeMediaType, codeSlow)
	}
	by := map[int][]string{}
	for _, c := range codes {
		if at := statuses[c]; !slices.Contains(by[at], string(c)) {
			by[at] = append(by[at], string(c))
		}
	}
	for status, names := range by {
		slices.Sort(names)
		op.Responses[strconv.Itoa(status)] = &huma.Response{Description: "code: " + strings.Join(names, ", "),
			Content: map[string]*huma.MediaType{"application/problem+json": {Schema: d.schema(reflect.TypeFor[problem]())}}}
	}
}

// body describes the body of a request: the input of its operation without the run, which is in the path.
func (d describer) body(rt route) *huma.Schema {
	s := d.registry.Schema(rt.body, false, rt.name)
	d.explain(rt.body, s, false)
	if strings.Contains(rt.path, "{id}") {
		delete(s.Properties, "run")
		s.Required = slices.DeleteFunc(s.Required, func(key string) bool { return key == "run" })
	}
	return s
}

// schema describes an output, and what it contains.
func (d describer) schema(t reflect.Type) *huma.Schema {
	s := d.registry.Schema(t, true, t.Name())
	d.explain(t, s, true)
	return s
}

// explain adds the texts of fields. Outputs may get more keys in a later version.
func (d describer) explain(t reflect.Type, s *huma.Schema, open bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		if t.Kind() == reflect.Slice && s.Items != nil {
			s = s.Items
		}
		t = t.Elem()
	}
	if s.Ref != "" {
		s = d.registry.SchemaFromRef(s.Ref)
	}
	if t.Kind() != reflect.Struct || s == nil || s.Properties == nil || open && s.AdditionalProperties == nil {
		return
	}
	if open {
		s.AdditionalProperties = nil // it is explained
	}
	for _, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		p := s.Properties[key]
		if key == "" || p == nil {
			continue
		}
		if text := f.Tag.Get("jsonschema"); text != "" {
			p.Description = text
		}
		d.explain(f.Type, p, open)
		if open && p.Ref != "" && f.Type.Kind() == reflect.Pointer && !strings.Contains(f.Tag.Get("json"), ",omit") {
			s.Properties[key] = &huma.Schema{Description: p.Description,
				OneOf: []*huma.Schema{{Ref: p.Ref}, {Type: "null"}}}
		}
	}
}
