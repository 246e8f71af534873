package pipeline

import (
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// inLanes has a stage that works through a list of a role.
const inLanes = `pipeline: migrate
agent: {run: [claude, -p], reply: claude-stream}
workspace: {dir: .}
roles:
  planner: {prompt: q.md, gives: report, schema: list.json}
  worker: {prompt: p.md, gives: changes}
  reviewer: {prompt: p.md, gives: report, verdict: {find: "([a-z]+)", approves: ok}}
  talker: {prompt: p.md, gives: report, session: continue}
stages:
  - name: planning
    steps: [{role: planner, id: plan}, {run: ls, id: files}]
  - name: work
    each: {in: plan.files, at_once: 8}
    steps: [{role: worker}, {role: reviewer}]
    merge: {conflicts: ask}
`

func parseLanes(text string) (*Definition, Problems) {
	folder := fstest.MapFS{
		"p.md": {Data: []byte("Do {{item}}.\n")}, "q.md": {Data: []byte("Plan.\n")},
		"list.json": {Data: []byte(`{"type": "object", "properties": {"files": {"type": "array"}, "risk": {"type": "string"}}}`)},
		"bad.json":  {Data: []byte(`{"type": 5}`)},
	}
	return Parse("x.yaml", []byte(text), folder)
}

func TestParseLanes(t *testing.T) {
	for name, row := range map[string]struct{ old, new, want string }{
		"as it is":  {"", "", ""},
		"the lines": {"plan.files", "files.lines", ""},
		"a glob":    {"plan.files", "'src/**/*.go'", ""},
		"no such step": {
			"plan.files", "plam.items",
			`x.yaml:13:16: stage "work".each.in is "plam.items", and no step is called so`,
		},
		"of a command": {"plan.files", "files.items", `"files.items", and its step runs a command; write files.lines`},
		"of a role": {
			"plan.files", "plan.lines",
			`"plan.lines", which is not in the output of plan; did you mean "files"?`,
		},
		"a text": {
			"plan.files", "plan.risk",
			`"plan.risk", which is not a list`,
		},
		"a later step": {
			"plan.files", "worker.text",
			`"worker.text": worker, which is the output of a step that has not run by then`,
		},
		"too many": {
			"at_once: 8", "at_once: 17",
			"stage \"work\".each.at_once is the number 17; write a whole number from 1 to 16",
		},
		"a path outside": {"plan.files", "'../*.go'", "has the element .."},
		"a loop": {
			"    merge:", "    repeat: {max: 2, until: approved}\n    merge:",
			"does not go with each",
		},
		"a session": {"role: worker}", "role: talker}", `role "talker" continues its session, and lanes cannot`},
		"a question": {
			"{role: reviewer}]", "{ask: Well}]",
			"asks, and a lane asks only about a failure or a conflict",
		},
		"no each": {
			"    each: {in: plan.files, at_once: 8}\n", "",
			"merges lanes, and the stage has no each",
		},
		"a bad schema": {"list.json", "bad.json", "names bad.json, which is not a JSON Schema"},
		"another schema": {
			"gives: changes}", "gives: changes, schema: list.json}",
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, problems := parseLanes(strings.Replace(inLanes, row.old, row.new, 1))
			if row.want == "" {
				require.Empty(t, problems)
				return
			}
			require.ErrorContains(t, problems, row.want)
		})
	}
}

func TestExpandLanes(t *testing.T) {
	def, problems := parseLanes(inLanes)
	require.Empty(t, problems)
	p := Expand(def)
	work := p.Stages[1]
	require.Equal(t, StageLanes, work.Kind)
	require.Equal(t, &Lanes{Each: Each{In: "plan.files", AtOnce: 8}, Source: ItemsOfOutput, From: "001", ID: "plan",
		Path: []string{"files"}}, work.Lanes)
	require.Equal(t, 1, p.Total, "passes in lanes are not numbered: their number is not known")
	require.Equal(t, "work/2", work.Rounds[0].Steps[1].Key)
}

// JSON that its schema refuses is described by the places that are wrong.
func TestCheckValue(t *testing.T) {
	const schema = `{"type": "array", "maxItems": 3, "items": {"$ref": "#/$defs/file"}, "$defs": {"file": {"type": "object",
		"required": ["path"], "properties": {"path": {"type": "string"}, "parts": {"items": {"$ref": "#/$defs/file"}}}}}}`
	for list, want := range map[string]string{
		`[{"path": "a.go"}]`: "",
		`[{"path": 1}, {}, "a.go"]`: `at '/0/path': type: 1 has type "integer", want "string", at '/1': required: missing ` +
			`properties: ["path"], at '/2': type: a.go has type "string", want "object"`,
		`{"path": "a.go"}`: `at '': type: map[path:a.go] has type "object", want "array"`,
		`[{"path": "a", "parts": [{}, {"path": "b", "parts": [{"path": 2}]}]}]`: "at '/0/parts/0': required: missing properties: " +
			`["path"], at '/0/parts/1/parts/0/path': type: 2 has type "integer", want "string"`,
		`[1, 2, 3, 4, 5, 6]`: `at '': maxItems: array length 6 is greater than 3, at '/0': type: 1 has type "integer", want ` +
			`"object", at '/1': type: 2 has type "integer", want "object", at '/2': type: 3 has type "integer", want "object", at ` +
			`'/3': type: 4 has type "integer", want "object", and 2 more`,
	} {
		err := CheckValue(schema, list)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
	require.ErrorIs(t, CheckValue(schema, `[`), io.ErrUnexpectedEOF)
}

// A schema that no reply fits, or whose check does not end, is refused before a call is paid.
func TestCompileSchemaRefuses(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties": {"type": {"type": "strng"}}}`: `it has the type "strng"`,
		`{"$ref": "#"}`: "its part # is within itself",
		`{"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}`: "is within itself",
		`{"$ref": "#/$defs/none"}`:                               "none",
		`{"$schema": "http://json-schema.org/draft-04/schema#"}`: "cannot validate version",
		`{"pattern": "("}`:                                       "missing closing )",
		`{"enum": [{"type": "strng"}], "properties": {"type": {"type": "string"}, "more": {"$ref": "#"}}}`: "",
		`true`: "",
	} {
		_, err := compileSchema(schema)
		if want == "" {
			require.NoError(t, err, schema)
			continue
		}
		require.ErrorContains(t, err, want, schema)
	}
}
