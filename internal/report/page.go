package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/internal/markdown"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// page is the content of the page.
type page struct {
	view.Record
	Heading     string // the task, or else the pipeline
	Review      *texts // what was judged last; nil: nothing was
	StatusClass string // a CSS class
	StatusText  string
	Means       string
	Round       string // what the run calls a round
	Judges      string
	Advice      string
	Next        []string
	Question    *run.Question
	Facts       []fact
	Scores      *Chart
	Auditors    []rundir.PACycleRecord
	Threshold   *float64 // of the scores
	Depth       *Chart
	Depths      depths
	Money       money
	Durations   *Chart
	LaneRows    []view.Lane // those that the page lists
	Groups      []group
	Strips      []strip
	More        []strip // other pictures
	Changes     []difference
	Patch       *difference // of the delivery
	Errors      []rundir.ErrorRecord
	Checkpoints []rundir.CheckpointRecord
	Turns       []turn
	Projection  string
	Seq         int64
	AsOf        string
	Starts      []view.Action
	Origin      *origin
	Left        []string // what is missing on the page, and why
	Decisions   []decision
}

// fact is one figure of the summary.
type fact struct {
	Name, Value, Note string
	Share             int // percent of a bar; -1: none
	Bad               bool
}

// source is the input of the page.
type source struct {
	dir   rundir.Dir
	opt   Options
	state run.State
	book  rundir.PipelineState
	found view.Record
	whole bool // book could be read

	figures view.Figures
}

func read(d rundir.Dir, o Options) (*page, error) {
	s, left, err := load(d, o)
	if err != nil {
		return nil, err
	}
	v := &page{Record: s.found, Next: o.Next, Left: left}
	return v, v.fill(s)
}

// load reads a run directory; left lists what cannot be read.
func load(d rundir.Dir, o Options) (s source, left []string, err error) {
	s = source{dir: d, opt: o}
	var from view.Source
	var unread error
	var parts errgroup.Group // each part takes time for a long run
	parts.Go(func() (err error) {
		s.found, err = view.ReadRecord(d)
		return err
	})
	parts.Go(func() error {
		from, unread = view.Read(d)
		return nil
	})
	if err := parts.Wait(); err != nil {
		return s, nil, err
	}
	if unread != nil {
		left = append(left, fmt.Sprintf("%s cannot be read (%v): its records are missing", rundir.StateFile, unread))
		now, err := d.Now()
		if err != nil {
			return s, left, err
		}
		from = view.Source{State: now.State}
	}
	s.state, s.book, s.whole = from.State, from.Records, from.Records.RunID != ""
	now := o.Now
	if now.IsZero() {
		now = when(from.State.TS)
	}
	s.figures = view.Of(from, now)
	if s.found.Damaged > 0 {
		left = append(left, plural(s.found.Damaged, "line")+" of the journal cannot be read")
	}
	return s, left, nil
}

// maxHeading is the length of a task that is the title of a page.
const maxHeading = 120

// Heading is the title of a page about a run: the first line of its task, or else its pipeline.
func Heading(task, pipeline, runID string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(task), "\n")
	return run.Cut(cmp.Or(strings.TrimSpace(line), pipeline, runID, "A run"), maxHeading)
}

// review returns the last words of a role that judged the work; nil: none did.
func (s source) review() *texts {
	for _, p := range slices.Backward(s.found.Passes) {
		if p.Verdict == "" || p.Reply == "" || p.Value != "" {
			continue
		}
		p.Prompt = ""
		space := maxText
		t := s.textsOf(p, &space)
		t.Reply = markdown.WithoutBlock(strings.TrimSpace(t.Reply))
		return &t
	}
	return nil
}

// origin is the run that this one was made from.
type origin struct{ RunID, Mode, At string }

// originOf returns the origin of a run; nil: none.
func originOf(start run.RunStart) *origin {
	id, mode := start.Origin()
	if id == "" {
		return nil
	}
	o := &origin{RunID: id, Mode: mode}
	if s := start.Source; s != nil {
		o.At = s.Checkpoint
	}
	return o
}

func (v *page) leave(format string, args ...any) {
	v.Left = append(v.Left, fmt.Sprintf(format, args...))
}

// newest keeps the last elements of a list, and records how many are omitted.
func newest[T any](v *page, all []T, most int, what string) []T {
	more := len(all) - most
	if more <= 0 {
		return all
	}
	v.leave("the first %s (starter report --markdown --json has all)", plural(more, what))
	return all[more:]
}

// fill creates every part of the page.
func (v *page) fill(s source) error {
	st := s.state
	v.Round, v.Judges = view.Title(s.words().Round), view.Title(s.words().Judges)
	shown := view.Recorded(st)
	v.StatusText, v.Means, v.Advice = shown.Words(), shown.Means(), st.Advice()
	v.StatusClass = StatusClass(st.Status)
	if text := shown.Limit(); text != "" {
		v.Means += " It " + text + "."
	}
	if q, open := st.Asks(); open {
		v.Question = &q
	}
	v.Seq, v.AsOf = st.Seq, st.TS
	v.Facts, v.Origin = facts(s), originOf(s.found.History.Start)
	v.Turns, v.Projection = newest(v, turns(s), most, "turn"), projection(s)
	most := s.opt.Rows
	v.Errors = newest(v, s.book.ErrorHistory, most, "error")
	v.Checkpoints = newest(v, s.book.Checkpoints, most, "checkpoint")
	v.Threshold = s.book.PAScoreThreshold
	v.Auditors = newest(v, closedCycles(s.book), most, s.words().Round)
	v.Decisions = v.decisions(s)
	v.Actions = newest(v, s.found.Actions, most, "message from outside")
	v.LaneRows = newest(v, s.found.Lanes, most, "lane")
	v.Groups = v.groups(s)
	v.Heading, v.Review = Heading(v.Task, v.Pipeline, v.RunID), s.review()
	v.Starts = newest(v, starts(s.found), most, "start")
	v.draw(s)
	v.gallery(s)
	v.differences(s)
	return nil
}

// StatusClass returns the CSS class of a status.
func StatusClass(s run.Status) string {
	return string(cmp.Or(s.Color(), run.ColorPaused))
}

// facts returns the figures of the summary.
func facts(s source) []fact {
	if !s.whole {
		return nil
	}
	f := s.figures
	all := []fact{progress(s), spent(f.Cost)}
	if n := len(f.Trend); n > 0 {
		all = append(all, score(s, f.Trend[n-1].Score))
	}
	all = append(all, s.elapsed())
	q := s.quality()
	if q.Judged > 0 {
		all = append(all, fact{
			Name: "Checks passed", Value: fmt.Sprintf("%d/%d", q.Passed, q.Judged), Share: -1, Bad: q.Passed < q.Judged,
			Note: plural(q.Retries, "retry") + ", " + plural(q.Warnings, "warning"),
		})
	}
	for _, n := range q.Notes {
		all = append(all, fact{
			Name: view.Title(n.Name), Value: fmt.Sprint(n.Entries), Share: -1, Note: "entries in the notes",
		})
	}
	unasked := 0
	for _, d := range s.found.Decisions {
		if d.By == run.Unattended {
			unasked++
		}
	}
	if unasked > 0 {
		all = append(all, fact{Name: "Not asked", Value: fmt.Sprint(unasked), Share: -1,
			Note: "questions of an unattended run; below is what it decided"})
	}
	return append(all, fact{
		Name: "Errors", Value: fmt.Sprint(q.Recovered + q.Unrecovered), Share: -1, Bad: q.Unrecovered > 0,
		Note: fmt.Sprintf("%d recovered, %d not", q.Recovered, q.Unrecovered),
	})
}

func progress(s source) fact {
	p := s.figures.Progress
	if s.state.Wording == run.WordingStages {
		return stagesFact(s)
	}
	f := fact{Name: "Passes", Value: fmt.Sprintf("%d/%d", p.Done, p.Total), Share: p.Percent}
	if p.Total == 0 {
		f.Value, f.Share = fmt.Sprint(len(s.found.Passes)), -1
	}
	if s.book.MaxPACycles > 0 {
		f.Note = fmt.Sprintf("%s of at most %d", plural(s.book.CompletedPACycles, s.words().Round), s.book.MaxPACycles)
	}
	return f
}

// stagesFact shows the finished stages and rounds.
func stagesFact(s source) fact {
	p, round := s.figures.Progress, ""
	for _, stage := range s.figures.Stages {
		round = cmp.Or(round, stage.RoundText())
	}
	f := fact{Name: "Stages", Value: fmt.Sprintf("%d/%d", p.Done, p.Total), Share: p.Percent}
	if p.Total == 0 {
		f.Share = -1
	}
	f.Note = plural(s.state.Spent.Calls, "call")
	if round == "" && s.state.Rounds > 0 {
		round = plural(s.state.Rounds, "round")
	}
	if round != "" {
		f.Note = round + ", " + f.Note
	}
	if s.state.Verdict != "" && s.state.Lanes == nil { // lanes have a verdict each
		f.Note += ", verdict " + s.state.Verdict
	}
	return f
}

func spent(c view.Cost) fact {
	f := fact{Name: "Cost", Value: run.ShortCost(c.Total, c.Unknown), Share: -1}
	if c.Unknown > 0 && c.Total > 0 {
		f.Note = plural(c.Unknown, "call") + " unknown"
	}
	if c.Budget > 0 {
		f.Share = min(100, c.Percent)
		f.Note, f.Bad = fmt.Sprintf("%d%% of %s", c.Percent, view.USD(c.Budget)), c.Total >= c.Budget
	}
	return f
}

func score(s source, v float64) fact {
	f := fact{Name: "Score", Value: fmt.Sprintf("%.1f", v), Share: -1}
	if t := s.book.PAScoreThreshold; t != nil {
		f.Note = fmt.Sprintf("target %.1f", *t)
		if v >= *t {
			f.Note += ", met"
		}
	}
	return f
}

// quality counts the passes with checks: of stages every pass, else the numbered ones.
func (s source) quality() view.Quality {
	q := s.figures.Quality
	if s.state.Wording != run.WordingStages {
		return q
	}
	q.Judged, q.Passed, q.Warnings = 0, 0, 0
	for _, p := range s.found.Passes {
		q.Warnings += len(p.Checks.Warnings)
		if len(p.Checks.Checks) == 0 {
			continue
		}
		q.Judged++
		if p.Checks.Passed {
			q.Passed++
		}
	}
	return q
}

// meanPass returns the mean duration of a pass: of stages of all of them, else of the numbered ones.
func (s source) meanPass() *time.Duration {
	if s.state.Wording != run.WordingStages {
		return s.figures.Timing.Mean
	}
	var all []time.Duration
	for _, p := range s.found.Passes {
		all = append(all, time.Duration(p.DurationMS)*time.Millisecond)
	}
	return view.Mean(all)
}

func (s source) elapsed() fact {
	t := s.figures.Timing
	f := fact{Name: "Time", Value: brief(t.Elapsed), Share: -1}
	if mean := s.meanPass(); mean != nil {
		f.Note = brief(*mean) + " a pass"
	}
	if t.Remaining != nil && *t.Remaining > 0 { // 0: no numbered pass, but rounds may follow
		f.Note += ", about " + brief(*t.Remaining) + " left"
	}
	return f
}

// projection describes the expected cost at the end of the run.
func projection(s source) string {
	c := s.figures.Cost
	if c.Projected == nil || s.state.Status.Closed() {
		return ""
	}
	return "If no loop ends early it will have cost " + view.USD(*c.Projected) + " in the end."
}

// starting reports whether an action starts, reverts or interrupts the run.
func starting(what string) bool {
	return slices.ContainsFunc([]string{"resumed", "went back", "interrupted"}, func(prefix string) bool {
		return strings.HasPrefix(what, prefix)
	})
}

// starts returns the starts, reverts and interruptions of the run.
func starts(e view.Record) []view.Action {
	all := []view.Action{{At: cmp.Or(e.StartedAt, e.CreatedAt), What: "started"}}
	for _, a := range e.Actions {
		if starting(a.What) {
			all = append(all, a)
		}
	}
	return all
}

// decision is a question with its place and its answer.
type decision struct {
	view.Decision
	About string
}

func (v *page) decisions(s source) []decision {
	var all []decision
	for _, d := range newest(v, s.found.Decisions, s.opt.Rows, "question") {
		all = append(all, decision{d, s.about(d)})
	}
	return all
}

// about describes a question by its place. Runs with the words of requirement 002 show its kind and trigger too.
func (s source) about(d view.Decision) string {
	round := fmt.Sprintf("round %d", d.Round)
	if s.state.Wording != run.WordingStages {
		parts := slices.DeleteFunc([]string{d.Kind, d.Phase}, func(s string) bool { return s == "" })
		return strings.Join(parts, " · ") + ", " + round + " · " + d.Trigger
	}
	stage, known := s.found.History.Stages[d.Phase]
	switch place := cmp.Or(stage.Title, d.Phase, d.Kind); {
	case known && stage.Repeats:
		return place + ", " + round
	default:
		return view.Title(place)
	}
}
