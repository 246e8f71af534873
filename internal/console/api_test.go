package console

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/console/access"
)

var update = flag.Bool("update", false, "write docs/openapi.json")

func TestOpenAPIIsCommitted(t *testing.T) {
	d := newDesk(t)
	r, body := d.get("/openapi.json")
	require.Equal(t, http.StatusOK, r.StatusCode)
	file := filepath.Join("..", "..", "docs", "openapi.json")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(body), 0o600))
	}
	committed, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, string(committed) == body, "docs/openapi.json is not up to date; run: go test ./internal/console "+
		"-run TestOpenAPI -update")
}

// TestAPIFollowsOperationsTable: every operation has an address, and needs the access of its row.
func TestAPIFollowsOperationsTable(t *testing.T) {
	d := newDesk(t)
	var names []string
	for _, rt := range routes() {
		names = append(names, rt.name)
		for _, code := range rt.problems {
			require.NotZero(t, statuses[code], code)
		}
		path := strings.NewReplacer("{id}", letter, "{pass}", "1", "{seq}", "1", "{name}", "x").Replace(rt.path)
		for _, can := range api.Accesses() {
			if can.Includes(rt.access) {
				continue
			}
			r, body := d.raw(d.request(rt.method, path, d.with(can), ""))
			require.Equal(t, codeForbidden, d.problem(r, body).Code, "%s with %s", rt.name, can)
		}
	}
	for _, o := range api.Table() {
		require.Contains(t, names, o.Name)
	}
	require.Empty(t, d.connected)
	for _, path := range []string{"/v1/runs/390c8c15", "/v1/runs/390c8c15/events", "/v1/nothing", "/nothing"} {
		r, body := d.get(path)
		require.Equal(t, api.CodeNotFound, d.problem(r, body).Code, path)
	}
}

// TestRefusalsAreForClientsOfTheAPI: they name no directories, and nothing of the implementation.
func TestRefusalsAreForClientsOfTheAPI(t *testing.T) {
	d := newDesk(t)
	for path, want := range map[string]string{
		"/v1/runs/390c8c15": "find run 390c8c15: no run of this host has that id, or an id that begins with it; to list " +
			"the runs, run: starter list",
		"/v1/runs?limit=x":                          `list: the parameter limit: it is "x"; use an integer`,
		"/v1/runs/" + letter + "/checkpoints?all=x": `checkpoints: the parameter all: it is "x"; use true or false`,
	} {
		r, body := d.get(path)
		require.Equal(t, want, d.problem(r, body).Detail, path)
	}
}

// TestAnswersFollowTheirSchemas reads every address about the recorded run, and validates the answers.
func TestAnswersFollowTheirSchemas(t *testing.T) {
	d := newDesk(t)
	_, text := d.get("/openapi.json")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("openapi.json", document))
	for path, contains := range map[string]string{
		"/v1/runs":                                letter,
		"/v1/runs?status=running,paused&limit=3":  `"total":0`,
		"/v1/runs?text=LETTER&limit=":             "",
		"/v1/questions":                           `"total":1`,
		"/v1/runs/{id}":                           `"needs_input":true`,
		"/v1/runs/{id}/wait?seconds=1":            `"timed_out":false`,
		"/v1/runs/{id}/questions":                 "Is this the right letter?",
		"/v1/runs/{id}/diagnosis":                 `"why":[`,
		"/v1/runs/{id}/diff?paths=a,b&bytes=1000": `"truncated":false`,
		"/v1/runs/{id}/passes":                    `"role":"writer"`,
		"/v1/runs/{id}/passes/4":                  "A letter",
		"/v1/runs/{id}/passes/1":                  "",
		"/v1/runs/{id}/checkpoints?all=true":      "cp-5",
		"/v1/runs/{id}/evidence":                  "Write a letter.",
		"/v1/runs/{id}/snapshots":                 `"snapshots":[]`,
		"/v1/runs/{id}/screenshots":               `"screenshots":[]`,
		"/v1/runs/{id}/events":                    `"closed":false`,
	} {
		address, _, _ := strings.Cut(path, "?")
		r, body := d.get(strings.Replace(path, "{id}", letter[:8], 1))
		media := "application/json"
		if contains == "" {
			media = "application/problem+json"
			d.problem(r, body)
		} else {
			require.Equal(t, http.StatusOK, r.StatusCode, body)
		}
		require.Contains(t, body, contains, path)
		for _, rt := range routes() {
			if rt.method != http.MethodGet || rt.path != strings.Replace(address, "passes/4", "passes/{pass}", 1) {
				continue
			}
			escaped := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace
			schema, err := compiler.Compile("openapi.json#/paths/" + escaped(rt.path) + "/get/responses/" +
				r.Status[:3] + "/content/" + escaped(media) + "/schema")
			require.NoError(t, err)
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(body))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(value), path)
			if all, ok := value.(map[string]any); ok && all["question"] != nil {
				all["question"] = nil // of a run that does not ask
				require.NoError(t, schema.Validate(all), path)
			}
		}
	}
}

func TestFilesOfARun(t *testing.T) {
	d := newDesk(t)
	r, body := d.get("/v1/runs/" + letter + "/artifact")
	page, err := os.ReadFile("testdata/letter/letter.html")
	require.NoError(t, err)
	require.Equal(t, string(page), body)
	require.Equal(t, "application/octet-stream", r.Header.Get("Content-Type"))
	require.Equal(t, "attachment", r.Header.Get("Content-Disposition"))
	require.Contains(t, r.Header.Get("Content-Security-Policy"), "sandbox")
	r, body = d.get("/v1/runs/" + letter + "/report")
	require.Equal(t, "text/html; charset=utf-8", r.Header.Get("Content-Type"))
	require.Contains(t, r.Header.Get("Content-Security-Policy"), "sandbox")
	require.Contains(t, body, "Write a letter.")
}

// TestReadsAreNotSentTwice: a client that has the answer gets none, until it changes.
func TestReadsAreNotSentTwice(t *testing.T) {
	d := newDesk(t)
	path := "/v1/runs/" + letter + "/events"
	r, _ := d.get(path)
	tag := r.Header.Get("ETag")
	require.NotEmpty(t, tag)
	for _, sent := range []string{tag, `"x", ` + tag, "W/" + tag, "*"} {
		r, body := d.get(path, "If-None-Match: "+sent)
		require.Equal(t, http.StatusNotModified, r.StatusCode, sent)
		require.Empty(t, body)
		require.Equal(t, tag, r.Header.Get("ETag"))
	}
	d.appendEvent(anEvent(7, "unknown.kind"))
	r, body := d.get(path, "If-None-Match: "+tag)
	require.Equal(t, http.StatusOK, r.StatusCode)
	require.Contains(t, body, "unknown.kind")
}

// TestRepeatedRequestsHaveOneID: a key names the same request of the same client.
func TestRepeatedRequestsHaveOneID(t *testing.T) {
	var ids []string
	rt := route{name: "test", access: api.CanRead, method: http.MethodPost,
		serve: func(_ *Server, w http.ResponseWriter, r *http.Request) {
			ids = append(ids, access.Request(r.Context()))
			answer(w, r, map[string]int{"n": len(ids)})
		}}
	d := newDesk(t, func(s *Server) {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /test", s.allowed(rt))
		s.handler = s.guard(s.authenticated(mux))
	})
	for _, sent := range []struct {
		can api.Access
		key string
	}{{api.CanRead, "a"}, {api.CanRead, "a"}, {api.CanOperate, "a"}, {api.CanRead, "b"}} {
		r, _ := d.raw(d.request("POST", "/test", d.with(sent.can)+"\nIdempotency-Key: "+sent.key+inJSON, "{}"))
		require.Equal(t, http.StatusOK, r.StatusCode)
	}
	require.Equal(t, ids[0], ids[1], "a repetition")
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), 3, "another client, and another key")
	require.NotContains(t, ids, "")
}

// appendEvent adds a line to the journal of the recorded run.
func (d *desk) appendEvent(line string) {
	d.t.Helper()
	f, err := os.OpenFile(d.journal(), os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(d.t, err)
	_, err = f.WriteString(line + "\n")
	require.NoError(d.t, err)
	require.NoError(d.t, f.Close())
}

func (d *desk) journal() string {
	return filepath.Join(d.s.host.Settings.RunRoot, "letter", "events.jsonl")
}

// end makes the recorded run a completed one.
func (d *desk) end() {
	d.t.Helper()
	file := filepath.Join(d.s.host.Settings.RunRoot, "letter", "meta.json")
	raw, err := os.ReadFile(file)
	require.NoError(d.t, err)
	var meta map[string]any
	require.NoError(d.t, json.Unmarshal(raw, &meta))
	meta["status"] = "done"
	meta["state"].(map[string]any)["status"] = "done"
	raw, err = json.Marshal(meta)
	require.NoError(d.t, err)
	require.NoError(d.t, os.WriteFile(file+".new", raw, 0o600))
	require.NoError(d.t, os.Rename(file+".new", file))
}
