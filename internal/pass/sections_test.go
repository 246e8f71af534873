package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
)

func TestComposeSections(t *testing.T) {
	join := func(sections ...string) string { return strings.Join(sections, "\n\n---\n\n") + "\n" }
	const (
		task     = "# The task\n\nAdd a flag."
		parent   = "# The run that this one continues\n\nIt added a verb."
		feedback = "# The operator's feedback\n\nSay where."
		steering = "# Instructions of the operator\n\nBe brief.\n\nUse Go."
	)
	whole := Request{Template: "Do it.", Vars: Vars{Task: "Add a flag.", Base: "c0ffee"}, Parent: " It added a verb.\n",
		Feedback: "Say where.", Steering: []string{"Be brief.", "Use Go."}, Tampered: "test.sh"}
	tampered := tamperedIntro + "\n\ntest.sh"
	for name, row := range map[string]struct{ template, want string }{
		"in their order": {"Do it.", join(parent, task, feedback, steering, tampered, "Do it.")},
		"the template places the task": {"Do it: {{task}}",
			join(parent, feedback, steering, tampered, "Do it: Add a flag.")},
		"the template places the parent": {"{{parent}}\nDo it.",
			join(task, feedback, steering, tampered, parent+"\nDo it.")},
		"the template places the feedback": {"{{feedback}}\nDo it.",
			join(parent, task, steering, tampered, feedback+"\nDo it.")},
	} {
		t.Run(name, func(t *testing.T) {
			r := whole
			r.Template = row.template
			require.Equal(t, row.want, Compose(r))
		})
	}
	require.Equal(t, "Do it.\n", Compose(Request{Template: "Do it.", Vars: Vars{Base: "c0ffee"}}))
}

func TestComposeFillsVariables(t *testing.T) {
	v := Vars{Task: "t", Base: "b", Description: "d", Role: "r", Pass: 1, Passes: 2, Set: "s", Theme: "h", Round: 3,
		Rounds: 4, With: []Text{{"k", "w"}}}
	r := Request{Vars: v, Template: "{{task}} {{base}} {{description}} {{role}} {{pass}} {{passes}} {{set}} {{theme}} " +
		"{{n}} {{max}} {{with.k}}"}
	require.Equal(t, "t b d r 1 2 s h 3 4 w\n", Compose(r))
	r.Vars = Vars{}
	require.Equal(t, "{{with.k}}\n", Compose(r), "what has no value is empty, what has no name stays")
}

func TestComposeContext(t *testing.T) {
	for name, row := range map[string]struct {
		vars Vars
		want string
	}{
		"all": {Vars{Description: "Pass\n1", Role: "judge", Pass: 1, Passes: 2, Set: "S1", Theme: "Space", Round: 3,
			Rounds: 4}, " — Pass 1\n\nRole: judge\nPass: 1 of 2\nRound: 3 of 4\nSet: S1 — Space"},
		"unknown totals": {Vars{Description: "d", Pass: 5, Round: 3}, " — d\n\nPass: 5\nRound: 3"},
		"the only one":   {Vars{Description: "d", Pass: 1, Passes: 1}, " — d\n\nPass: 1 of 1"},
		"no number":      {Vars{Description: "d", Passes: 7}, " — d"},
		"a theme":        {Vars{Description: "d", Theme: "Space"}, " — d\n\nSet: Space"},
		"nothing":        {Vars{}, " —"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, "# DETERMINISTIC ORCHESTRATOR"+row.want, Request{Vars: row.vars}.context())
		})
	}
	require.Contains(t, Request{Gives: pipeline.GivesArtifact}.context(), "Produce: the whole of the artifact, revised")
	require.Contains(t, Request{Gives: pipeline.GivesArtifact, Artifact: Text{Label: "a.md"}}.context(),
		"Produce: the whole of a.md, revised")
}

func TestComposePictures(t *testing.T) {
	page := Text{Label: "a.html", Body: "<html>"}
	gets := []string{pipeline.PartPictures}
	for name, row := range map[string]struct {
		r    Request
		want string
	}{
		"one":        {Request{Gets: gets, Pictures: []string{"a.png"}}, picturesIntro + "\n\n- a.png\n"},
		"the source": {Request{Gets: gets, Artifact: page}, noPictures + "\n\n```html\n<html>\n```\n"},
		"neither":    {Request{Gets: gets, Artifact: Text{Label: "a.html"}}, "\n"},
		"the source is a part": {Request{Gets: append(gets, pipeline.PartArtifact), Artifact: page},
			noPictures + "\n\n---\n\n# The artifact as it is now\n\n```html\n<html>\n```\n"},
		"the template places the source": {Request{Gets: gets, Artifact: page, Template: "{{artifact}}"},
			noPictures + "\n\n---\n\n# The artifact as it is now\n\n```html\n<html>\n```\n"},
		"no artifact yet": {Request{Gets: []string{pipeline.PartArtifact}, Artifact: Text{Label: "a.html"}}, "\n"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, Compose(row.r)) })
	}
}

func TestComposeFiles(t *testing.T) {
	r := Request{Gets: []string{pipeline.PartFiles}, Files: []Text{{"A", "a"}, {"B", "b"}, {"C", "c"}},
		References: []Text{{"R", "r"}}}
	require.Equal(t, "## [1/3] A (PRIMACY POSITION)\n\n```\na\n```\n\n## [2/3] B\n\n```\nb\n```\n\n## [3/3] C\n\n```\nc\n"+
		"```\n", Compose(r))
}

func TestFeedbackWithoutOutputs(t *testing.T) {
	r := Request{Feedback: "Say where.", Answers: &Answers{Question: "Is this right?"}}
	require.Equal(t, "# The operator's feedback\n\nAn operator was asked about the work so far: Is this right?\n\n"+
		"The operator answered:\n\nSay where.\n", Compose(r))
	r.Answers.Verdict = "not\nyet"
	require.Contains(t, Compose(r), "so far: Is this right? (verdict: not yet)\n\n")
}

func TestFence(t *testing.T) {
	for body, want := range map[string]string{
		"":           "```x\n```",
		"a":          "```x\na\n```",
		"a\n":        "```x\na\n```",
		"a ``` b":    "````x\na ``` b\n````",
		"`````\n```": "``````x\n`````\n```\n``````",
	} {
		require.Equal(t, want, fence("x", body))
	}
}
