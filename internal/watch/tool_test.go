package watch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

// fakeRecords has a reply and a patch for each pass, and counts what is read.
type fakeRecords struct {
	passes []Pass
	read   []string
	err    error
}

func (f *fakeRecords) Passes(context.Context) ([]Pass, error) { return f.passes, f.err }
func (f *fakeRecords) Pass(_ context.Context, seq int64) ([]Section, error) {
	f.read = append(f.read, fmt.Sprint(seq))
	return []Section{{Title: "Reply", Text: fmt.Sprintf("I am reply %d.\n\nIt has a needle in it.", seq)},
		{Title: "Changes", Text: "@@ -1 +1 @@\n-old\n+new", Patch: true}}, f.err
}
func (f *fakeRecords) Changes(context.Context) (string, error) {
	f.read = append(f.read, "changes")
	return "diff --git a/x b/x\n+new\n", f.err
}
func (f *fakeRecords) Log(context.Context) (string, error) {
	f.read = append(f.read, "log")
	return strings.Repeat("a line of the log\n", 200) + "the last line\n", f.err
}

// working is a run in its second round of review.
func working() (Scene, []Pass) {
	s := Scene{
		State: run.State{Pipeline: "review", Task: "Add a --json flag to the report", RunID: "c50bb1c8-0000", Seq: 40,
			StartedAt: "2026-02-28T14:23:00.000Z", Status: run.Running, Wording: run.WordingStages, Phase: "work",
			Spent: run.Totals{Calls: 4, USD: 0.49}},
		Task: "Add a --json flag to the report", Status: run.Running,
		Figures: view.Figures{Words: run.WordingStages.Words(), Progress: view.Progress{Done: 1, Total: 3}, Timing: view.Timing{Elapsed: 14 * time.Minute},
			InFlight: []view.InFlightCall{{Call: "c9", Role: "reviewer", Attempt: 1, Elapsed: 72 * time.Second}},
			Stages: []view.Stage{{Name: "plan", Title: "Plan", Max: 1, Finished: true},
				{Name: "work", Title: "Work", Max: 5, Rounds: 1, Repeats: true, Current: true}, {Name: "tell", Title: "Tell", Max: 1}}},
		Outputs: []Output{{Call: "c9", Who: "reviewer", Lines: []string{"I read report.go.", "Tool: Bash go test ./..."},
			Doing: "Bash go test ./... (12s) · 3 requests"}},
	}
	return s, []Pass{{Seq: 4, Stage: "plan", Round: 1, Name: "planner", OK: true, Cost: "$0.02"},
		{Seq: 12, Stage: "work", Round: 1, Name: "implementer", OK: true, Cost: "$0.20"},
		{Seq: 18, Stage: "work", Round: 1, Name: "tests", Outcome: "failed"},
		{Seq: 24, Stage: "work", Round: 1, Name: "reviewer", OK: true, Verdict: "rejected", Cost: "$0.07"},
		{Seq: 33, Stage: "work", Round: 2, Name: "implementer", OK: true, Cost: "$0.20"}}
}

// listing returns a screen with a list, at a size.
func listing(s Scene, from *fakeRecords, width, height int) *model {
	m := newModel(context.Background(), Options{Records: from, Actions: &fakeActions{}})
	m.width, m.height = width, height
	m.settle(m.took(shot{scene: s, passes: from.passes, reader: m.reader}))
	return m
}

// settle runs commands until nothing more is read.
func (m *model) settle(cmd tea.Cmd) {
	for cmd != nil {
		_, cmd = m.Update(cmd())
	}
}

// types presses keys, and awaits what they read.
func (m *model) types(keys ...tea.KeyPressMsg) {
	for _, k := range keys {
		m.content() // the size of the text is that of the screen
		cmd := m.key(k)
		if m.entry == nil {
			m.settle(cmd)
		}
	}
}

func letter(r rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: r, Text: string(r)} }

var (
	enter = tea.KeyPressMsg{Code: tea.KeyEnter}
	down  = tea.KeyPressMsg{Code: tea.KeyDown}
	up    = tea.KeyPressMsg{Code: tea.KeyUp}
	esc   = tea.KeyPressMsg{Code: tea.KeyEscape}
	tab   = tea.KeyPressMsg{Code: tea.KeyTab}
)

// TestToolScreens compares the screens with reviewed files.
func TestToolScreens(t *testing.T) {
	work, passes := working()
	done := work
	done.Status, done.State.Status, done.Figures.InFlight = run.Done, run.Done, nil
	done.Figures.Progress = view.Progress{Done: 2, Total: 2}
	done.Figures.Stages = []view.Stage{{Name: "plan", Title: "Plan", Finished: true}, {Name: "work", Title: "Work", Repeats: true,
		Rounds: 2, Finished: true}}
	done.Why = "Result: branch passbook/add-a-json-flag-c50bb1c8\nTo take it: git merge passbook/add-a-json-flag-c50bb1c8"
	for _, row := range []struct {
		name          string
		scene         Scene
		keys          []tea.KeyPressMsg
		width, height int
	}{
		{"tool-running-at-80x24", work, nil, 80, 24},
		{"tool-running-at-140x40", work, nil, 140, 40},
		{"tool-question-at-80x24", asking(), nil, 80, 24},
		{"tool-done-at-80x24", done, nil, 80, 24},
		{"tool-pass-at-80x24", work, []tea.KeyPressMsg{up, up, up, enter}, 80, 24},
		{"tool-keys-at-80x24", asking(), []tea.KeyPressMsg{letter('?')}, 80, 24},
		{"tool-keys-at-140x40", work, []tea.KeyPressMsg{letter('?')}, 140, 40},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := listing(row.scene, &fakeRecords{passes: passes}, row.width, row.height)
			m.types(row.keys...)
			testenv.Golden(t, *update, row.name, codes.ReplaceAllString(m.content(), "")+"\n")
		})
	}
}

// TestSelectionStays where the user has put it; until then the screen shows what matters most.
func TestSelectionStays(t *testing.T) {
	s, passes := working()
	m := listing(s, &fakeRecords{passes: passes}, 80, 24)
	require.Equal(t, "call c9", m.tool.selected().key)
	asks := s
	asks.Question = asking().Question
	m.settle(m.took(shot{scene: asks, reader: m.reader}))
	require.Equal(t, "question q1", m.tool.selected().key)
	m.types(down)
	chosen := m.tool.selected().key
	m.settle(m.took(shot{scene: s, passes: append(passes, Pass{Seq: 39, Stage: "work", Round: 2, Name: "tests", OK: true}), reader: m.reader}))
	require.Equal(t, chosen, m.tool.selected().key, "rows were added and removed")
	m.types(letter('G'))
	require.Equal(t, "log", m.tool.selected().key)
	require.Contains(t, m.content(), "the last line")
}

// TestTextsAreReadOnce: those of a pass once, those that change with the run again.
func TestTextsAreReadOnce(t *testing.T) {
	s, passes := working()
	from := &fakeRecords{passes: passes}
	m := listing(s, from, 80, 24)
	m.types(up, down, up, letter('G'), up, down)
	require.Equal(t, []string{"33", "log", "changes"}, from.read)
	s.State.Seq++
	m.settle(m.took(shot{scene: s, reader: m.reader}))
	require.Equal(t, []string{"33", "log", "changes", "log"}, from.read)
	from.err = errors.New("the store is away")
	m.types(up)
	require.Contains(t, m.content(), "the store is away")
}

// TestSearch marks a text, goes from match to match, and ends with Esc.
func TestSearch(t *testing.T) {
	s, passes := working()
	m := listing(s, &fakeRecords{passes: passes}, 80, 24)
	m.types(up, letter('/'))
	for _, r := range "NEEDLE" {
		m.types(letter(r))
	}
	m.types(enter)
	require.Equal(t, "NEEDLE", m.tool.find)
	require.Len(t, m.tool.matches(), 1)
	m.types(letter('n'), letter('N'), esc)
	require.Empty(t, m.tool.find)
	m.types(letter('/'), letter('z'), letter('z'), enter)
	require.Contains(t, m.content(), `"zz" is not in this text`)
}

// TestPanelsAreOneKeyAway, and are shown first for a run with a corpus.
func TestPanelsAreOneKeyAway(t *testing.T) {
	s, passes := working()
	m := listing(s, &fakeRecords{passes: passes}, 80, 40)
	require.NotContains(t, m.content(), "Timing")
	m.types(tab)
	require.Contains(t, m.content(), "Timing")
	m.types(tab)
	require.NotContains(t, m.content(), "Timing")
	require.True(t, func() bool { _, quit := m.key(letter('q'))().(tea.QuitMsg); return quit }())
	m = listing(Scene{}, &fakeRecords{}, 80, 40) // it has not begun
	require.NotContains(t, m.content(), "Progress")
	m.settle(m.took(shot{scene: at35(), reader: m.reader}))
	require.Contains(t, m.content(), "Subset Progress")
}

// TestDecideInList: a number answers the question while a text is open.
func TestDecideInList(t *testing.T) {
	m := listing(asking(), &fakeRecords{}, 80, 24)
	m.types(enter, letter('1'), enter)
	f, _ := m.o.Actions.(*fakeActions)
	require.Equal(t, []string{`decide q1 continue ""`}, f.calls)
}

// TestHostileRows: what agents and directories name cannot control the terminal.
func TestHostileRows(t *testing.T) {
	s, passes := working()
	for i := range passes {
		passes[i].Name, passes[i].Verdict = "a\x1b[2Jb\u202e\r\n", "\x1b]0;x\x07"
	}
	s.Figures.Stages[0].Title = "\x1b[31mred"
	s.Task = "task\x1b[2J\u202e"
	text := listing(s, &fakeRecords{passes: passes}, 80, 24).content()
	require.NotContains(t, codes.ReplaceAllString(text, ""), "\x1b")
	require.NotContains(t, text, "\u202e")
	require.Len(t, strings.Split(text, "\n"), 24)
}

// BenchmarkScroll draws a run of 1,000 passes after each key.
func BenchmarkScroll(b *testing.B) {
	s, _ := working()
	var passes []Pass
	for i := range int64(1000) {
		passes = append(passes, Pass{Seq: i, Stage: "work", Round: int(i/4) + 1, Name: "implementer", OK: true, Cost: "$0.20"})
	}
	m := listing(s, &fakeRecords{passes: passes}, 140, 40)
	m.types(letter('g'))
	for b.Loop() {
		m.types(down)
		m.content()
	}
}
