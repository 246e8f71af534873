package pipeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func corpusPlan(t *testing.T) *Plan {
	return Expand(parsed(t, read(t, "corpus-integration.yaml")))
}

// numbered lists the plan's numbered steps, in order.
func numbered(p *Plan) []PlanStep {
	var out []PlanStep
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				if step.Number > 0 {
					out = append(out, step)
				}
			}
		}
	}
	return out
}

func TestExpandGivesTheFiftySixPasses(t *testing.T) {
	p := corpusPlan(t)
	require.Equal(t, 56, p.Total)
	require.Equal(t, 35, p.Builders)
	require.Equal(t, 6, p.MaxRounds)
	steps := numbered(p)
	require.Len(t, steps, 56)
	roles := []string{"builder", "verifier", "builder", "builder", "verifier", "builder", "builder", "verifier"}
	orders, shifts := []string{"A", "A", "A", "B", "B", "B", "C", "C"}, []int{0, 0, 0, 2, 2, 2, 4, 4}
	labels := map[string]string{"A": "Base ordering", "B": "Mid files promoted", "C": "Last files promoted"}
	for i, step := range steps {
		set, k := p.Sets[i/8], i%8
		title := map[string]string{"builder": "Builder", "verifier": "Verifier"}[roles[k]]
		theme, _, _ := strings.Cut(set.Theme, " + ")
		require.Equal(t, i+1, step.Number)
		require.Equal(t, fmt.Sprintf("%03d", i+1), step.Key)
		require.Equal(t, k+1, step.InRound)
		require.Equal(t, StepKind(KindRole), step.Kind)
		require.Equal(t, roles[k], step.Role)
		require.Equal(t, orders[k], step.Order)
		require.Equal(t, labels[orders[k]], step.OrderLabel)
		require.Equal(t, rotated(set, shifts[k]), step.Files)
		sees := ""
		if k == 2 || k == 5 {
			sees = fmt.Sprintf("%03d", i)
		}
		require.Equal(t, sees, step.Sees)
		require.Equal(t, sees != "", slices.Contains(step.Gets, PartReplies))
		require.Equal(t, fmt.Sprintf("[%s] Pass %d/8 — Rotation %s (%s) — %s — %s", set.ID, k+1, orders[k],
			labels[orders[k]], title, set.Theme), step.Description)
		require.Equal(t, fmt.Sprintf("[%s] Pass %d/8 — Rotation %s — %s — %s", set.ID, k+1, orders[k], title, theme),
			step.LogTitle)
	}
}

func rotated(set Set, shift int) []string {
	var out []string
	for i := range set.Files {
		out = append(out, set.Files[(i+shift)%len(set.Files)].Label)
	}
	return out
}

func TestExpandPassesAsPrinted(t *testing.T) {
	steps := numbered(corpusPlan(t))
	require.Equal(t, "builder", steps[35].Role)
	require.Equal(t, []string{"Combinations", "Borders", "SemanticRules", "Mechanisms", "Rules"}, steps[35].Files)
	require.Equal(t, "[S5] Pass 3/8 — Rotation A (Base ordering) — Builder — Grammar + Compositional Rules",
		steps[34].Description)
	require.Equal(t, "[S5] Pass 3/8 — Rotation A — Builder — Grammar", steps[34].LogTitle)
	require.Equal(t, "002", steps[2].Sees)
	require.Equal(t, "005", steps[5].Sees)
	require.Equal(t, []string{PartContext, PartReferences, PartNotes, PartReplies, PartArtifact, PartFiles, PartContent,
		PartTask}, steps[2].Gets)
	require.Equal(t, []string{PartContext, PartReferences, PartNotes, PartArtifact, PartFiles, PartContent, PartTask},
		steps[3].Gets)
}

func TestExpandGivesEachOfTheLoopWhatItNeeds(t *testing.T) {
	s := corpusPlan(t).Stages[1]
	require.Equal(t, StageRepeat, s.Kind)
	require.Equal(t, "PA hardening", s.Title)
	require.Len(t, s.Rounds, 1)
	require.Equal(t, "cp-PA-{n}", s.Rounds[0].Checkpoint)
	require.Equal(t, "screenshots/cycle-{n}", s.Dir)
	steps := s.Rounds[0].Steps
	for i, want := range []PlanStep{
		{Key: "pa-hardening/1", Kind: KindScreenshots, Description: "[pa-hardening] Cycle {n} — Screenshots"},
		{Key: "pa-hardening/2", Kind: KindTogether,
			Description: "[pa-hardening] Cycle {n} — Auditor A, Auditor B, Auditor C",
			Gets:        []string{PartContext, PartPictures, PartTask}},
		{Key: "pa-hardening/3", Kind: KindRole, Description: "[pa-hardening] Cycle {n} — Weaver",
			Sees: "pa-hardening/2",
			Gets: []string{PartContext, PartReplies, PartPictures, PartTask}},
		{Key: "pa-hardening/4", Kind: KindRole, Description: "[pa-hardening] Cycle {n} — Refine",
			Sees: "pa-hardening/3",
			Gets: []string{PartContext, PartReferences, PartReplies, PartArtifact, PartContent, PartTask}},
	} {
		got := steps[i]
		require.Equal(t, want, PlanStep{Key: got.Key, Number: got.Number, Kind: got.Kind, Description: got.Description,
			Sees: got.Sees, SeesStage: got.SeesStage, Gets: got.Gets})
		require.Equal(t, got.Description, got.LogTitle)
		require.Equal(t, i+1, got.InRound)
	}
	require.Equal(t, "[pa-hardening] Cycle 2 — Auditor B", steps[1].DescriptionOf("auditor-B", 2))
	require.Equal(t, "[pa-hardening] Cycle 2 — Weaver", steps[2].DescriptionOf("", 2))
}

func TestExpandStagesWithoutSets(t *testing.T) {
	p := Expand(parsed(t, read(t, "plan-implement-review.yaml")))
	require.Equal(t, 2, p.Total)
	require.Equal(t, 1, p.Builders, "the implementer returns changes")
	plan, implement, review := p.Stages[0], p.Stages[1], p.Stages[2]
	require.Equal(t, StageOnce, plan.Kind)
	require.Equal(t, "001", plan.Rounds[0].Steps[0].Key)
	require.Equal(t, "[plan] Step 1/2 — Planner", plan.Rounds[0].Steps[0].Description)
	require.Equal(t, "plan/2", plan.Rounds[0].Steps[1].Key)
	require.Zero(t, plan.Rounds[0].Steps[1].Number)
	require.Equal(t, "[plan] Step 2/2 — Is this the right plan?", plan.Rounds[0].Steps[1].Description)
	require.Equal(t, "002", implement.Rounds[0].Steps[0].Key)
	require.Equal(t, "plan", implement.Rounds[0].Steps[0].SeesStage)
	require.Equal(t, []string{PartContext, PartReferences, PartNotes, PartReplies, PartContent, PartTask},
		implement.Rounds[0].Steps[0].Gets)
	require.Equal(t, "plan", review.Rounds[0].Steps[0].SeesStage)
	require.Equal(t, "review/1", review.Rounds[0].Steps[1].Sees)
}

func TestExpandLetsTheFirstStepOfALoopSeeTheRoundBefore(t *testing.T) {
	p := Expand(parsed(t, read(t, "turn-loop.yaml")))
	require.Zero(t, p.Total)
	steps := p.Stages[0].Rounds[0].Steps
	require.Equal(t, "turns/1", steps[0].Sees, "the last role step, not the command after it")
	require.Equal(t, StepKind(KindRun), steps[1].Kind)
	require.Equal(t, "tests", steps[1].As)
	require.Equal(t, defaultLimits(), *steps[1].Limits, "a command has no role to take limits from")
}

func TestExpandTheRestOfTheGrammar(t *testing.T) {
	p := Expand(parsed(t, []byte(rich)))
	require.Equal(t, 0.01, p.TimeScale)
	require.Equal(t, 4, p.Total)
	write, judge := p.Stages[0], p.Stages[1].Rounds[0].Steps
	require.True(t, write.PauseAfter)
	require.Equal(t, []string{"b", "a"}, write.Rounds[0].Steps[0].Files)
	require.Equal(t, "[S1] Pass 1/1 — Order X (Back first) — Writer — One", write.Rounds[0].Steps[0].Description)
	require.Equal(t, "judge/1", judge[0].Key)
	require.Equal(t, "003", judge[1].Key)
	require.Equal(t, []string{PartContext, PartPictures, PartTask}, judge[1].Gets,
		"no call since the screenshots")
	require.Equal(t, "write", judge[3].SeesStage, "see overrules the reply before")
	require.Empty(t, judge[3].Sees)
	require.Equal(t, 7, p.RoleLimits(write.Rounds[0].Steps[0], "writer").Attempts)
	require.Equal(t, 3, p.RoleLimits(judge[1], "writer").Attempts)
}

func TestExpandGivesWhatATemplatePlaces(t *testing.T) {
	src := read(t, "corpus-integration.yaml")
	folder := folderFor(src)
	folder["prompts/refine.md"] = file("{{notes}}")
	folder["prompts/auditor.md"] = file("{{references}}")
	d, problems := Parse("x.yaml", src, folder)
	require.Empty(t, problems)
	p := Expand(d)
	steps := p.Stages[1].Rounds[0].Steps
	require.Contains(t, steps[3].Gets, PartNotes)
	require.NotContains(t, steps[1].Gets, PartReferences)
	require.Equal(t, []string{PartContext, PartReferences, PartPictures, PartTask}, p.PartsOf(steps[1], "auditor-A"))
}

func TestExpandShiftsRoundDown(t *testing.T) {
	for files, want := range map[int][3]int{1: {0, 0, 0}, 2: {0, 0, 1}, 3: {0, 1, 2}, 5: {0, 2, 4}, 7: {0, 2, 5}} {
		d := parsed(t, read(t, "corpus-integration.yaml"))
		set := Set{ID: "S1"}
		for i := range files {
			set.Files = append(set.Files, File{Label: fmt.Sprint(i)})
		}
		d.Corpus = []Set{set}
		steps := numbered(Expand(d))
		for i, step := range []int{0, 3, 6} {
			require.Equal(t, fmt.Sprint(want[i]), steps[step].Files[0], "%d files, order %s", files, steps[step].Order)
			require.Len(t, steps[step].Files, files)
		}
	}
}

func TestKeysAreUnique(t *testing.T) {
	src := strings.Replace(healthy, "- {role: judge, order: Y, see: last}", "- {run: make}\n      - {ask: 'Fine?'}", 1)
	src = strings.Replace(src, "stages:", "  S2: {theme: Two, files: [A: a.md]}\nstages:", 1)
	seen := map[string]bool{}
	for _, s := range Expand(parsed(t, []byte(src))).Stages {
		for _, r := range s.Rounds {
			for _, step := range r.Steps {
				require.False(t, seen[step.Key], step.Key)
				seen[step.Key] = true
			}
		}
	}
	require.Len(t, seen, 9)
}

func TestExpandFindsAStepOfAnEarlierStage(t *testing.T) {
	src := strings.Replace(healthy, "  - name: polish",
		"  - {name: check, steps: [{run: \"make\\n  all\", as: all}, {role: judge, as: first}]}\n  - name: polish", 1)
	for see, want := range map[string]string{"all": "check/1", "first": "003", "tests": "polish/2"} {
		d := parsed(t, []byte(strings.Replace(src, "- {role: writer, see: last}", "- {role: writer, see: "+see+"}", 1)))
		p := Expand(d)
		require.Equal(t, want, p.Stages[2].Rounds[0].Steps[2].Sees, see)
		require.Equal(t, "[check] Step 1/2 — make all", p.Stages[1].Rounds[0].Steps[0].Description, "one line")
	}
}
