package watch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/run"
)

// key handles a pressed key.
func (m *model) key(k tea.KeyPressMsg) tea.Cmd {
	if m.entry != nil {
		return m.typing(k)
	}
	switch k.String() {
	case "ctrl+c":
		return m.interrupt()
	case "q":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "tab":
		m.panels, m.chosen = !m.panels, true
		return nil
	}
	if m.listed() {
		if cmd, handled := m.toolKey(k); handled {
			return cmd
		}
	}
	switch k.String() {
	case "esc":
		return tea.Quit
	case "up", "k":
		m.offset = max(0, m.offset-1)
	case "down", "j":
		m.offset = min(m.last, m.offset+1)
	case "pgup":
		m.offset = max(0, m.offset-m.height/2)
	case "pgdown", "space":
		m.offset = min(m.last, m.offset+m.height/2)
	case "home", "g":
		m.offset = 0
	case "end", "G":
		m.offset = m.last
	default:
		return m.act(k.String())
	}
	return nil
}

// interrupt handles Ctrl+C: it leaves a watched run, and pauses an attached one (requirement 002 §8.4).
func (m *model) interrupt() tea.Cmd {
	if m.o.Interrupt == nil || m.scene.State.Status.NeedsOperator() {
		return tea.Quit
	}
	m.interrupts++
	switch m.interrupts {
	case 1:
		m.notify("Graceful shutdown requested. Finishing current pass... Press Ctrl+C again to force exit.", false)
	case 2:
		m.notify("Force exit. State saved at last completed pass.", false)
	default:
		m.forced = true // no answer: the run continues or pauses without this terminal
		return tea.Quit
	}
	ctx, nth, send := m.ctx, m.interrupts, m.o.Interrupt
	return func() tea.Msg {
		if err := send(ctx, nth); err != nil {
			return lookedMsg{notice: "The pause did not reach the run: " + err.Error()}
		}
		return nil
	}
}

// act starts the action of a key.
func (m *model) act(key string) tea.Cmd {
	s := m.scene
	if q := s.Question; q != nil {
		if n, err := strconv.Atoi(key); err == nil && n >= 1 && n <= len(q.Actions) {
			return m.decide(q, q.Choices()[n-1])
		}
	}
	for _, a := range m.offered() {
		if a.key == key {
			return a.begin(m)
		}
	}
	return nil
}

// action is a key that changes the run.
type action struct {
	key, name string
	begin     func(m *model) tea.Cmd
}

// offered returns the actions that the current status allows.
func (m *model) offered() []action {
	var out []action
	s := m.scene.Status
	_, running := run.Offers(m.next(), run.Pause)
	running = running && m.ready
	if running {
		out = append(out, action{"p", "pause", (*model).pause}, action{"P", "pause now", (*model).pauseNow})
	}
	if _, offered := m.resumes(); offered {
		out = append(out, action{"r", "resume", (*model).resume})
	}
	if running || s.Class() == run.OperatorPause {
		out = append(out, action{"b", "budget", (*model).budget})
	}
	return out
}

// next returns the next commands that have keys.
func (m *model) next() []run.Command {
	return run.NextCommands(m.scene.State, run.Situation{EffectiveStatus: run.EffectiveStatus{ShownStatus: m.scene.Status.Shown()}})
}

func (m *model) resumes() (run.Command, bool) { return run.Offers(m.next(), run.Resume) }

func (m *model) pause() tea.Cmd {
	return m.confirm("Pause after the running pass?", func(ctx context.Context) (string, error) {
		return m.o.Actions.Pause(ctx, false)
	})
}

func (m *model) pauseNow() tea.Cmd {
	const question = "End the running call and pause? The call is made again on resume, and paid for again."
	return m.confirm(question, func(ctx context.Context) (string, error) {
		return m.o.Actions.Pause(ctx, true)
	})
}

// resume asks for a reason where it requires force.
func (m *model) resume() tea.Cmd {
	if c, _ := m.resumes(); !c.Forces() {
		return m.confirm("Resume?", func(ctx context.Context) (string, error) { return m.o.Actions.Resume(ctx, "") })
	}
	why := "The run was halted."
	switch {
	case m.scene.Status == run.Failed:
		why = "The run failed. Inspect it first."
	case m.scene.State.Reason == run.ConsecutiveFailures:
		why = "The same pass has failed again and again. Fix the cause first."
	}
	return m.prompted(why+" To resume, type a reason, which is recorded:", "", true, func(text string) tea.Cmd {
		reason := strings.TrimSpace(text)
		if reason == "" {
			m.notify("A forced resume needs a reason", true)
			return nil
		}
		return m.do(func(ctx context.Context) (string, error) { return m.o.Actions.Resume(ctx, reason) })
	})
}

func (m *model) budget() tea.Cmd {
	return m.prompted("New budget in USD:", "", true, func(text string) tea.Cmd {
		usd, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(text), "$"), 64)
		if err != nil || usd <= 0 {
			m.notify(fmt.Sprintf("%q is not an amount: type one such as 500", text), true)
			return nil
		}
		return m.do(func(ctx context.Context) (string, error) { return m.o.Actions.Budget(ctx, usd) })
	})
}

func (m *model) decide(q *Question, c run.Choice) tea.Cmd {
	send := func(text string) tea.Cmd {
		if c.NeedsFeedback && strings.TrimSpace(text) == "" {
			m.notify(run.ActionWords(c.Action)+": it needs a comment", true)
			return nil
		}
		id := q.ID
		return m.do(func(ctx context.Context) (string, error) {
			return m.o.Actions.Decide(ctx, id, c.Action, strings.TrimSpace(text))
		})
	}
	if c.NeedsFeedback {
		return m.prompted(run.ActionWords(c.Action)+":", "", true, send)
	}
	return m.prompted(fmt.Sprintf("%s: %s?", run.ActionWords(c.Action), c.Meaning), "", false, send)
}

// confirm asks before an action.
func (m *model) confirm(prompt string, f func(ctx context.Context) (string, error)) tea.Cmd {
	return m.prompted(prompt, "", false, func(string) tea.Cmd { return m.do(f) })
}

var errNoActions = errors.New("nothing can be done from here: no server is known")

// prompted opens the input line: for text, or for Enter.
func (m *model) prompted(prompt, value string, typed bool, send func(string) tea.Cmd) tea.Cmd {
	if m.o.Actions == nil {
		m.notify(errNoActions.Error(), true)
		return nil
	}
	return m.open(&entry{prompt: prompt, typed: typed, send: send}, value)
}

// open opens the input line.
func (m *model) open(e *entry, value string) tea.Cmd {
	m.entry, m.notice = e, ""
	if !e.typed {
		return nil
	}
	e.input = textinput.New()
	e.input.Prompt = ""
	e.input.CharLimit = 4000
	e.input.SetValue(value)
	return e.input.Focus()
}

// typing handles a key while the input line is open.
func (m *model) typing(k tea.KeyPressMsg) tea.Cmd {
	e := m.entry
	switch k.String() {
	case "esc", "ctrl+c":
		m.entry = nil
		return nil
	case "enter":
		m.entry = nil
		return e.send(e.input.Value())
	case "y":
		if !e.typed {
			m.entry = nil
			return e.send("")
		}
	case "n":
		if !e.typed {
			m.entry = nil
			return nil
		}
	}
	if !e.typed {
		return nil
	}
	var cmd tea.Cmd
	e.input, cmd = e.input.Update(k)
	return cmd
}

// foot returns the lines at the bottom: notice, input line and keys.
func (m *model) foot() []string {
	var out []string
	t, w := m.theme(), m.width
	if m.notice != "" {
		style := t.accent
		if m.bad {
			style = t.bad
		}
		for _, l := range wrapped(terminal.Safe(m.notice), w-2) {
			out = append(out, fit(" "+style.Render(l), w))
		}
	}
	if e := m.entry; e != nil {
		for _, l := range wrapped(terminal.Safe(e.prompt), w-2) {
			out = append(out, fit(" "+t.strong.Render(l), w))
		}
		if e.typed {
			e.input.SetWidth(max(10, w-6))
			out = append(out, fit(" > "+e.input.View(), w))
			return append(out, fit(t.dim.Render(" Enter sends, Esc goes back"), w))
		}
		return append(out, fit(t.dim.Render(" Enter or y: yes   Esc or n: no"), w))
	}
	return append(out, m.keys())
}

// keys returns the last line: the available keys.
func (m *model) keys() string {
	all := [][2]string{}
	if q := m.scene.Question; q != nil && len(q.Actions) > 0 {
		all = append(all, [2]string{fmt.Sprintf("1-%d", len(q.Actions)), "decide"})
	}
	for _, a := range m.offered() {
		all = append(all, [2]string{a.key, a.name})
	}
	switch {
	case !m.listed() && m.last > 0:
		all = append(all, [2]string{"↑↓", "scroll"})
	case !m.listed():
	case m.tool.opened:
		all = append(all, [2]string{"Esc", "list"}, [2]string{"/", "search"}, [2]string{"?", "keys"})
	default:
		all = append(all, [2]string{"Enter", "open"}, [2]string{"/", "search"}, [2]string{"?", "keys"})
	}
	if m.o.Attached && m.scene.Status == run.Running {
		all = append(all, [2]string{"Ctrl+C", "pause and leave"})
	}
	quit := "q"
	if m.o.Interrupt == nil {
		quit = "q, Ctrl+C"
	}
	t := m.theme()
	line := t.keyLine(append(all, [2]string{quit, "leave"}), m.width)
	if m.scene.Status.Class() == run.Live {
		if whole := t.keyLine(append(all, [2]string{quit, "leave, the run continues"}), m.width); lipgloss.Width(whole) <= m.width {
			line = whole
		}
	}
	return fit(line, m.width)
}

func (t theme) keyLine(all [][2]string, width int) string {
	var parts []string
	for _, k := range all {
		parts = append(parts, t.accent.Render(k[0])+" "+t.dim.Render(k[1]))
	}
	line := " " + strings.Join(parts, "   ")
	if lipgloss.Width(line) > width {
		line = " " + strings.Join(parts, " ")
	}
	return line
}
