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
  planner: {prompt: p.md, gives: list, schema: list.json}
  worker: {prompt: p.md, gives: changes}
  reviewer: {prompt: p.md, gives: report, verdict: {find: "([a-z]+)"}}
  talker: {prompt: p.md, gives: report, session: continue}
stages:
  - name: planning
    steps: [{role: planner, as: plan}, {run: ls, as: files}]
  - name: work
    each: {in: plan.items, at_once: 8}
    steps: [{role: worker}, {role: reviewer}]
    merge: {conflicts: ask}
`

func parseLanes(text string) (*Definition, Problems) {
	folder := fstest.MapFS{
		"p.md": {Data: []byte("Do {{item}}.\n")}, "list.json": {Data: []byte(`{"type": "array"}`)},
		"bad.json": {Data: []byte(`{"type": 5}`)},
	}
	return Parse("x.yaml", []byte(text), folder)
}

func TestParseLanes(t *testing.T) {
	for name, row := range map[string]struct{ old, new, want string }{
		"as it is":  {"", "", ""},
		"the lines": {"plan.items", "files.lines", ""},
		"a glob":    {"plan.items", "'src/**/*.go'", ""},
		"no such step": {
			"plan.items", "plam.items",
			`x.yaml:13:16: stage "work".each.in is "plam.items", and no step is called`,
		},
		"of a command": {"plan.items", "files.items", `"files.items", and its step runs a command; write files.lines`},
		"of a role": {
			"plan.items", "plan.lines",
			`"plan.lines", and its step runs no command; write plan.items`,
		},
		"too many": {
			"at_once: 8", "at_once: 17",
			"stage \"work\".each.at_once is the number 17; write a whole number from 1 to 16",
		},
		"a path outside": {"plan.items", "'../*.go'", "has the element .."},
		"a loop": {
			"    merge:", "    repeat: {max: 2, until: verdict == ok}\n    merge:",
			"does not go with each",
		},
		"a list": {
			"role: worker}", "role: planner}",
			`role "planner" outputs list, and roles in lanes output changes or reports`,
		},
		"a session": {"role: worker}", "role: talker}", `role "talker" continues its session, and lanes cannot`},
		"a question": {
			"{role: reviewer}]", "{ask: Well}]",
			"asks, and a lane asks only about a failure or a conflict",
		},
		"no each": {
			"    each: {in: plan.items, at_once: 8}\n", "",
			"merges lanes, and the stage has no each",
		},
		"a bad schema": {"list.json", "bad.json", "names bad.json, which is not a JSON Schema"},
		"another schema": {
			"gives: changes}", "gives: changes, schema: list.json}",
			"describes a list, and the role outputs changes",
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
	require.Equal(t, &Lanes{Each: Each{In: "plan.items", AtOnce: 8}, Source: ItemsOfRole, From: "001"}, work.Lanes)
	require.Equal(t, 1, p.Total, "passes in lanes are not numbered: their number is not known")
	require.Equal(t, "work/2", work.Rounds[0].Steps[1].Key)
}

// A list that its JSON Schema refuses is described by the places that are wrong.
func TestCheckList(t *testing.T) {
	const schema = `{"type": "array", "maxItems": 3,
		"items": {"type": "object", "required": ["path"], "properties": {"path": {"type": "string"}}}}`
	for list, want := range map[string]string{
		`[{"path": "a.go"}]`: "",
		`[{"path": 1}, {}, "a.go"]`: "at '/0/path': got number, want string, at '/1': missing property 'path', " +
			"at '/2': got string, want object",
		`{"path": "a.go"}`: "at '': got object, want array",
		`[1, 2, 3, 4, 5, 6]`: "at '': maxItems: got 6, want 3, at '/0': got number, want object, at '/1': got number, " +
			"want object, at '/2': got number, want object, at '/3': got number, want object, and 2 more",
	} {
		err := CheckList(schema, list)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, want)
	}
	require.ErrorIs(t, CheckList(schema, `[`), io.ErrUnexpectedEOF)
}
