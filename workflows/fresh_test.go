package workflows_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// inFreshFolder is a pipeline whose commands that decide also run in a fresh folder.
func inFreshFolder(stages string) string {
	head, _, _ := strings.Cut(reviewed, "stages:")
	return strings.Replace(head, ", fresh: false", "", 1) + "stages:\n" + stages
}

const (
	turns = "  - name: turns\n    repeat: {max: 3, until: tests.ok, otherwise: ask}\n" +
		"    steps: [{role: implementer}, {run: make test, id: tests}, {role: reviewer}]\n"
	turnsToTheEnd = "  - name: turns\n    repeat: {max: 3, until: tests.ok and approved}\n" +
		"    steps: [{role: implementer}, {run: make test, id: tests}, {role: reviewer}]\n"
	gateOnce  = "  - name: once\n    steps: [{role: implementer}, {run: make test, if_failing: ask}]\n"
	published = "  - name: once\n    steps: [{role: implementer}, {run: make push, if_failing: ask, effect: external_action}]\n"
)

// TestFreshFolder follows the commands that decide: in the workspace and, with the suffix fresh, in a fresh folder.
func TestFreshFolder(t *testing.T) {
	for name, row := range map[string]struct {
		stages  string
		values  []string // of the commands; then ok
		answers []message
		want    string
		skipped []string
		shown   []int // of the prompts: how many commands pass only in the workspace
		text    string
	}{
		"passes": {stages: turnsToTheEnd, want: "i test r fresh:turns/4", shown: []int{0, 0},
			text: "passes in a fresh folder: tests"},
		"passes only in the workspace": {stages: turnsToTheEnd, values: []string{"ok", "failed"},
			want: "i test r fresh:turns/4 i test r fresh:turns/4", shown: []int{0, 0, 1, 0},
			text: "passes in a fresh folder: tests"},
		"later steps are skipped": {stages: turns, want: "i test fresh:turns/4", skipped: []string{"turns/3"},
			answers: []message{{"action": "apply"}}, shown: []int{0}, text: "passes in a fresh folder: tests"},
		"changed after the loop": {stages: turnsToTheEnd + implementation, answers: []message{{"action": "apply"}}, want: "i test r fresh:turns/4 i fresh:fresh/1",
			shown: []int{0, 0, 0}, text: "passes in a fresh folder: tests"},
		"accepted although it fails": {stages: turns, values: []string{"failed", "failed", "failed"},
			answers: []message{{"action": "continue"}, {"action": "apply"}},
			want:    "i test r i test r i test r", shown: []int{0, 0, 0, 0, 0, 0}, text: "not checked in a fresh folder"},
		"asks before the delivery, retried": {stages: gateOnce, values: []string{"ok", "failed", "failed"},
			answers: []message{{"action": "retry"}, {"action": "retry"}},
			want:    "i test fresh:fresh/1 fresh:fresh/1 fresh:fresh/1", shown: []int{0},
			text: "passes in a fresh folder: [once] Step 2/2 — make test"},
		"asks before the delivery, waived": {stages: gateOnce, values: []string{"ok", "failed"},
			answers: []message{{"action": "continue_with_waiver", "feedback": "known"}},
			want:    "i test fresh:fresh/1", shown: []int{0},
			text: "passes only in the workspace: [once] Step 2/2 — make test"},
		"changed at the delivery": {stages: turnsToTheEnd + implementation,
			answers: []message{{"action": "fix", "feedback": "more"}, {"action": "apply"}},
			want:    "i test r fresh:turns/4 i fresh:fresh/1 i fresh:fresh/1", shown: []int{0, 0, 0, 0},
			text: "passes in a fresh folder: tests"},
		"has an effect": {stages: published, want: "i test", shown: []int{0}, text: "not checked in a fresh folder"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, inFreshFolder(row.stages))
			w.agent.values = row.values
			var shown []int
			w.composing = func(in contract.ComposeInput) {
				step, _ := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
				if step.Role != "" {
					shown = append(shown, len(in.Context.Fresh))
				}
			}
			w.answering(func(n int, q run.Question) {
				m := message{"id": q.ID}
				for k, v := range row.answers[n-1] {
					m[k] = v
				}
				w.signal("decide", m)
			})
			s := w.ends(run.Done, "")

			var called []string
			for _, in := range w.agent.inputs {
				step, _ := w.plan.Stages[in.At.Stage].RoundAt(in.At.Round).At(in.At.Step)
				switch {
				case step.Fresh != "":
					called = append(called, "fresh:"+step.Key)
					require.Equal(t, contract.FreshSlot, in.Slot)
					require.NotNil(t, in.Before, "the output in the workspace")
				case step.Role != "":
					called = append(called, step.Role[:1])
				default:
					called = append(called, "test")
					require.Empty(t, in.Slot)
				}
			}
			require.Equal(t, row.want, strings.Join(called, " "))
			var skipped []string
			for _, p := range payloads[run.StepSkipped](w, run.KindStepSkipped) {
				skipped = append(skipped, p.Step)
			}
			require.Equal(t, row.skipped, skipped)
			require.Equal(t, row.shown, shown)
			require.Equal(t, row.text, s.FreshText())
		})
	}
}
