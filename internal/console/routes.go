package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/lazyregexp"
)

// route is an address of the API.
type route struct {
	method, path string
	name         string // of the operation
	summary      string
	details      string
	access       api.Access // that a client requires
	problems     []api.Code
	query        []reflect.StructField
	body         reflect.Type // nil: none
	output       reflect.Type // of JSON; nil: another type
	media        string       // of another type
	serve        func(s *Server, w http.ResponseWriter, r *http.Request)
}

// routes lists all addresses: those of the table of operations, and those of files and events.
func routes() []route {
	var all []route
	for _, o := range api.Table() {
		all = append(all, routeOf(o))
	}
	return append(all, files()...)
}

// routeOf is the address of an operation. The run is in the path; what else a reading operation needs is in the query,
// and what another one needs is the body.
func routeOf(o api.Operation) route {
	rt := route{method: http.MethodPost, path: o.Path, name: o.Name, summary: o.Summary, details: o.Details,
		access: o.Access, problems: o.Problems, output: o.Output}
	if o.Access == api.CanRead {
		rt.method = http.MethodGet
	}
	if rt.method == http.MethodPost {
		rt.body = o.Input
	} else {
		rt.query = queryOf(o.Input, rt.path)
	}
	rt.serve = func(s *Server, w http.ResponseWriter, r *http.Request) {
		input, err := inputOf(o, r)
		if err != nil {
			refuse(w, newProblem(api.CodeInvalid, o.Name+": "+err.Error()))
			return
		}
		if o.Name == "status" && s.elsewhere(w, r) {
			return
		}
		out, err := o.Call(r.Context(), s.host, input)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		answer(w, r, out)
	}
	return rt
}

// parameters of a path are fields of the input.
var inPath = map[string]string{"run": "{id}", "pass": "{pass}"}

// keyOf is the key of a field of an input; empty: clients do not send it.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if key == "-" {
		return ""
	}
	return key
}

// queryOf lists the fields of an input that the path lacks.
func queryOf(input reflect.Type, path string) []reflect.StructField {
	var fields []reflect.StructField
	for i := range input.NumField() {
		f := input.Field(i)
		if key := keyOf(f); key != "" && (inPath[key] == "" || !strings.Contains(path, inPath[key])) {
			fields = append(fields, f)
		}
	}
	return fields
}

// runID is what the path may contain as the name of a run: an id or its beginning, and no directory.
var runID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// inputOf makes the input of an operation from a request.
func inputOf(o api.Operation, r *http.Request) ([]byte, error) {
	input := map[string]json.RawMessage{}
	var err error
	if r.Method == http.MethodPost {
		err = readObject(r, input)
	} else {
		err = readQuery(o.Input, r.URL.Query(), input)
	}
	if err != nil {
		return nil, err
	}
	if _, named := input["request"]; !named && access.Request(r.Context()) != "" && has(o.Input, "request") {
		input["request"] = json.RawMessage(strconv.Quote(access.Request(r.Context())))
	}
	for key, place := range inPath {
		value := r.PathValue(strings.Trim(place, "{}"))
		if value == "" {
			continue
		}
		if _, twice := input[key]; twice {
			return nil, fmt.Errorf("%s is part of the address; remove it from the input", key)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if key == "pass" {
			n, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("pass %q is not a number; the list of passes has the number as seq", value)
			}
			raw = []byte(strconv.FormatInt(n, 10))
		}
		input[key] = raw
	}
	return json.Marshal(input)
}

// has reports whether an input has a key.
func has(input reflect.Type, key string) bool {
	return slices.ContainsFunc(reflect.VisibleFields(input), func(f reflect.StructField) bool { return keyOf(f) == key })
}

// readObject reads a body, which is a JSON object or empty.
func readObject(r *http.Request, into map[string]json.RawMessage) error {
	if r.ContentLength == 0 || r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	dec := json.NewDecoder(r.Body)
	if err := dec.Decode(&into); err != nil {
		return fmt.Errorf("the body is not a JSON object: %w", err)
	}
	if dec.More() {
		return fmt.Errorf("there is data after the object")
	}
	return nil
}

// readQuery reads the parameters of an address by the types of the input.
func readQuery(input reflect.Type, query url.Values, into map[string]json.RawMessage) error {
	fields := map[string]reflect.StructField{}
	for i := range input.NumField() {
		if key := keyOf(input.Field(i)); key != "" && inPath[key] == "" {
			fields[key] = input.Field(i)
		}
	}
	for key, values := range query {
		f, known := fields[key]
		if !known {
			return fmt.Errorf("the parameter %q is unknown", key)
		}
		value, err := parameter(f.Type, values)
		if err != nil {
			return fmt.Errorf("the parameter %s: %w", key, err)
		}
		if into[key], err = json.Marshal(value); err != nil {
			return err
		}
	}
	return nil
}

// parameter reads the values of a parameter. A list may be repeated, or separated by commas.
func parameter(kind reflect.Type, values []string) (any, error) {
	if kind.Kind() == reflect.Slice {
		return slices.DeleteFunc(strings.Split(strings.Join(values, ","), ","), func(s string) bool { return s == "" }), nil
	}
	if len(values) != 1 {
		return nil, fmt.Errorf("it is given %d times", len(values))
	}
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.Kind() {
	case reflect.Bool:
		v, err := strconv.ParseBool(values[0])
		return v, instead(err, values[0], "true or false")
	case reflect.Int, reflect.Int64:
		v, err := strconv.ParseInt(values[0], 10, 64)
		return v, instead(err, values[0], "an integer")
	case reflect.Float64:
		v, err := strconv.ParseFloat(values[0], 64)
		return v, instead(err, values[0], "a number")
	}
	return values[0], nil
}

// instead describes what a parameter that cannot be read should be.
func instead(err error, text, want string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("it is %q; use %s", text, want)
}

// allowed wraps the handler of a route: it checks the access of the client, the name of the run and the type of the
// body. A repeated request is answered by its key.
func (s *Server) allowed(rt route) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id, _ := access.From(r.Context())
		switch {
		case !id.Can.Includes(rt.access):
			refuse(w, newProblem(codeForbidden, fmt.Sprintf("%s: %s can %s, and this needs a token that can %s; an operator "+
				"makes one at a terminal: starter token create NAME --can %[4]s", rt.name, id.Name, id.Can, rt.access)))
		case strings.Contains(rt.path, "{id}") && !runID.MatchString(r.PathValue("id")):
			refuse(w, newProblem(api.CodeNotFound, "the address names no run: use the id of a run or the beginning of one"))
		case rt.method == http.MethodPost && r.ContentLength != 0 && mediaType(r) != "application/json":
			refuse(w, newProblem(codeMediaType, "send the body as Content-Type: application/json"))
		case rt.method == http.MethodPost:
			s.repeatable(w, r, rt)
		default:
			rt.serve(s, w, r)
		}
	}
}

// key is what an Idempotency-Key may be.
var key = lazyregexp.New(`^[\x21-\x7e]{1,200}$`)

// repeatable executes a request that changes something. An Idempotency-Key becomes the id of the Update, or the name of
// the run to start: Temporal answers a repetition with the result of the first request.
func (s *Server) repeatable(w http.ResponseWriter, r *http.Request, rt route) {
	sent := r.Header.Values("Idempotency-Key")
	ctx := context.WithoutCancel(r.Context()) // the client may go: the request is executed
	switch {
	case len(sent) > 1, len(sent) == 1 && !key.MatchString(sent[0]):
		refuse(w, newProblem(api.CodeInvalid, "the Idempotency-Key must have 1 to 200 characters without spaces"))
		return
	case len(sent) == 1:
		who, _ := access.From(r.Context())
		login := access.Session(r.Context()) != "" // a token may have the name of the user
		ctx = access.WithRequest(ctx, disk.Digest(fmt.Appendf(nil, "%t %q %q", login, who.Name, sent[0]))[:32])
	}
	rt.serve(s, w, r.WithContext(ctx))
}
