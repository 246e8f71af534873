package report

import (
	"cmp"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/passbook-run/passbook/figures"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/starter/evidence"
)

// view is what the page shows.
type view struct {
	evidence.Evidence
	Manner      string // live, waits, rests, done or bad: the colour of its status
	Means       string
	Advice      string
	Next        []string
	Question    *run.Question
	Facts       []fact
	Scores      *Chart
	Auditors    []cycle
	Depth       *Chart
	Depths      depths
	Money       money
	Durations   *Chart
	Groups      []group
	Strips      []strip
	More        []strip // the other pictures
	Changes     []difference
	Patch       *difference // what was, or was not, delivered
	Errors      []rundir.ErrorRecord
	Checkpoints []rundir.CheckpointRecord
	Turns       []turn
	Projection  string
	Seq         int64
	AsOf        string
	Starts      []start
	Origin      *origin
	Left        []string // what is not on the page, and why
}

// fact is one figure of the summary.
type fact struct {
	Name, Value, Note string
	Share             int // percent of a bar; -1: none
	Bad               bool
}

// source is what the page is made from.
type source struct {
	dir   rundir.Dir
	opt   Options
	state run.State
	book  rundir.PipelineState
	found evidence.Evidence
	story story
	whole bool // book could be read

	figures figures.Figures
}

func read(d rundir.Dir, o Options) (*view, error) {
	s, left, err := load(d, o)
	if err != nil {
		return nil, err
	}
	v := &view{Evidence: s.found, Next: o.Next, Left: left}
	return v, v.fill(s)
}

// load reads a run directory; left says what of it cannot be read.
func load(d rundir.Dir, o Options) (s source, left []string, err error) {
	s = source{dir: d, opt: o}
	events, damaged, err := d.Events()
	if err != nil {
		return s, nil, err
	}
	var from figures.Source
	var unread error
	var parts errgroup.Group // of a long run each of them takes its time
	parts.Go(func() (err error) {
		s.found, err = evidence.Of(d, events, damaged)
		return err
	})
	parts.Go(func() error {
		from, unread = figures.Read(d)
		return nil
	})
	s.story = tell(events)
	if err := parts.Wait(); err != nil {
		return s, nil, err
	}
	if unread != nil {
		left = append(left, fmt.Sprintf("%s cannot be read (%v): what is told from the records is missing", rundir.StateFile, unread))
		now, err := d.Now()
		if err != nil {
			return s, left, err
		}
		from = figures.Source{State: now.State}
	}
	s.state, s.book, s.whole, s.figures = from.State, from.Records, from.Records.RunID != "", figures.Of(from, when(from.State.TS))
	if damaged > 0 {
		left = append(left, plural(damaged, "line")+" of the journal cannot be read")
	}
	return s, left, nil
}

// origin is the run that this one comes of.
type origin struct{ RunID, Mode, At string }

// originOf is where a run comes from; nil: from nowhere.
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

func (v *view) leave(format string, args ...any) {
	v.Left = append(v.Left, fmt.Sprintf(format, args...))
}

// newest keeps the last of a list, and says how many are left out.
func newest[T any](v *view, all []T, most int, what string) []T {
	more := len(all) - most
	if more <= 0 {
		return all
	}
	v.leave("the first %s (starter evidence --format json has all)", plural(more, what))
	return all[more:]
}

// fill makes every part of the page.
func (v *view) fill(s source) error {
	st := s.state
	v.Manner, v.Means, v.Advice = manner(st.Status), run.Means(st.Status, st.Reason), run.Next(st.Status, st.Reason)
	if q, open := st.Asks(); open {
		v.Question = &q
	}
	v.Seq, v.AsOf = st.Seq, st.TS
	v.Facts, v.Origin = facts(s), originOf(s.story.start)
	v.Turns, v.Projection = newest(v, turns(s.found), most, "turn"), projection(s)
	most := s.opt.Rows
	v.Errors, v.Checkpoints = newest(v, s.book.ErrorHistory, most, "error"), newest(v, s.book.Checkpoints, most, "checkpoint")
	v.Auditors, v.Decisions = newest(v, cycles(s.book), most, "cycle"), newest(v, s.found.Decisions, most, "question")
	v.Actions = newest(v, s.found.Actions, most, "message from outside")
	v.Groups = v.groups(s)
	v.Starts = newest(v, starts(s.found), most, "start")
	if err := v.draw(s); err != nil {
		return err
	}
	v.gallery(s)
	v.differences(s)
	return nil
}

// manner sorts the statuses for the eye.
func manner(s run.Status) string {
	switch s {
	case run.Done:
		return "done"
	case run.Running, run.Replaying, run.Pending:
		return "live"
	case run.AwaitingPhaseHandoff, run.AwaitingGateDecision, run.AwaitingHumanReview:
		return "waits"
	case run.Failed, run.Halted, run.Interrupted, run.Cancelled:
		return "bad"
	}
	return "rests"
}

// facts are the figures of the summary.
func facts(s source) []fact {
	if !s.whole {
		return nil
	}
	f := s.figures
	all := []fact{progress(s), spent(f.Cost)}
	if n := len(f.Trend); n > 0 {
		all = append(all, score(s, f.Trend[n-1].Score))
	}
	all = append(all, elapsed(f.Timing))
	q := f.Quality
	if q.Judged > 0 {
		all = append(all, fact{
			Name: "Checks passed", Value: fmt.Sprintf("%d/%d", q.Passed, q.Judged), Share: -1, Bad: q.Passed < q.Judged,
			Note: plural(q.Retries, "retry") + ", " + plural(q.Warnings, "warning"),
		})
	}
	for _, n := range q.Notes {
		all = append(all, fact{Name: capital(n.Name), Value: fmt.Sprint(n.Entries), Share: -1, Note: "entries in the notes"})
	}
	return append(all, fact{
		Name: "Errors", Value: fmt.Sprint(q.Recovered + q.Unrecovered), Share: -1, Bad: q.Unrecovered > 0, Note: fmt.Sprintf("%d recovered, %d not", q.Recovered, q.Unrecovered),
	})
}

func progress(s source) fact {
	p := s.figures.Progress
	f := fact{Name: "Passes", Value: fmt.Sprintf("%d/%d", p.Done, p.Total), Share: p.Percent}
	if p.Total == 0 {
		f.Value, f.Share = fmt.Sprint(len(s.found.Passes)), -1
	}
	if s.book.MaxPACycles > 0 {
		f.Note = fmt.Sprintf("%s of at most %d", plural(s.book.CompletedPACycles, "cycle"), s.book.MaxPACycles)
	}
	return f
}

func spent(c figures.Cost) fact {
	f := fact{Name: "Cost", Value: figures.USD(c.Total), Share: -1}
	if c.Budget > 0 {
		f.Share = min(100, c.Percent)
		f.Note, f.Bad = fmt.Sprintf("%d%% of %s", c.Percent, figures.USD(c.Budget)), c.Total >= c.Budget
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

func elapsed(t figures.Timing) fact {
	f := fact{Name: "Time", Value: brief(t.Elapsed), Share: -1}
	if t.Mean != nil {
		f.Note = brief(*t.Mean) + " a pass"
	}
	if t.Remaining != nil {
		f.Note += ", about " + brief(*t.Remaining) + " left"
	}
	return f
}

// projection says what the run will have cost in the end.
func projection(s source) string {
	c := s.figures.Cost
	if c.Projected == nil || s.state.Status.Closed() {
		return ""
	}
	return "If no loop ends early it will have cost " + figures.USD(*c.Projected) + " in the end."
}

// start is one time that the run was begun or gone on with.
type start struct {
	At, What, By, Note string
}

// starts are the run's beginnings, ways back and ends of a rest: its lineage within itself.
func starts(e evidence.Evidence) []start {
	all := []start{{At: cmp.Or(e.StartedAt, e.CreatedAt), What: "started"}}
	for _, a := range e.Actions {
		if strings.HasPrefix(a.What, "resumed") || strings.HasPrefix(a.What, "went back") || strings.HasPrefix(a.What, "interrupted") {
			all = append(all, start{At: a.At, What: a.What, By: a.By, Note: a.Note})
		}
	}
	return all
}
