package scripted

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

const example = "../../../examples/corpus"

var noteHeading = regexp.MustCompile(`(?m)^## Pass \d+ \(`)

// walker is an engine in small: it asks the agent what the plan says, and keeps page, notes and replies in memory.
type walker struct {
	t         *testing.T
	plan      *pipeline.Plan
	page      string
	notes     []pass.Text
	replies   []pass.Text // of the step before
	costAt    []float64   // after each call
	unchanged []int
}

func newWalker(t *testing.T, file string) *walker {
	t.Helper()
	folder := os.DirFS(example)
	d, problems := pipeline.Parse(file, []byte(load(t, file)), folder)
	require.Empty(t, problems)
	return &walker{t: t, plan: pipeline.Expand(d), page: load(t, d.Artifact.Seed)}
}

func load(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(example + "/" + path)
	require.NoError(t, err)
	return string(data)
}

func (w *walker) cost() float64 { return w.costAt[len(w.costAt)-1] }

// texts reads files by label, in the order of the labels; nil takes all.
func (w *walker) texts(files []pipeline.File, labels []string) []pass.Text {
	if labels == nil {
		for _, f := range files {
			labels = append(labels, f.Label)
		}
	}
	var out []pass.Text
	for _, label := range labels {
		i := slices.IndexFunc(files, func(f pipeline.File) bool { return f.Label == label })
		out = append(out, pass.Text{Label: label, Body: load(w.t, files[i].Path)})
	}
	return out
}

// call asks one role and reads its reply. Pictures are never taken: auditors look at the source.
func (w *walker) call(step pipeline.PlanStep, set pipeline.Set, round int, roleName string) pass.Reading {
	w.t.Helper()
	role, _ := w.plan.Role(roleName)
	always := w.texts(w.plan.AlwaysRead, nil)
	r := pass.Request{
		Template: load(w.t, role.Prompt), Gets: w.plan.PartsOf(step, roleName), Gives: role.Gives,
		Vars: pass.Vars{
			Description: step.DescriptionOf(roleName, round), Role: roleName, Pass: step.Number, Set: set.ID,
			Theme: set.Theme,
		},
		References: always[:5], Content: always[5:], Notes: w.notes, Replies: w.replies, Artifact: pass.Text{
			Label: "artifact.html", Body: w.page,
		},
	}
	for _, with := range role.With {
		r.Vars.With = append(r.Vars.With, pass.Text{Label: with.Key, Body: with.Text})
	}
	if step.Number > 0 {
		r.Vars.Passes, r.Files = w.plan.Total, w.texts(set.Files, step.Files)
	} else {
		r.Vars.Round, r.Vars.Rounds = round, w.plan.MaxRounds
	}
	e := answerOf(w.t, pass.Compose(r), nil)
	if len(w.costAt) > 0 {
		e.CostUSD += w.cost()
	}
	w.costAt = append(w.costAt, e.CostUSD)
	reading := pass.Read(role, w.plan.Notes, e.Result, nil, []byte(w.page))
	require.Equal(w.t, run.CategoryOK, reading.Outcome, reading.Message)
	require.True(w.t, reading.Validation.Passed, "%s: %v", step.Description, reading.Validation)
	w.keep(step, set, role, reading)
	w.replies = append(w.replies, pass.Text{Label: roleName, Body: e.Result})
	return reading
}

func (w *walker) keep(step pipeline.PlanStep, set pipeline.Set, role pipeline.Role, r pass.Reading) {
	if role.Builds() {
		w.page = string(r.Artifact)
		if !r.Modified {
			w.unchanged = append(w.unchanged, step.Number)
		}
	}
	for _, n := range r.Notes {
		i := slices.IndexFunc(w.notes, func(t pass.Text) bool { return t.Label == n.Label })
		if i < 0 {
			i, w.notes = len(w.notes), append(w.notes, pass.Text{Label: n.Label})
		}
		w.notes[i].Body += fmt.Sprintf("## Pass %d (%s, Rotation %s, %s)\n%s\n", step.Number, set.ID, step.Order,
			role.Name, n.Body)
	}
}

// set walks a set's passes and says what its verifiers found: deep/surface/absent.
func (w *walker) set(round pipeline.PlanRound) (found []string) {
	w.t.Helper()
	i := slices.IndexFunc(w.plan.Sets, func(s pipeline.Set) bool { return s.ID == round.Set })
	for _, step := range round.Steps {
		seen := w.replies
		w.replies = nil
		if step.Sees != "" {
			w.replies = seen[len(seen)-1:]
		}
		reading := w.call(step, w.plan.Sets[i], 0, step.Role)
		w.replies = w.replies[len(w.replies)-1:]
		if len(reading.Tally) == 3 {
			found = append(
				found, fmt.Sprintf("%d/%d/%d", *reading.Tally[0].Count, *reading.Tally[1].Count,
					*reading.Tally[2].Count),
			)
		}
	}
	return found
}

// cycle looks at the page once, and refines it unless it is good.
func (w *walker) cycle(steps []pipeline.PlanStep, n int) (auditors []float64, weaver float64) {
	w.t.Helper()
	w.replies = nil
	var reports []pass.Text
	for _, member := range steps[1].Members {
		auditors = append(auditors, *w.call(steps[1], pipeline.Set{}, n, member).Score)
		reports, w.replies = append(reports, w.replies...), nil
	}
	w.replies = reports
	weaver = *w.call(steps[2], pipeline.Set{}, n, steps[2].Role).Score
	w.replies = w.replies[len(w.replies)-1:]
	if weaver < 3.5 {
		w.call(steps[3], pipeline.Set{}, n, steps[3].Role)
	}
	return auditors, weaver
}

func TestWholePipeline(t *testing.T) {
	w := newWalker(t, "pipeline.yaml")
	require.Len(t, w.plan.Stages[0].Rounds, 7)
	for _, round := range w.plan.Stages[0].Rounds {
		require.Equal(t, []string{"0/3/2", "3/2/0", "5/0/0"}, w.set(round), round.Set)
	}
	require.Equal(t, []int{15, 31}, w.unchanged)
	require.Equal(t, []int{56, 55}, []int{entries(w.notes[0]), entries(w.notes[1])})
	corpus := w.cost()
	var scores []float64
	var auditors [][]float64
	for n := 1; n <= 3; n++ {
		each, score := w.cycle(w.plan.Stages[1].Rounds[0].Steps, n)
		scores, auditors = append(scores, score), append(auditors, each)
	}
	require.Equal(t, []float64{2.5, 3, 3.5}, scores)
	require.Equal(t, [][]float64{{2, 2.5, 3}, {2.5, 3, 3.5}, {3, 3.5, 4}}, auditors)
	require.Contains(t, w.page, `<main data-polish="2">`)
	require.Len(t, w.costAt, 70)
	t.Logf("corpus $%.2f, total $%.2f; the page has %d bytes", corpus, w.cost(), len(w.page))
	requireBudgets(t, w.costAt)
}

// entries counts the headings of a note.
func entries(note pass.Text) int {
	return len(noteHeading.FindAllString(note.Body, -1))
}

// requireBudgets: the example's budget of 6 warns late and never pauses; one of 3 pauses in the middle.
func requireBudgets(t *testing.T, costAt []float64) {
	t.Helper()
	crossed := func(usd float64) int {
		return 1 + slices.IndexFunc(costAt, func(cost float64) bool { return cost >= usd })
	}
	t.Logf("$3 is reached by call %d, $4.80 by call %d", crossed(3), crossed(4.8))
	require.Zero(t, crossed(6))
	require.Greater(t, crossed(4.8), 45)
	require.Greater(t, crossed(3), 25)
	require.Less(t, crossed(3), 45)
}

func TestTinyPipeline(t *testing.T) {
	w := newWalker(t, "corpus-tiny.yaml")
	require.Equal(t, 16, w.plan.Total)
	for _, round := range w.plan.Stages[0].Rounds {
		require.Equal(t, []string{"0/3/2", "3/2/0", "5/0/0"}, w.set(round), round.Set)
	}
	_, first := w.cycle(w.plan.Stages[1].Rounds[0].Steps, 1)
	_, second := w.cycle(w.plan.Stages[1].Rounds[0].Steps, 2)
	require.Equal(t, []float64{2.5, 3}, []float64{first, second})
	require.Equal(t, 2, w.plan.MaxRounds)
	require.Less(t, w.cost(), w.plan.Budget.USD*w.plan.Budget.WarnAt)
}
