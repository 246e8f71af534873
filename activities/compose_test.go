package activities

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	require.Equal(t, read(t, path), got)
}

func (h *harness) compose(at contract.StepRef, g contract.StepContext) (string, error) {
	at.Plan, at.Inputs = h.in.At.Plan, h.in.At.Inputs
	res, err := do(h.t, h.acts.Compose, contract.ComposeInput{Store: h.s.URL(), At: at, Context: g})
	if err != nil {
		return "", err
	}
	return h.text(res.Prompt.Digest), nil
}

func TestComposeBuilderPrompt(t *testing.T) {
	h := newHarness(t, "answer")
	got := must(h.compose(contract.StepRef{Round: 1}, contract.StepContext{Artifact: h.in.Artifact}))(t)
	golden(t, "builder.prompt.md", got)
}

func TestComposeAuditorPrompt(t *testing.T) {
	h := newHarness(t, "answer")
	manifest := must(json.Marshal([]run.Shot{{Name: "full-800x600.png"}, {Name: "scroll-1.png"}}))(t)
	pictures := h.put(string(manifest))
	at := contract.StepRef{Stage: 1, Round: 2, Step: 1, Member: "auditor-B"}
	got := must(h.compose(at, contract.StepContext{Artifact: h.in.Artifact, Pictures: &pictures}))(t)
	golden(t, "auditor-B.prompt.md", got)
}

// TestComposeWithFeedback: the question and what it was about come before the answer; what the prompt has already is
// not repeated. No round is beyond the maximum.
func TestComposeWithFeedback(t *testing.T) {
	h := newHarness(t, "answer")
	work, review, brief := h.put("I changed it."), h.put("It is wrong."), h.put("Run r-1 ended: halted.")
	given := contract.StepContext{
		Feedback: "more", Parent: &brief, Replies: []run.Reply{{Role: "critic", Reply: review}}, Task: "Do it.",
		About: &run.About{Question: "Good?", Verdict: "rejected",
			Work:   &run.Output{Role: "builder", Digest: work.Digest},
			Review: &run.Output{Role: "critic", Digest: review.Digest}},
	}
	got := must(h.compose(contract.StepRef{Round: 1}, given))(t)
	parts := []string{"# The run that this one continues\n\nRun r-1 ended: halted.", "# The task\n\nDo it.",
		"asked about the work so far: Good? (verdict: rejected)", "## Output of builder\n\n```\nI changed it.\n```",
		"The operator answered:\n\nmore"}
	for i, part := range parts {
		require.Contains(t, got, part)
		if i > 0 {
			require.Less(t, strings.Index(got, parts[i-1]), strings.Index(got, part))
		}
	}
	require.NotContains(t, got, "## Output of critic")
	given.Feedback = ""
	got = must(h.compose(contract.StepRef{Round: 1}, given))(t)
	require.NotContains(t, got, "Good?", "without feedback there is nothing that it answers")
	got = must(h.compose(contract.StepRef{Stage: 1, Round: 3, Step: 1, Member: "auditor-B"}, contract.StepContext{}))(t)
	require.Contains(t, got, "Round: 3 of 3", "the definition has two")
}

func TestMissingInputIsNonRetryable(t *testing.T) {
	h := newHarness(t, "answer")
	nothing := must(h.s.PutJSON(context.Background(), map[string]any{"version": 1}))(t)
	inputs := h.in.At
	for what, at := range map[string]contract.StepRef{
		"builder.md": {PlanUse: contract.PlanUse{Plan: inputs.Plan, Inputs: string(nothing)}, Round: 1},
		"stage 8":    {PlanUse: inputs.PlanUse, Stage: 7, Round: 1},
		"step 10":    {PlanUse: inputs.PlanUse, Round: 1, Step: 9},
		"nobody":     {PlanUse: inputs.PlanUse, Stage: 1, Round: 1, Step: 1, Member: "nobody"},
	} {
		t.Run(what, func(t *testing.T) {
			h.in.At = at
			_, err := h.compose(at, contract.StepContext{})
			require.ErrorContains(t, err, what)
			app := failed(t, err, contract.ErrBadInput)
			require.True(t, app.NonRetryable())
		})
	}
}

func TestMissingBrowserReturnsNoScreenshots(t *testing.T) {
	h := newHarness(t, "answer")
	h.acts.browser = browser.Options{Exec: filepath.Join(h.dir, "no-browser")}
	shots := pipeline.Screenshots{Sizes: []pipeline.Size{{Width: 800, Height: 600}}, Kinds: []string{"full"}}
	res := must(do(t, h.acts.TakeScreenshots, contract.ShotsInput{
		Store: h.s.URL(), Artifact: *h.in.Artifact, Name: "page.html", Shots: shots, HeartbeatMS: 1000,
	}))(t)
	require.False(t, res.Permanent, "one may be installed before the next attempt")
	require.Contains(t, res.Message, "no-browser")
	require.Contains(t, res.Message, "install one with")
	require.Zero(t, res.Count)
}
