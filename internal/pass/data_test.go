package pass_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

const riskSchema = `{"type": "object", "required": ["risk"], "additionalProperties": false, "properties": {
	"risk": {"enum": ["none", "high"]}, "files": {"type": "array", "items": {"type": "string"}}}}`

func fenced(json string) string { return "```json\n" + json + "\n```" }

// A reply that does not fit is unusable, and the message names what does not fit.
func TestReadData(t *testing.T) {
	for name, row := range map[string]struct {
		reply, want, failed string
	}{
		"a block":                  {"Text.\n\n" + fenced(`{"risk": "high", "files": ["a"]}`), `{"risk":"high","files":["a"]}`, ""},
		"the whole reply":          {` {"risk": "none"} `, `{"risk":"none"}`, ""},
		"without a language":       {"```\n{\"risk\": \"none\"}\n```", `{"risk":"none"}`, ""},
		"the last block":           {fenced(`{"risk": "none"}`) + "\n" + fenced(`{"risk": "high"}`), `{"risk":"high"}`, ""},
		"placeholders stay":        {fenced(`{"risk": "high", "files": ["{{task}}"]}`), `{"risk":"high","files":["{{task}}"]}`, ""},
		"no block":                 {"The risk is high.", "", "it has no JSON block"},
		"half a block":             {"```json\n{\"risk\": \"high\"", "", "it has no JSON block"},
		"broken JSON":              {fenced(`{"risk": high}`), "", "its last JSON block is not valid"},
		"another type":             {fenced(`["high"]`), "", "at '': type: [high] has type \"array\", want \"object\""},
		"a member is missing":      {fenced(`{"files": []}`), "", "missing properties: [\"risk\"]"},
		"a member too many":        {fenced(`{"risk": "none", "why": "x"}`), "", "unexpected additional properties [\"why\"]"},
		"another word":             {fenced(`{"risk": "some"}`), "", "at '/risk': enum: some does not equal any of: [none high]"},
		"a wrong item":             {fenced(`{"risk": "none", "files": ["a", 2]}`), "", "at '/files/1': type: 2 has type \"integer\", want \"string\""},
		"an example after it":      {fenced(`{"risk": "none"}`) + "\n" + fenced(`{"x": 1}`), "", "unexpected additional properties [\"x\"]"},
		"two values":               {fenced(`{"risk": "none"} {"risk": "high"}`), "", "its last JSON block is not valid"},
		"more than it may contain": {fenced(fmt.Sprintf(`{"risk": "none", "files": [%q]}`, strings.Repeat("a", 4<<20))), "", "the maximum is 4194304"},
	} {
		t.Run(name, func(t *testing.T) {
			role := pipeline.Role{Gives: pipeline.GivesReport, Schema: "risk.json", SchemaText: riskSchema}
			r := pass.Read(role, nil, row.reply, nil, nil)
			if row.failed == "" {
				require.Equal(t, run.CategoryOK, r.Outcome, r.Message)
				require.Equal(t, row.want, string(r.Data))
				return
			}
			require.Equal(t, run.CategoryValidationFailed, r.Outcome)
			require.Contains(t, r.Message, "the reply has no JSON that fits the schema risk.json: ")
			require.Contains(t, r.Message, row.failed)
			require.False(t, r.Validation.Passed)
			require.Nil(t, r.Data)
		})
	}
}

func planRole() pipeline.Role {
	return pipeline.Role{Gives: pipeline.GivesReport, Schema: pipeline.SchemaPlan,
		SchemaText: `{"type": "object", "required": ["files"], "properties": {"files": {"type": "array"}}}`}
}

// The files of a plan are the declared scope.
func TestPlanDeclaresScope(t *testing.T) {
	r := pass.Read(planRole(), nil, fenced(`{"files": ["src/", "/etc", "**/*_test.go"]}`), nil, nil)
	require.Equal(t, run.CategoryOK, r.Outcome)
	require.Equal(t, []string{"src/", "**/*_test.go"}, r.Scope)
	require.Len(t, r.Validation.Warnings, 1)
	require.Contains(t, r.Validation.Warnings[0], `"/etc", which is an absolute`)

	many := strings.TrimSuffix(strings.Repeat(`"a",`, 1001), ",")
	r = pass.Read(planRole(), nil, fenced(`{"files": [`+many+`]}`), nil, nil)
	require.Len(t, r.Scope, 1000)
	require.Equal(t, []string{"The plan has more than 1000 files; the rest does not count"}, r.Validation.Warnings)
}

func TestComposeAsksForJSON(t *testing.T) {
	prompt := pass.Compose(pass.Request{Template: "Plan it.", Schema: "risk.json", SchemaText: riskSchema,
		Tampered: "By worker: test.sh (changed)", Misfit: "at '': got array"})
	at := func(text string) int { return strings.Index(prompt, text) }
	require.Less(t, at("test.sh (changed)"), at("Plan it."))
	require.Less(t, at("Plan it."), at(`"enum": ["none", "high"]`))
	require.Less(t, at(`"enum"`), at("could not be used:\n\nat '': got array"))
	require.NotContains(t, pass.Compose(pass.Request{Template: "Plan it."}), "JSON")
}

// Outputs are inserted as they are: a placeholder in them is not one of the prompt.
func TestComposeInsertsOutputs(t *testing.T) {
	vars := pass.Vars{Task: "the task", Outputs: map[string]any{
		"plan":  map[string]any{"risk": "{{task}} {{plan.files}}", "files": []any{"a <b>", "c"}, "n": 3.0, "yes": true},
		"tests": map[string]any{"output": "```\n# Your verdict\n---"}, "gone": nil,
	}}
	for template, want := range map[string]string{
		"{{plan.risk}}":          "{{task}} {{plan.files}}",
		"{{plan.files}}":         "a <b>\nc",
		"{{ plan.files|json }}":  `["a <b>","c"]`,
		"{{plan.n}}{{plan.yes}}": "3true",
		"x{{gone.risk}}y":        "xy",
		"x{{plan.none}}y":        "xy",
		"{{tests.output}}":       "```\n# Your verdict\n---",
		"{{plan | json}}":        `{"files":["a <b>","c"],"n":3,"risk":"{{task}} {{plan.files}}","yes":true}`,
		`\{{plan.risk}}`:         "{{plan.risk}}",
	} {
		require.Equal(t, "# The task\n\nthe task\n\n---\n\n"+want+"\n", pass.Compose(pass.Request{Template: template, Vars: vars}), template)
	}
}
