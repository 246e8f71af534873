package pass_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func TestReadStructuredVerdict(t *testing.T) {
	const full = `{"verdict": "Rejected", "ship_ready": false, "findings": [{"severity": "high", "file": "a.go", "line": 3,
"text": "off by one"}, "naming"], "blockers": ["tests fail"], "gaps": [{"text": "macOS"}]}`
	for name, row := range map[string]struct {
		reply, find     string
		verdict, failed string // failed: why there is none
		findings        int
	}{
		"whole":                 {"Text.\n\n```json\n" + full + "\n```\n", "", "rejected", "", 2},
		"without a language":    {"```\n" + full + "\n```", "", "rejected", "", 2},
		"the last block counts": {"```json\n" + full + "\n```\n```json\n{\"approved\": true}\n```", "", "approved", "", 0},
		"another block follows": {"```json\n{\"approved\": true}\n```\n```json\n{\"a\": 1}\n```", "", "approved", "", 0},
		"code that is not JSON": {"```go\nx := 1\n```\n```json\n{\"ship_ready\": true}\n```", "", "approved", "", 0},
		"ready":                 {"```json\n{\"ship_ready\": true}\n```", "", "approved", "", 0},
		"not ready":             {"```json\n{\"ship_ready\": false}\n```", "", "rejected", "", 0},
		"blockers deny":         {"```json\n{\"verdict\": \"approved\", \"blockers\": [\"x\"]}\n```", "", "rejected", "", 0},
		"not approved":          {"```json\n{\"verdict\": \"approved\", \"approved\": false}\n```", "", "rejected", "", 0},
		"incomplete": {"```json\n{\"verdict\": \"incomplete\", \"blockers\": [\"x\"]}\n```",
			"", "incomplete", "", 0},
		"another spelling": {"```json\n{\"verdict\": \"Scope-Expansion\"}\n```", "", "scope_expansion", "", 0},
		"a word instead":   {"VERDICT: approved", `VERDICT: (\w+)`, "approved", "", 0},
		"a block before a word": {"VERDICT: approved\n```json\n{\"ship_ready\": false}\n```", `VERDICT: (\w+)`, "rejected",
			"", 0},
		"nothing": {"Looks good.", "", "", "no JSON block has one of verdict, approved, ship_ready", 0},
		"neither": {"Looks good.", `VERDICT: (\w+)`, "", "nothing matches", 0},
		"broken":  {"```json\n{\"ship_ready\": tru}\n```", "", "", "the JSON block is not valid", 0},
		"broken beside a word": {"VERDICT: approved\n```json\n{\"ship_ready\": \n```", `VERDICT: (\w+)`, "",
			"is not valid", 0},
		"wrong types":   {"```json\n{\"ship_ready\": \"yes\"}\n```", "", "", "the JSON block is not a review", 0},
		"empty verdict": {"```json\n{\"verdict\": \" \"}\n```", "", "", "no JSON block has one of", 0},
		"not closed":    {"```json\n{\"ship_ready\": true}\n", "", "", "no JSON block", 0},
	} {
		t.Run(name, func(t *testing.T) {
			role := pipeline.Role{Gives: pipeline.GivesReport, Schema: pipeline.SchemaReview}
			if row.find != "" {
				role.Verdict = &pipeline.Verdict{Find: row.find}
			}
			r := pass.Read(role, nil, row.reply, nil, nil)
			require.Equal(t, row.verdict, r.Verdict)
			if row.failed != "" {
				require.Equal(t, run.CategoryValidationFailed, r.Outcome)
				require.Contains(t, r.Message, row.failed)
				return
			}
			require.Equal(t, run.CategoryOK, r.Outcome, r.Message)
			if r.Review != nil {
				require.Len(t, r.Review.Findings, row.findings)
			}
		})
	}
	role := pipeline.Role{Gives: pipeline.GivesReport, Schema: pipeline.SchemaReview}
	r := pass.Read(role, nil, "```json\n"+full+"\n```", nil, nil).Review
	require.Equal(t, []pass.Finding{{Severity: "high", File: "a.go", Line: 3, Text: "off by one"}, {Text: "naming"}},
		r.Findings)
	require.Equal(t, []pass.Finding{{Text: "macOS"}}, r.Gaps)
}

func TestComposeAsksForStructuredVerdict(t *testing.T) {
	prompt := pass.Compose(pass.Request{Template: "Review it.", Schema: pipeline.SchemaReview})
	require.True(t, strings.HasPrefix(prompt, "Review it.\n\n---\n\n# Your verdict\n"), prompt)
	_, form, _ := strings.Cut(prompt, "# Your verdict")
	role := pipeline.Role{Schema: pipeline.SchemaReview}
	require.Equal(t, "rejected", pass.Read(role, nil, form, nil, nil).Verdict, "the form is one that is read")
}

func TestFeedbackNamesItsQuestion(t *testing.T) {
	r := pass.Request{Template: "Plan it.", Feedback: "say where", Answers: &pass.Answers{
		Question: "Is this\nright?", Verdict: "rejected",
		Outputs: []pass.Text{{Label: "Output of planner", Body: "The ``` plan"}},
	}}
	require.Equal(t, "# The operator's feedback\n\nAn operator was asked about the work so far: Is this right? "+
		"(verdict: rejected)\n\n## Output of planner\n\n````\nThe ``` plan\n````\n\nThe operator answered:\n\nsay where"+
		"\n\n---\n\nPlan it.\n", pass.Compose(r))
}
