package pipeline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestExpandTakesOverEverySettingOfAStep(t *testing.T) {
	limits := Limits{Attempts: 4}
	usual, own := Questions{Expires: time.Hour}, Questions{Remind: time.Minute}
	d := &Definition{
		Name: "p", Wording: WordingStages, Limits: limits, Questions: usual, Artifact: &Artifact{File: "a.html"},
		Roles:  []Role{{Name: "writer", Gives: GivesArtifact}},
		Corpus: []Set{{ID: "S1", Theme: "One", Files: []File{{"A", "a"}, {"B", "b"}, {"C", "c"}}}},
		Stages: []Stage{
			{Name: "each", ForEach: "corpus", Orders: []Order{{Name: "X", Num: 1, Den: 3, Label: "One later"},
				{Name: "writer", Num: 2, Den: 3}}, Steps: []Step{{Role: "writer", Order: "X"}, {Role: "writer"}}},
			{Name: "once", Steps: []Step{
				{Run: "make", ID: "tests", Effect: "external_action", Env: []string{"TOKEN"}, IfFailing: "ask",
					Confinement: Confinement{Sandbox: "strict", Network: Network{NetworkNone}}},
				{Ask: &Ask{"Right?", AskBypass, own}}, {Ask: &Ask{Question: "Sure?", Type: AskAlways}},
				{Run: "make\n  all", IfFailing: "continue", Limits: &Limits{Attempts: 1}},
			}},
		},
	}
	p := Expand(d)
	gets := []string{PartContext, PartReferences, PartNotes, PartArtifact, PartFiles, PartContent, PartTask}
	require.Equal(t, []PlanStep{
		{Key: "001", Number: 1, InRound: 1, Kind: KindRole, Role: "writer", Order: "X", OrderLabel: "One later",
			Files: []string{"B", "C", "A"}, Gets: gets,
			Description: "[S1] Pass 1/2 — Order X (One later) — Writer — One",
			LogTitle:    "[S1] Pass 1/2 — Order X — Writer — One"},
		{Key: "002", Number: 2, InRound: 2, Kind: KindRole, Role: "writer", Files: []string{"A", "B", "C"},
			Gets:        gets,
			Description: "[S1] Pass 2/2 — Writer — One", LogTitle: "[S1] Pass 2/2 — Writer — One"},
	}, p.Stages[0].Rounds[0].Steps)
	title := func(text string) (string, string) { return "[once] " + text, "[once] " + text }
	want := []PlanStep{
		{Key: "once/1", InRound: 1, Kind: KindRun, Run: "make", ID: "tests", Effect: "external_action",
			Env: []string{"TOKEN"}, IfFailing: "ask", Questions: &usual, Limits: &limits,
			Confinement: Confinement{Sandbox: "strict", Network: Network{NetworkNone}}},
		{Key: "once/2", InRound: 2, Kind: KindAsk, Ask: "Right?", AskType: AskBypass, Questions: &own},
		{Key: "once/3", InRound: 3, Kind: KindAsk, Ask: "Sure?", AskType: AskAlways, Questions: &usual},
		{Key: "once/4", InRound: 4, Kind: KindRun, Run: "make\n  all", Limits: &Limits{Attempts: 1}},
	}
	for i, text := range []string{"Step 1/4 — make", "Step 2/4 — Right?", "Step 3/4 — Sure?", "Step 4/4 — make all"} {
		want[i].Description, want[i].LogTitle = title(text)
	}
	require.Equal(t, want, p.Stages[1].Rounds[0].Steps)
	require.Equal(t, []int{2, 2, 0}, []int{p.Total, p.Builders, p.MaxRounds})
}

func TestExpandFollowsSee(t *testing.T) {
	shots := Step{Screenshots: &Screenshots{}}
	d := &Definition{
		Roles: []Role{{Name: "a"}, {Name: "b"}}, Artifact: &Artifact{},
		Stages: []Stage{
			{Name: "first", Steps: []Step{{Role: "a", ID: "draft"}, {Run: "make"}, {Role: "b", See: "last"},
				{Role: "b", See: "draft"}}},
			{Name: "loop", Repeat: &Repeat{Max: 2}, Steps: []Step{{Role: "a", See: "last"}, {Role: "b", See: "first"},
				{Role: "b", See: "draft"}}},
			{Name: "pictures", Steps: []Step{{Role: "a"}, shots, {Role: "a"}, {Role: "b"},
				{Together: []string{"a", "b"}}, {Role: "a"}}},
		},
	}
	type seen struct{ step, stage string }
	var all [][]seen
	for _, s := range Expand(d).Stages {
		var stage []seen
		for _, step := range s.Rounds[0].Steps {
			stage = append(stage, seen{step.Sees, step.SeesStage})
		}
		all = append(all, stage)
	}
	require.Equal(t, [][]seen{
		{{}, {}, {step: "first/2"}, {step: "001"}},
		{{step: "loop/3"}, {stage: "first"}, {step: "001"}},
		{{}, {}, {}, {step: "005"}, {}, {step: "pictures/5"}},
	}, all)
	pictures := []string{PartContext, PartPictures, PartTask}
	steps := Expand(d).Stages[2].Rounds[0].Steps
	require.Equal(t, pictures, steps[2].Gets)
	require.Equal(t, []string{PartContext, PartReferences, PartReplies, PartArtifact, PartContent, PartTask},
		steps[3].Gets)
	require.Equal(t, pictures, steps[4].Gets)
	require.Equal(t, []string{PartContext, PartReplies, PartPictures, PartTask}, steps[5].Gets)
}

func TestSeeNamesEarlierSteps(t *testing.T) {
	d := &Definition{Stages: []Stage{
		{Name: "silent", Steps: []Step{{Run: "make", ID: "built"}, {See: "last"}}},
		{Name: "each", ForEach: "corpus", Steps: []Step{{Role: "a", ID: "one"}}},
		{Name: "loop", Repeat: &Repeat{}, Steps: []Step{{Role: "a", ID: "x"}, {Together: []string{"a"}, ID: "y"}}},
		{Name: "late", Steps: []Step{{Role: "a", ID: "z"}, {Role: "b", ID: "w"}}},
	}}
	for _, row := range []struct {
		see         string
		stage, step int
		want        target
		err         string
	}{
		{"built", 3, 0, target{0, 0}, ""},
		{"loop", 3, 0, target{2, -1}, ""},
		{"y", 2, 0, target{2, 1}, ""},
		{"x", 2, 0, target{2, 0}, ""},
		{"z", 3, 1, target{3, 0}, ""},
		{"last", 2, 0, target{2, 1}, ""},
		{"last", 2, 1, target{2, 0}, ""},
		{"last", 0, 1, target{0, 0}, ""},
		{"z", 3, 0, target{}, `see is "z", a step that has not run by then`},
		{"w", 3, 0, target{}, `see is "w", a step that has not run by then`},
		{"z", 2, 0, target{}, `see is "z", a step that has not run by then`},
		{"one", 2, 0, target{}, `see is "one", a step with one reply for each set; name its stage "each" for the last`},
		{"one", 1, 0, target{}, `see is "one", a step that has not run by then`},
		{"silent", 3, 0, target{}, `see is "silent", a stage in which no role replies`},
		{"late", 3, 1, target{}, `see is "late", a stage that has not finished by then`},
		{"late", 2, 1, target{}, `see is "late", a stage that has not finished by then`},
		{"last", 3, 0, target{}, "see is last, and no step before it"},
		{"buit", 3, 0, target{}, `see is "buit", not a stage and not the id of a step; did you mean "built"?`},
	} {
		d.Stages[row.stage].Steps[row.step].See = row.see
		got, err := d.seen(row.stage, row.step)
		require.Equal(t, row.want, got, row.see)
		if row.err == "" {
			require.NoError(t, err, row.see)
		} else {
			require.ErrorContains(t, err, row.err)
		}
	}
}
