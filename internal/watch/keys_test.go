package watch

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// fakeActions records its calls.
type fakeActions struct {
	calls []string
	err   error
}

func (f *fakeActions) note(format string, args ...any) (string, error) {
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
	return "done so", f.err
}
func (f *fakeActions) Pause(_ context.Context, now bool) (string, error) {
	return f.note("pause now=%v", now)
}
func (f *fakeActions) Resume(_ context.Context, reason string) (string, error) {
	return f.note("resume %q", reason)
}
func (f *fakeActions) Budget(_ context.Context, usd float64) (string, error) {
	return f.note("budget %.2f", usd)
}
func (f *fakeActions) Decide(_ context.Context, question, action, words string) (string, error) {
	return f.note("decide %s %s %q", question, action, words)
}

// shown returns a screen of a scene that accepts keys.
func shown(s Scene, o Options) *model {
	m := newModel(context.Background(), o)
	m.scene, m.ready, m.reading, m.width, m.height = s, true, false, 80, 50
	return m
}

// press presses keys in sequence and runs their immediate commands. quit reports that the screen was left.
func press(m *model, keys ...string) (quit bool) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{Text: k}
		for _, r := range k {
			msg.Code = r
			if unicode.IsUpper(r) {
				msg.Mod = tea.ModShift
			}
		}
		switch k {
		case "enter":
			msg = tea.KeyPressMsg{Code: tea.KeyEnter}
		case "esc":
			msg = tea.KeyPressMsg{Code: tea.KeyEscape}
		case "ctrl+c":
			msg = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
		}
		_, cmd := m.Update(msg)
		if cmd == nil || m.entry != nil {
			continue // with an open input line, the cursor blinks
		}
		next := cmd()
		if _, over := next.(tea.QuitMsg); over {
			return true
		}
		m.Update(next)
	}
	return false
}

func TestKeysDoWhatTheVerbsDo(t *testing.T) {
	resting := func(status run.Status, reason string) Scene {
		s := at35()
		s.State.Status, s.State.Reason, s.Status = status, reason, status
		return s
	}
	for _, row := range []struct {
		name  string
		scene Scene
		keys  []string
		want  []string
	}{
		{"pause", at35(), []string{"p", "enter"}, []string{"pause now=false"}},
		{"pause, cancelled", at35(), []string{"p", "esc"}, nil},
		{"pause now", at35(), []string{"P", "y"}, []string{"pause now=true"}},
		{"a running run is not resumed", at35(), []string{"r", "y"}, nil},
		{"resume", resting(run.Paused, run.UserRequested), []string{"r", "enter"}, []string{`resume ""`}},
		{"resume of a pass that fails again and again", resting(run.Paused, run.ConsecutiveFailures),
			[]string{"r", "f", "i", "x", "enter"}, []string{`resume "fix"`}},
		{"resume of a pass that fails again and again, without a reason", resting(run.Paused, run.ConsecutiveFailures),
			[]string{"r", "enter"}, nil},
		{"resume of a failed run", resting(run.Failed, ""), []string{"r", "f", "i", "x", "enter"}, []string{`resume "fix"`}},
		{"resume of a failed run, without a reason", resting(run.Failed, ""), []string{"r", "y"}, nil},
		{"a run that is done has no keys", resting(run.Done, ""), []string{"r", "y", "p", "y", "b", "5", "enter"}, nil},
		{"budget", at35(), []string{"b", "5", "0", "0", "enter"}, []string{"budget 500.00"}},
		{"budget that is not an amount", at35(), []string{"b", "a", "enter"}, nil},
		{"decide", asking(), []string{"1", "enter"}, []string{`decide q1 continue ""`}},
		{"decide to end, cancelled", asking(), []string{"3", "n"}, nil},
		{"decide with feedback; q and p are letters there", asking(), []string{"2", "q", "p", "!", "enter"},
			[]string{`decide q1 retry_feedback "qp!"`}},
		{"decide with empty feedback", asking(), []string{"2", "enter"}, nil},
		{"a number that is not a choice", asking(), []string{"4", "enter"}, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := &fakeActions{}
			require.False(t, press(shown(row.scene, Options{Actions: f}), row.keys...))
			require.Equal(t, row.want, f.calls)
		})
	}
}

func TestNoticeShowsAnswerOfAction(t *testing.T) {
	f := &fakeActions{}
	m := shown(at35(), Options{Actions: f})
	press(m, "p", "y")
	require.Contains(t, m.content(), "done so")
	f.err = errors.New("this needs a server")
	press(m, "p", "y")
	require.Contains(t, m.content(), "this needs a server")
	press(m, "b", "x", "enter")
	require.Contains(t, m.content(), "is not an amount")
}

func TestLeavingChangesNothing(t *testing.T) {
	require.True(t, press(shown(at35(), Options{}), "q"))
	require.True(t, press(shown(at35(), Options{Actions: &fakeActions{}}), "p", "esc", "q"),
		"Esc goes back, and then q leaves")
	require.False(t, press(shown(at35(), Options{Actions: &fakeActions{}}), "b", "q"),
		"while an amount is typed, q is a letter")
	require.True(t, press(shown(at35(), Options{}), "ctrl+c"), "watching, Ctrl+C leaves")

	var sent []int
	o := Options{Attached: true, Interrupt: func(_ context.Context, nth int) error {
		sent = append(sent, nth)
		return nil
	}}
	m := shown(at35(), o)
	require.False(t, press(m, "ctrl+c"))
	require.Contains(t, m.content(), "Finishing current pass")
	require.False(t, press(m, "ctrl+c"))
	require.Contains(t, m.content(), "Force exit.")
	require.True(t, press(m, "ctrl+c"), "the run does not answer")
	require.Equal(t, []int{1, 2}, sent)
	require.True(t, m.forced)
}

// TestAttachedScreenEndsWithRun also ends with a pause that Ctrl+C requested; it stays during any other pause.
func TestAttachedScreenEndsWithRun(t *testing.T) {
	for _, row := range []struct {
		name       string
		status     run.Status
		interrupts int
		behind     bool // the last event is not fully on disk yet
		attached   bool
		ends       bool
	}{
		{"it runs", run.Running, 0, false, true, false},
		{"it is done", run.Done, 0, false, true, true},
		{"it is done, and not all is written", run.Done, 0, true, true, false},
		{"it has failed", run.Failed, 0, false, true, true},
		{"the budget is spent", run.Paused, 0, false, true, false},
		{"Ctrl+C has paused it", run.Paused, 1, false, true, true},
		{"it asks", run.AwaitingPhaseHandoff, 0, false, true, false},
		{"it is done, and only watched", run.Done, 0, false, false, false},
	} {
		m := shown(at35(), Options{Attached: row.attached})
		m.interrupts = row.interrupts
		s := at35()
		s.State.Status = row.status
		_, cmd := m.Update(readMsg{shot{scene: s, committed: !row.behind, reader: m.reader}})
		require.Equal(t, row.ends, cmd != nil, row.name)
	}
}

// TestScreenShowsStatusOfServer combines the status of Temporal with the recorded status that it was given for.
func TestScreenShowsStatusOfServer(t *testing.T) {
	m := shown(at35(), Options{Why: func(_ run.State, stands run.Status) string { return "stands " + string(stands) }})
	m.Update(statusMsg{run.Interrupted, "interrupted (recorded: running)"})
	require.Equal(t, run.Interrupted, m.scene.Status)
	require.Equal(t, "stands interrupted", m.scene.Why)
	s := at35()
	s.State.Status = run.Done
	m.Update(readMsg{shot{scene: s, committed: true, reader: m.reader}})
	require.Equal(t, run.Done, m.scene.Status, "the directory knows more by now")
}

// TestScrolling stays between the first and the last line.
func TestScrolling(t *testing.T) {
	m := shown(Scene{}, Options{})
	m.last, m.height = 60, 50
	for _, row := range []struct {
		keys []string
		want int
	}{
		{[]string{"k"}, 0}, {[]string{"j", "j"}, 2}, {[]string{"k"}, 1}, {[]string{"G"}, 60}, {[]string{"j"}, 60},
		{[]string{"g"}, 0}, {[]string{" "}, 25}, {[]string{" ", " "}, 60},
	} {
		for _, k := range row.keys {
			key := tea.KeyPressMsg{Text: k, Code: rune(k[0])}
			if k == " " {
				key = tea.KeyPressMsg{Code: tea.KeyPgDown}
			}
			require.Nil(t, m.key(key))
		}
		require.Equal(t, row.want, m.offset, "%v", row.keys)
	}
	require.Nil(t, m.key(tea.KeyPressMsg{Code: tea.KeyPgUp}))
	require.Equal(t, 35, m.offset)
}
