package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// view shows a run from its directory alone: a line for what has happened, and on a terminal one live line at the bottom.
type view struct {
	mu     sync.Mutex
	out    io.Writer
	dir    rundir.Dir
	offset int64
	state  run.State
	width  int // of the terminal; 0: not one
	live   bool
	spin   int
}

func newView(out io.Writer, dir rundir.Dir) *view {
	return &view{out: out, dir: dir, state: dir.Blank(), width: widthOf(out)}
}

// widthOf is how wide the terminal is; 0: it is none.
func widthOf(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return 80
}

// update reads what is new and shows it. rests: the run is paused or over.
func (v *view) update(now time.Time) (rests bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	lines, next, err := v.dir.Follow(v.offset)
	if err != nil {
		return false, err
	}
	v.offset = next
	for _, line := range lines {
		e, err := run.ParseEvent([]byte(line))
		if err != nil {
			continue
		}
		v.state = run.Apply(v.state, e)
		if text := headline(e, v.state); text != "" {
			v.print(run.OneLine(text))
		}
	}
	v.bar(now)
	s := v.state.Status
	return (s.Closed() && s != "" || s.Class() == run.OperatorPause) && v.committed(), nil
}

// committed says that everything that follows from the last line is on disk too: lines are written first, meta.json last.
func (v *view) committed() bool {
	meta, err := v.dir.Meta()
	return err == nil && meta.Events.Seq >= v.state.Seq
}

// headline is what one event says to somebody who watches; most say nothing.
func headline(e run.Event, s run.State) string {
	switch e.Kind {
	case run.KindPhaseStart:
		var p run.PhaseStart
		e.Decode(&p)
		if p.Dir != "" {
			return fmt.Sprintf("%s, cycle %d", p.Title, p.Round)
		}
		return p.Title
	case run.KindPassEnd:
		return passLine(e, s)
	case run.KindPassAttempt:
		var p run.PassAttempt
		e.Decode(&p)
		return fmt.Sprintf("  ! %s attempt %d: %s — %s", name(p.Pass), p.Attempt, p.Category, p.Message)
	case run.KindShotsAttempt:
		var p run.ShotsAttempt
		e.Decode(&p)
		return fmt.Sprintf("  ! screenshots attempt %d: %s", p.Attempt, p.Message)
	case run.KindErrorNoted:
		var p run.ErrorNoted
		e.Decode(&p)
		return fmt.Sprintf("  ! %s — %s", p.Category, p.Message)
	case run.KindJournalDamaged:
		var p run.JournalDamage
		e.Decode(&p)
		return "  ! journal damaged: " + p.String()
	case run.KindScreenshots:
		var p run.Screenshots
		e.Decode(&p)
		if p.Degraded {
			return "  ! no screenshots, the auditors get the source instead: " + p.Message
		}
		return fmt.Sprintf("  ✓ %d screenshots %.1fs", p.Count, float64(p.DurationMS)/1000)
	case run.KindScoreRecorded:
		return scoreLine(e)
	case run.KindCheckpointCreated:
		var p run.CheckpointCreated
		e.Decode(&p)
		return "  ● checkpoint " + p.ID
	case run.KindBudgetWarning:
		return fmt.Sprintf("  ! %s of %s are spent", usd(s.Total()), usd(s.Budget.CapUSD))
	case run.KindRunReverted:
		return "  ! the journal goes on behind lines that were abandoned"
	}
	return ""
}

func name(p run.Pass) string {
	if p.Number > 0 {
		place := ""
		if p.Set != "" {
			place = fmt.Sprintf("%s/%d%s ", p.Set, p.InRound, p.Order)
		}
		return fmt.Sprintf("%3d %s%s", p.Number, place, p.Role)
	}
	if p.Member != "" {
		return p.Member
	}
	return p.Role
}

func passLine(e run.Event, s run.State) string {
	var p run.PassEnd
	e.Decode(&p)
	verdict := "PASS"
	if !p.Validation.Passed {
		verdict = "FAIL"
	}
	extra := ""
	if p.Artifact != nil && !p.Modified {
		extra = "  unchanged"
	}
	if p.Joined {
		extra += "  joined"
	}
	if p.Reused {
		extra += "  reused"
	}
	return fmt.Sprintf("  ✓ %-22s %6.1fs  %6s  %s  %s%s", name(p.Pass), float64(p.DurationMS)/1000, usd(p.Spend.USD), verdict, usd(s.Total()), extra)
}

func scoreLine(e run.Event) string {
	var p run.ScoreRecorded
	e.Decode(&p)
	if p.Score == nil {
		return fmt.Sprintf("  ! no %s score: %s", p.Name, p.Why)
	}
	target := ""
	if p.Threshold != nil {
		target = fmt.Sprintf(" (target %.1f)", *p.Threshold)
	}
	return fmt.Sprintf("  ◆ %s %.1f%s", p.Name, *p.Score, target)
}

// say prints a line of our own.
func (v *view) say(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.print(text)
}

func (v *view) print(text string) {
	v.wipe()
	fmt.Fprintln(v.out, text)
}

func (v *view) clear() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wipe()
}

func (v *view) wipe() {
	if v.live {
		fmt.Fprint(v.out, "\r\x1b[K")
		v.live = false
	}
}

// bar draws the live line: progress, cost, what runs.
func (v *view) bar(now time.Time) {
	if v.width == 0 || v.state.Status != run.Running {
		return
	}
	v.spin++
	s := v.state
	const cells = 20
	done := 0
	if s.Passes.Total > 0 {
		done = cells * s.Passes.LastSettled / s.Passes.Total
	}
	line := fmt.Sprintf("%s %s%s %d/%d  %s of %s  %s", string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[v.spin%10]), strings.Repeat("█", done), strings.Repeat("░", cells-done),
		s.Passes.LastSettled, s.Passes.Total, usd(s.Total()), usd(s.Budget.CapUSD), flights(s, now))
	if r := []rune(line); len(r) >= v.width {
		line = string(r[:v.width-1])
	}
	fmt.Fprint(v.out, "\r\x1b[K"+line)
	v.live = true
}

// flights names the calls that run, and for how long.
func flights(s run.State, now time.Time) string {
	var parts []string
	for _, f := range s.InFlight {
		began, err := time.Parse(run.TimeFormat, f.StartedAt)
		if err != nil {
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %ds", f.Role, int(now.Sub(began).Seconds())))
	}
	return strings.Join(parts, ", ")
}
