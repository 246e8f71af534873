package watch

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"charm.land/bubbles/v2/help"
	"charm.land/bubbles/v2/key"
	"charm.land/bubbles/v2/list"
	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/run"
)

// Records read what the list shows besides the scene. They may take a moment.
type Records interface {
	// Passes returns the completed calls and commands, the oldest first.
	Passes(ctx context.Context) ([]Pass, error)
	// Pass returns the texts of one of them.
	Pass(ctx context.Context, seq int64) ([]Section, error)
	// Changes returns the changes of the run as a patch.
	Changes(ctx context.Context) (string, error)
	// Log returns the end of the log.
	Log(ctx context.Context) (string, error)
}

// Section is a part of what is shown of a pass.
type Section struct {
	Title, Text string
	Patch       bool
}

// tool is the screen for all pipelines but those with a corpus: one line of status, on the left the list of stages,
// rounds and passes, on the right what is selected.
type tool struct {
	list   list.Model
	view   viewport.Model
	opened bool // the keys scroll the right side
	moved  bool // the user has selected a row; else the most important one is selected
	helps  bool // the keys are shown
	find   string
	shown  string // what the right side has: key of the row, and its width
	asked  string // the row whose text is being read
	texts  map[string][]Section
	passes []Pass
}

func newTool() *tool {
	l := list.New(nil, &rowDrawer{}, 0, 0)
	l.SetShowTitle(false)
	l.SetShowFilter(false)
	l.SetShowStatusBar(false)
	l.SetShowPagination(false)
	l.SetShowHelp(false)
	l.SetFilteringEnabled(false)
	return &tool{list: l, view: viewport.New(), texts: map[string][]Section{}}
}

// textMsg is what was read for a row.
type textMsg struct {
	key, version string
	sections     []Section
}

// The keys of the tool, as ? shows them.
var toolKeys = struct{ up, down, open, back, page, ends, search, next, panels, helps, leave key.Binding }{
	up:     key.NewBinding(key.WithKeys("up", "k"), key.WithHelp("↑/k", "up")),
	down:   key.NewBinding(key.WithKeys("down", "j"), key.WithHelp("↓/j", "down")),
	open:   key.NewBinding(key.WithKeys("enter", "right", "l"), key.WithHelp("Enter", "open: the keys scroll it")),
	back:   key.NewBinding(key.WithKeys("esc", "left", "h"), key.WithHelp("Esc", "back to the list")),
	page:   key.NewBinding(key.WithKeys("pgup", "pgdown", "space"), key.WithHelp("PgUp/PgDn", "a page of the text")),
	ends:   key.NewBinding(key.WithKeys("home", "g", "end", "G"), key.WithHelp("g/G", "first, last")),
	search: key.NewBinding(key.WithKeys("/"), key.WithHelp("/", "search the text")),
	next:   key.NewBinding(key.WithKeys("n", "N"), key.WithHelp("n/N", "next, previous match")),
	panels: key.NewBinding(key.WithKeys("tab"), key.WithHelp("Tab", "panels: times, costs, quality")),
	helps:  key.NewBinding(key.WithKeys("?"), key.WithHelp("?", "these keys")),
	leave:  key.NewBinding(key.WithKeys("q"), key.WithHelp("q", "leave")),
}

// listed reports whether the list is shown, not the panels.
func (m *model) listed() bool { return m.o.Records != nil && !m.panels }

// selected is the selected row.
func (l *tool) selected() row {
	r, _ := l.list.SelectedItem().(row)
	return r
}

// refresh takes over the rows of a scene. The selection stays, unless the user has not moved it.
func (l *tool) refresh(s Scene) {
	rows := rowsOf(s, l.passes)
	items := make([]list.Item, len(rows))
	for i, r := range rows {
		items[i] = r
	}
	before := l.selected().key
	_ = l.list.SetItems(items) // without a filter there is no command
	at := -1
	if l.moved {
		at = slices.IndexFunc(rows, func(r row) bool { return r.key == before })
	}
	if at < 0 {
		l.moved, at = false, important(rows)
	}
	l.list.Select(at)
}

// key handles a key of the list or of the text; handled is false for those of actions.
func (m *model) toolKey(k tea.KeyPressMsg) (cmd tea.Cmd, handled bool) {
	l := m.tool
	switch {
	case l.helps:
		l.helps = false
		return nil, true
	case key.Matches(k, toolKeys.helps):
		l.helps = true
	case key.Matches(k, toolKeys.search):
		return m.search(), true
	case key.Matches(k, toolKeys.next) && l.find != "":
		if k.String() == "n" {
			l.view.HighlightNext()
		} else {
			l.view.HighlightPrevious()
		}
	case key.Matches(k, toolKeys.back):
		if !l.opened && l.find == "" {
			return nil, true
		}
		l.opened, l.find = false, ""
		l.view.ClearHighlights()
	case key.Matches(k, toolKeys.page):
		if k.String() == "pgup" {
			l.view.HalfPageUp()
		} else {
			l.view.HalfPageDown()
		}
	case key.Matches(k, toolKeys.open):
		l.opened = true
	case key.Matches(k, toolKeys.up, toolKeys.down, toolKeys.ends):
		l.move(k)
	default:
		return nil, false
	}
	return m.readText(), true
}

// move scrolls the text, or selects a row.
func (l *tool) move(k tea.KeyPressMsg) {
	up, end := key.Matches(k, toolKeys.up), k.String() == "end" || k.String() == "G"
	switch {
	case !l.opened && key.Matches(k, toolKeys.ends):
		l.list.Select(0)
		if end {
			l.list.Select(len(l.list.Items()) - 1)
		}
	case !l.opened && up:
		l.list.CursorUp()
	case !l.opened:
		l.list.CursorDown()
	case key.Matches(k, toolKeys.ends) && end:
		l.view.GotoBottom()
	case key.Matches(k, toolKeys.ends):
		l.view.GotoTop()
	case up:
		l.view.ScrollUp(1)
	default:
		l.view.ScrollDown(1)
	}
	l.moved = l.moved || !l.opened
}

// search asks for a text, and marks it on the right.
func (m *model) search() tea.Cmd {
	return m.open(&entry{prompt: "Search for:", typed: true, send: func(text string) tea.Cmd {
		m.tool.find = strings.TrimSpace(text)
		m.tool.mark()
		if m.tool.find != "" && m.tool.matches() == nil {
			m.notify(fmt.Sprintf("%q is not in this text", m.tool.find), true)
		}
		return nil
	}}, "")
}

func (l *tool) matches() [][]int {
	return regexp.MustCompile("(?i)"+regexp.QuoteMeta(l.find)).FindAllStringIndex(ansi.Strip(l.view.GetContent()), -1)
}

// mark highlights what is searched for.
func (l *tool) mark() {
	if l.view.ClearHighlights(); l.find != "" {
		l.view.SetHighlights(l.matches())
	}
}

// readText reads the text of the selected row in the background, unless it is known.
func (m *model) readText() tea.Cmd {
	l, r := m.tool, m.tool.selected()
	read, ok := readers[r.kind]
	if !ok || m.o.Records == nil {
		return nil
	}
	version := ""
	if r.kind != passRow { // what a pass has left does not change
		version = fmt.Sprint(m.scene.State.Seq)
	}
	at := r.key + "@" + version
	if _, known := l.texts[at]; known || l.asked == at {
		return nil
	}
	l.asked = at
	ctx, from := m.ctx, m.o.Records
	return func() tea.Msg {
		sections, err := read(ctx, from, r)
		if err != nil {
			sections = []Section{{Text: run.OneLine(err.Error())}}
		}
		return textMsg{r.key, at, sections}
	}
}

// readers read the texts of rows, by kind.
var readers = map[rowKind]func(ctx context.Context, from Records, r row) ([]Section, error){
	passRow: func(ctx context.Context, from Records, r row) ([]Section, error) { return from.Pass(ctx, r.seq) },
	changesRow: func(ctx context.Context, from Records, _ row) ([]Section, error) {
		text, err := from.Changes(ctx)
		return []Section{{Text: text, Patch: true}}, err
	},
	logRow: func(ctx context.Context, from Records, _ row) ([]Section, error) {
		text, err := from.Log(ctx)
		return []Section{{Text: text}}, err
	},
}

// took takes over the text of a row. Of those that change with the run, only the newest is kept.
func (l *tool) took(msg textMsg) {
	for at := range l.texts {
		if strings.HasPrefix(at, msg.key+"@") {
			delete(l.texts, at)
		}
	}
	l.texts[msg.version], l.shown = msg.sections, ""
	if l.asked == msg.version {
		l.asked = ""
	}
}

// text is what was read for a row.
func (l *tool) text(r row) ([]Section, bool) {
	for at, sections := range l.texts {
		if strings.HasPrefix(at, r.key+"@") {
			return sections, true
		}
	}
	return nil, false
}

// sideBySide is the width from which an opened text has the list beside it.
const sideBySide = 100

// tool draws the screen.
func (m *model) drawTool() string {
	t, l, s, w := m.theme(), m.tool, safeTexts(m.scene), m.width
	foot := m.foot()
	high := max(1, m.height-2-len(foot))
	left := max(28, min(w*3/10, 48))
	if l.opened && w < sideBySide {
		left = 0
	}
	right := w - left
	if left > 0 {
		right -= 2 // the line between
	}
	out := []string{t.line(s, w), t.frame.Render(rule(left, w))}
	if l.helps {
		out = append(out, strings.Split(m.help(w, high), "\n")...)
		return strings.Join(append(out, foot...), "\n")
	}
	l.list.SetDelegate(&rowDrawer{theme: t, width: left, opened: l.opened})
	l.list.SetSize(left, high)
	m.fill(t, s, right, high)
	texts, rows := strings.Split(l.view.View(), "\n"), []string{}
	if left > 0 {
		rows = strings.Split(l.list.View(), "\n")
	}
	for i := range high {
		line := ""
		if left > 0 {
			line = fit(at(rows, i), left) + t.frame.Render("│") + " "
		}
		out = append(out, strings.TrimRight(line+cut(at(texts, i), right), " "))
	}
	return strings.Join(append(out, foot...), "\n")
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func rule(left, w int) string {
	if left == 0 {
		return strings.Repeat("─", w)
	}
	return strings.Repeat("─", left) + "┬" + strings.Repeat("─", max(0, w-left-1))
}

// fill puts the text of the selected row into the right side, if it is another one or has changed. What grows is shown
// at its end, unless the user has scrolled.
func (m *model) fill(t theme, s Scene, width, height int) {
	l, r := m.tool, m.tool.selected()
	l.view.SetWidth(width)
	l.view.SetHeight(height)
	was, _, _ := strings.Cut(l.shown, "\x00")
	lines := t.detail(s, l, r, width)
	text := strings.Join(lines, "\n")
	if now := fmt.Sprintf("%s\x00%d\x00%s", r.key, width, text); now != l.shown {
		follows := was != r.key || l.view.AtBottom()
		l.shown = now
		l.view.SetContent(text)
		switch {
		case follows && r.kind.grows():
			l.view.GotoBottom()
		case was != r.key:
			l.view.GotoTop()
		}
		l.view.HighlightStyle, l.view.SelectedHighlightStyle = t.accent.Reverse(true), t.warn.Reverse(true)
		l.mark()
	}
}

// help lists all keys.
func (m *model) help(width, height int) string {
	t, h := m.theme(), help.New()
	h.SetWidth(width - 2)
	h.Styles.FullKey, h.Styles.FullDesc = t.accent, t.dim
	k := toolKeys
	groups := [][]key.Binding{{k.up, k.down, k.open, k.back, k.page, k.ends}, {k.search, k.next, k.panels, k.helps, k.leave}}
	var acts []key.Binding
	if q := m.scene.Question; q != nil {
		for i, c := range q.Choices() {
			acts = append(acts, key.NewBinding(key.WithKeys("1"), key.WithHelp(fmt.Sprint(i+1), run.ActionWords(c.Action))))
		}
	}
	for _, a := range m.offered() {
		acts = append(acts, key.NewBinding(key.WithKeys(a.key), key.WithHelp(a.key, a.name)))
	}
	if width < sideBySide { // one below the other
		h.ShowAll = true
		var out []string
		for _, g := range append(groups, acts) {
			out = append(out, h.FullHelpView([][]key.Binding{g}), "")
		}
		return lipgloss.NewStyle().Padding(1).MaxHeight(height).Height(height).Render(strings.Join(out, "\n"))
	}
	return lipgloss.NewStyle().Padding(1).MaxHeight(height).Height(height).Render(h.FullHelpView(append(groups, acts)))
}

// rowDrawer draws the rows of the list.
type rowDrawer struct {
	theme  theme
	width  int
	opened bool // the keys are those of the text
}

func (*rowDrawer) Height() int                         { return 1 }
func (*rowDrawer) Spacing() int                        { return 0 }
func (*rowDrawer) Update(tea.Msg, *list.Model) tea.Cmd { return nil }

func (d *rowDrawer) Render(w io.Writer, m list.Model, index int, item list.Item) {
	r, _ := item.(row)
	style, mark := lipgloss.NewStyle(), " "
	if index == m.Index() {
		if mark = "▌"; !d.opened {
			style = style.Reverse(true)
		}
	}
	note := terminal.Safe(r.note)
	name := strings.Repeat("  ", r.depth) + d.theme.mark(r.sign) + " " + style.Render(cut(terminal.Safe(r.title),
		max(6, d.width-5-2*r.depth-lipgloss.Width(note))))
	fmt.Fprint(w, d.theme.accent.Render(mark)+ends(name, d.theme.dim.Render(note)+" ", d.width-1))
}
