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
