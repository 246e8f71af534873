package activities

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestEvaluate reads only what a condition names, and reports what it has read.
func TestEvaluate(t *testing.T) {
	h := newHarness(t, "")
	put := func(text string) *run.Blob {
		b := must(blobs.Put(t.Context(), h.s, []byte(text)))(t)
		return &b
	}
	yes, half, area, count := true, 2.5, "src", "3"
	plan := must(h.s.PutJSON(t.Context(), pipeline.Plan{Version: pipeline.PlanVersion, Kept: []string{"plan", "tests", "judge", "gone"},
		Inputs: []pipeline.Input{{Name: "area", Type: pipeline.InputString, Value: &area}, {Name: "count", Type: pipeline.InputNumber,
			Default: &count}, {Name: "words", Type: pipeline.InputList, Value: new("a\nb")}}}))(t)
	missing := &run.Blob{Digest: strings.Repeat("0", 64)}
	in := contract.EvaluateInput{Store: "file://" + filepath.Join(h.dir, "store"), Approved: true, Verdict: "fine", Score: &half, Scores: []float64{1, 2.5}, Round: 2,
		Task: "do it", Outputs: []run.StepOutput{
			{ID: "plan", Data: put(`{"risk":"low","files":["a","b"],"long":"` + strings.Repeat("x", 1<<20) + `"}`)},
			{ID: "tests", Command: true, ExitCode: 2, Text: missing}, {ID: "judge", Approved: &yes, Score: &half, Text: put("well done")},
		}}
	in.Plan = string(plan)
	for text, want := range map[string]string{
		"approved and verdict == 'fine' and round == 2":  "true: approved true, verdict fine, round 2",
		"plan.risk == 'low' and len(plan.files) == 2":    `true: plan.risk low, plan.files ["a","b"]`,
		"plan.long contains 'y'":                         "false: plan.long " + strings.Repeat("x", 80) + "…",
		"tests.ok or tests.exit == 2":                    "true: tests.ok false, tests.exit 2",
		"judge.text contains 'well' and judge.score > 2": "true: judge.text well done, judge.score 2.5",
		"gone?.risk == 'low'":                            "false: gone.risk null",
		"area == 'src' and count > 2 and 'b' in words":   `true: area src, count 3, words ["a","b"]`,
		"scores[-1] - scores[-2] < 1":                    "false: scores [1,2.5]",
		"task == 'do it'":                                "true: task do it",
		"score > 3":                                      "false: score 2.5",
		"gone.risk == 'low'":                             "cannot fetch risk from <nil> (gone.risk null)",
		"plan.risk > 3":                                  "invalid operation: string > int (plan.risk low)",
		"a and":                                          "unexpected token EOF",
		"tests.output == ''":                             "read the output of tests: ",
	} {
		in.Text = text
		res, err := h.acts.Evaluate(t.Context(), in)
		if err != nil {
			require.ErrorContains(t, err, want, text)
			continue
		}
		got := "false: "
		if res.Holds {
			got = "true: "
		}
		require.Equal(t, want, got+run.Condition{Read: res.Read}.Values(), text)
	}
	in.Text, in.Score = "score >= 0 or score < 0", nil
	res := must(h.acts.Evaluate(t.Context(), in))(t)
	require.False(t, res.Holds, "a missing score is neither above nor below any number")
	require.Equal(t, []run.Value{{Name: "score", Text: "none"}}, res.Read)
}
