// Package watch shows a run live on a terminal: the figures of requirement 002 §7, its open question, and keys to
// answer it.
//
// It shows the records in the run directory and needs no server; [Options] add what only a server knows or does.
// Drawing is pure: the same scene has the same screen. The terminal is restored at the end, also after
// a panic.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"time"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Actions are the changes that a user can make to a run. Each returns the answer of the run.
type Actions interface {
	Pause(ctx context.Context, now bool) (string, error)
	Resume(ctx context.Context, reason string) (string, error) // a reason forces it
	Decide(ctx context.Context, question, action, words string) (string, error)
	Budget(ctx context.Context, usd float64) (string, error)
}

// Options select the run and its connections.
type Options struct {
	Dir     rundir.Dir
	In, Out *os.File // a terminal
	Actions Actions
	Zone    *time.Location // of times until which the run waits; nil: UTC

	// Attached means that the run was started or resumed from here: Ctrl+C pauses it, and the screen ends with the run.
	Attached  bool
	Interrupt func(ctx context.Context, nth int) error // Ctrl+C; nil: it leaves

	// Output returns the file with the output of a running call on this host, or an error to show.
	Output func(call string) (string, error)
	// Hide hides secrets in that output.
	Hide func(text string) string
	// About describes what an open question is about, in lines.
	About func(s run.State, q run.Question) []string
	// Records are those of the list; nil: the panels are shown only.
	Records Records
	// EffectiveStatus returns the status as recorded and as Temporal reports it. It may take some seconds.
	EffectiveStatus func(ctx context.Context, recorded run.Status) (run.Status, string)
	// Why describes why a paused or finished run does not continue, and what to do; empty for a live run.
	Why func(s run.State, stands run.Status) string
	// Supervise is called every few seconds while attached, to keep the processes alive; an error ends the screen.
	Supervise func(ctx context.Context) (notice string, err error)
}

// Result is the end of a screen.
type Result struct {
	State      run.State
	Interrupts int  // Ctrl+C while attached
	Forced     bool // third Ctrl+C without an answer
}

// Run shows the run until the user leaves or, attached, until the run finishes.
func Run(ctx context.Context, o Options) (Result, error) {
	m := newModel(ctx, o)
	sigs, done := make(chan os.Signal, 4), make(chan struct{})
	signal.Notify(sigs, os.Interrupt) // from other processes, and before the terminal sends keys
	defer signal.Stop(sigs)
	defer close(done)
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler())
	go relay(ctx, p, sigs, done)
	end, err := p.Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = nil // the terminal was closed, or the program has to end: the run continues
	}
	last, ok := end.(*model)
	if !ok {
		return Result{}, err
	}
	return Result{State: last.scene.State, Interrupts: last.interrupts, Forced: last.forced},
		errors.Join(err, last.failed)
}

// relay forwards interrupts, and quits the program when ctx ends. Killing the program would close the terminal while it
// is read.
func relay(ctx context.Context, p *tea.Program, sigs <-chan os.Signal, done <-chan struct{}) {
	ended := ctx.Done()
	var late <-chan time.Time
	for {
		select {
		case <-sigs:
			p.Send(interruptMsg{})
		case <-ended:
			go p.Quit()
			ended, late = nil, time.After(quitWithin)
		case <-late:
			p.Kill() // the terminal accepts no output
		case <-done:
			return
		}
	}
}

const (
	quitWithin  = 2 * time.Second        // after which a screen that does not quit is killed
	tick        = 250 * time.Millisecond // how often the directory is checked
	clock       = time.Second            // how often times are updated
	serverEvery = 5 * time.Second        // how often a server is asked
	replies     = 15 * time.Second       // how long an answer is shown
)

// model is the state of the screen.
type model struct {
	ctx context.Context
	o   Options

	width, height int
	light         bool // the background
	profile       colorprofile.Profile
	offset, last  int // window on content that is too high, and its maximum offset
	scene         Scene
	reader        reader
	ready         bool // something was read
	reading       bool
	unread        error
	asked         time.Time // last request to a server
	asks          bool
	drawn         time.Time // last update of the clock

	tool   *tool
	panels bool // the panels are shown; else the tool
	chosen bool // by the user

	entry      *entry
	notice     string
	bad        bool // the notice is an error
	noticed    time.Time
	busy       bool // an action is under way
	interrupts int
	forced     bool
	failed     error
}

func newModel(ctx context.Context, o Options) *model {
	return &model{ctx: ctx, o: o, profile: colorprofile.ANSI256, reader: reader{o: o, ctx: ctx}, reading: true, tool: newTool()}
}

// Messages of the screen.
type (
	tickMsg   time.Time
	readMsg   struct{ shot shot }
	statusMsg struct {
		status run.Status
		words  string
	}
	lookedMsg struct {
		notice string
		err    error
	}
	interruptMsg struct{}
	answeredMsg  struct {
		answer string
		err    error
	}
)

func (m *model) theme() theme { return newTheme(!m.light, m.profile) }

func (m *model) Init() tea.Cmd {
	return tea.Batch(tea.RequestBackgroundColor, m.read(), ticks())
}

func ticks() tea.Cmd { return tea.Tick(tick, func(t time.Time) tea.Msg { return tickMsg(t) }) }

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = cmp.Or(msg.Width, 80), cmp.Or(msg.Height, 24) // unknown on some terminals
	case tea.BackgroundColorMsg:
		m.light = !msg.IsDark()
	case tea.ColorProfileMsg:
		m.profile = msg.Profile
	case tickMsg:
		return m, m.ticked(time.Time(msg))
	case readMsg:
		return m, m.took(msg.shot)
	case statusMsg:
		m.asks = false
		m.reader.stands = &msg
		m.stand()
	case textMsg:
		m.tool.took(msg)
	case lookedMsg:
		m.asks = false
		if msg.err != nil {
			m.failed = msg.err
			return m, tea.Quit
		}
		if msg.notice != "" {
			m.notify(msg.notice, true)
		}
	case answeredMsg:
		m.busy = false
		if msg.err != nil {
			m.notify(msg.err.Error(), true)
		} else {
			m.notify(msg.answer, false)
		}
		m.asked = time.Time{}
	case interruptMsg:
		return m, m.interrupt()
	case tea.KeyPressMsg:
		return m, m.key(msg)
	default:
		if m.entry != nil {
			var cmd tea.Cmd
			m.entry.input, cmd = m.entry.input.Update(msg)
			return m, cmd
		}
	}
	return m, nil
}

// ticked checks the directory, updates the clock and asks the server, each at its interval.
func (m *model) ticked(now time.Time) tea.Cmd {
	cmds := []tea.Cmd{ticks()}
	if !m.reading && (m.reader.changed() || now.Sub(m.drawn) >= clock-tick/2) {
		m.reading = true
		cmds = append(cmds, m.read())
	}
	if now.Sub(m.asked) >= serverEvery && !m.asks && m.ready {
		m.asked, m.asks = now, true
		cmds = append(cmds, m.ask())
	}
	if m.notice != "" && now.Sub(m.noticed) > replies && m.interrupts == 0 {
		m.notice = ""
	}
	return tea.Batch(cmds...)
}

func (m *model) read() tea.Cmd {
	r := m.reader
	return func() tea.Msg { return readMsg{r.read(time.Now())} }
}

// ask asks the server in the background.
func (m *model) ask() tea.Cmd {
	recorded := m.scene.State.Status
	if m.o.Attached && m.o.Supervise != nil {
		return func() tea.Msg {
			notice, err := m.o.Supervise(m.ctx)
			return lookedMsg{notice, err}
		}
	}
	if m.o.EffectiveStatus == nil {
		return func() tea.Msg { return statusMsg{recorded, string(recorded)} }
	}
	return func() tea.Msg {
		status, words := m.o.EffectiveStatus(m.ctx, recorded)
		return statusMsg{status, words}
	}
}

// took takes over new records, and ends an attached screen with its run.
func (m *model) took(s shot) tea.Cmd {
	stands := m.reader.stands
	m.reading, m.reader, m.unread, m.drawn = false, s.reader, s.err, s.scene.Now
	m.reader.stands = stands
	if s.err != nil {
		return nil
	}
	if !m.chosen { // a run with a corpus has more to show than a list; one that has not begun is of neither kind
		m.panels = s.scene.State.RunID != "" && s.scene.State.Wording != run.WordingStages
	}
	m.scene, m.ready = s.scene, true
	m.scene.Zone = m.o.Zone
	m.stand()
	if s.passes != nil {
		m.tool.passes = s.passes
	}
	m.tool.refresh(m.scene)
	st := m.scene.State
	pausedHere := m.interrupts > 0 && st.Status == run.Paused
	if m.o.Attached && (st.Status.Closed() && st.Status != "" || pausedHere) && s.committed {
		return tea.Quit
	}
	if !m.listed() {
		return nil
	}
	return m.readText()
}

// stand combines the answer of the server with the recorded status that it was given for.
func (m *model) stand() {
	m.scene.Status, m.scene.StatusText = m.scene.State.Status, string(m.scene.State.Status)
	if s := m.reader.stands; s != nil && !m.scene.State.Status.Closed() && m.scene.State.Status != "" {
		if s.status.Closed() || s.status == m.scene.State.Status {
			m.scene.Status, m.scene.StatusText = s.status, s.words
		}
	}
	if m.o.Why != nil {
		m.scene.Why = m.o.Why(m.scene.State, m.scene.Status)
	}
}

func (m *model) notify(text string, bad bool) {
	m.notice, m.bad, m.noticed = run.OneLine(text), bad, time.Now()
}

// do runs an action in the background.
func (m *model) do(f func(ctx context.Context) (string, error)) tea.Cmd {
	if m.busy {
		m.notify("One moment: the last one has not been answered yet.", false)
		return nil
	}
	m.busy = true
	m.notify("…", false)
	ctx := m.ctx
	return func() tea.Msg {
		answer, err := f(ctx)
		return answeredMsg{answer, err}
	}
}

func (m *model) View() tea.View {
	v := tea.NewView(m.content())
	v.AltScreen = true
	v.WindowTitle = m.title()
	return v
}

func (m *model) title() string {
	if !m.ready {
		return "passbook"
	}
	return run.OneLine(fmt.Sprintf("%s: %s", m.scene.State.Pipeline, m.scene.Status.Words()))
}

func (m *model) content() string {
	switch {
	case m.width == 0:
		return ""
	case m.unread != nil:
		hint := m.theme().dim.Render("q leaves; it is read again.")
		return "\n " + cut(run.OneLine(m.unread.Error()), m.width-2) + "\n\n " + hint
	case !m.ready:
		return ""
	}
	if m.listed() {
		return m.drawTool()
	}
	text, last := m.theme().screen(m.scene, m.foot(), m.offset, m.width, m.height)
	m.last = last
	m.offset = min(m.offset, last)
	return text
}

// entry is the input line: text, or a confirmation.
type entry struct {
	prompt string
	input  textinput.Model
	typed  bool // it requires a text
	send   func(text string) tea.Cmd
}

// shot is what was read of the directory.
type shot struct {
	scene     Scene
	committed bool   // everything derived from the last event is on disk
	passes    []Pass // nil: as before
	err       error
	reader    reader
}

// reader reads changes of the directory.
type reader struct {
	o       Options
	ctx     context.Context
	mark    [2]mark
	listed  [2]mark // when the passes were read
	source  view.Source
	figures view.Figures
	lag     bool
	stands  *statusMsg
	asked   string // id of the described question
	about   []string
	calls   *live.Calls
}

// mark identifies a version of a file.
type mark struct {
	size int64
	time time.Time
}

func (r *reader) marks() [2]mark {
	var out [2]mark
	for i, name := range []string{rundir.EventsFile, rundir.MetaFile} {
		if fi, err := r.o.Dir.Stat(name); err == nil {
			out[i] = mark{fi.Size(), fi.ModTime()}
		}
	}
	return out
}

func (r *reader) changed() bool { return r.mark != r.marks() }

func (r reader) read(now time.Time) (out shot) {
	if mark := r.marks(); mark != r.mark {
		source, err := view.Read(r.o.Dir)
		if err != nil {
			return shot{err: err, reader: r, scene: Scene{Now: now}}
		}
		r.mark, r.source, r.figures = mark, source, view.Of(source, now)
		meta, err := r.o.Dir.Meta()
		r.lag = err != nil || meta.Events.Seq < source.State.Seq
	} else if len(r.source.Lanes) > 0 { // their records change while that of the run does not
		r.source.Lanes = r.o.Dir.Lanes(r.source.State)
	}
	s := r.source
	if r.o.Records != nil && r.listed != r.mark {
		if passes, err := r.o.Records.Passes(r.ctx); err == nil {
			r.listed, out.passes = r.mark, passes
		}
	}
	scene := Scene{State: s.State, Figures: r.figures.Tick(s, now), Task: s.State.Task, Now: now}
	scene.Output, scene.Outputs = r.output(scene.Figures.InFlight, now)
	if q, open := s.State.Asks(); open && !s.State.Status.Settled() {
		if r.asked != q.ID && r.o.About != nil {
			r.asked = q.ID
			r.about = r.o.About(s.State, q)
		}
		scene.Question = &Question{Question: q, About: r.about}
	}
	out.scene, out.committed, out.reader = scene, !r.lag, r
	return out
}

// output returns the outputs of running calls, and the latest of them.
func (r *reader) output(flights []view.InFlightCall, now time.Time) (out Output, all []Output) {
	out = Output{Why: "No call is running."}
	if r.o.Output == nil {
		return out, nil
	}
	if r.calls == nil {
		r.calls = &live.Calls{File: r.o.Output, Hide: r.o.Hide}
	}
	var newest time.Time
	for _, o := range r.calls.Read(flights) {
		one := Output{Call: o.Call, Who: nameOf(o.InFlightCall), Lines: o.Lines, Doing: o.Text(now),
			Why: "Nothing yet. Many agents answer only at their end."}
		if o.Partial != "" {
			one.Lines = append(one.Lines, o.Partial)
		}
		switch {
		case errors.Is(o.Err, fs.ErrNotExist):
			one.Why = "Nothing yet."
		case o.Err != nil:
			one.Why = view.Title(o.Err.Error()) + "."
		}
		all = append(all, one)
		if printed := len(one.Lines) > 0 || o.Requests > 0; printed && !o.Changed.Before(newest) {
			out, newest = one, o.Changed
		} else if newest.IsZero() {
			out = one
		}
	}
	return out, all
}
