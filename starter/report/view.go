package report

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"strings"

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
	now   rundir.Now
	book  rundir.PipelineState
	found evidence.Evidence
	story story
	whole bool // book could be read
}

func read(d rundir.Dir, o Options) (*view, error) {
	s := source{dir: d, opt: o}
	events, damaged, err := d.Events()
	if err != nil {
		return nil, err
	}
	if s.found, err = evidence.Of(d, events, damaged); err != nil {
		return nil, err
	}
	s.story = tell(events)
	v := &view{Evidence: s.found, Next: o.Next}
	if s.now, err = d.Now(); err != nil {
		return nil, err
	}
	if s.book, err = d.State(); err == nil {
		s.whole = true
	} else if !d.Foreign() || !errors.Is(err, fs.ErrNotExist) {
		v.leave("%s cannot be read (%v): what is told from the records is missing", rundir.StateFile, err)
	}
	if damaged > 0 {
		v.leave("%s of the journal cannot be read", plural(damaged, "line"))
	}
	return v, v.fill(s)
}

func (v *view) leave(format string, args ...any) {
	v.Left = append(v.Left, fmt.Sprintf(format, args...))
}

// fill makes every part of the page.
func (v *view) fill(s source) error {
	st := s.now.State
	v.Manner, v.Means, v.Advice = manner(st.Status), run.Means(st.Status, st.Reason), run.Next(st.Status, st.Reason)
	if q, open := st.Asks(); open {
		v.Question = &q
	}
	v.Seq, v.AsOf = st.Seq, st.TS
	v.Facts = facts(s)
	v.Turns = turns(s.found)
	v.Errors, v.Checkpoints, v.Auditors = s.book.ErrorHistory, s.book.Checkpoints, cycles(s.book)
	v.Groups = v.groups(s)
	v.Starts = starts(s.found)
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

// facts are the figures of the summary, as state.json has them.
func facts(s source) []fact {
	if !s.whole {
		return nil
	}
	b := s.book
	all := []fact{progress(b), spent(b)}
	if b.LastPAScore != nil {
		f := fact{Name: "Score", Value: fmt.Sprintf("%.1f", *b.LastPAScore), Share: -1}
		if b.PAScoreThreshold != nil {
			f.Note = fmt.Sprintf("target %.1f", *b.PAScoreThreshold)
			if *b.LastPAScore >= *b.PAScoreThreshold {
				f.Note += ", met"
			}
		}
		all = append(all, f)
	}
	all = append(all, elapsed(s), checks(b))
	if b.ConvictionLayerPath != "" || b.DiscoveryLogPath != "" {
		all = append(all, fact{Name: "Notes", Value: fmt.Sprint(b.ConvictionEntryCount + b.DiscoveryEntryCount), Share: -1,
			Note: fmt.Sprintf("%d conviction, %d discovery", b.ConvictionEntryCount, b.DiscoveryEntryCount)})
	}
	return append(all, mishaps(b))
}

func progress(b rundir.PipelineState) fact {
	f := fact{Name: "Passes", Value: fmt.Sprintf("%d/%d", b.LastCompletedCorpusPass, b.TotalCorpusPasses), Share: -1}
	if b.TotalCorpusPasses > 0 {
		f.Share = 100 * b.LastCompletedCorpusPass / b.TotalCorpusPasses
	}
	if b.MaxPACycles > 0 {
		f.Note = fmt.Sprintf("%s of at most %d", plural(b.CompletedPACycles, "cycle"), b.MaxPACycles)
	}
	return f
}

func spent(b rundir.PipelineState) fact {
	f := fact{Name: "Cost", Value: usd(b.Cost.TotalEstimatedCostUSD), Share: -1}
	if budget := b.Cost.BudgetHardCapUSD; budget > 0 {
		f.Share = min(100, int(100*b.Cost.TotalEstimatedCostUSD/budget+0.5))
		f.Note, f.Bad = fmt.Sprintf("%d%% of %s", int(100*b.Cost.TotalEstimatedCostUSD/budget+0.5), usd(budget)), b.Cost.HardCapHit
	}
	return f
}

func elapsed(s source) fact {
	from, to := when(s.book.StartedAt), when(cmp.Or(s.found.FinishedAt, s.now.State.TS))
	f := fact{Name: "Time", Value: "none", Share: -1}
	if !from.IsZero() && !to.IsZero() {
		f.Value = seconds(to.Sub(from).Milliseconds())
	}
	if n := len(s.book.PassRecords); n > 0 {
		sum := int64(0)
		for _, r := range s.book.PassRecords {
			sum += r.DurationMS
		}
		f.Note = seconds(sum/int64(n)) + " a pass"
	}
	return f
}

func checks(b rundir.PipelineState) fact {
	passed, retries := 0, 0
	for _, r := range b.PassRecords {
		if r.ValidationPassed {
			passed++
		}
		retries += r.RetryCount
	}
	return fact{
		Name: "Checks passed", Value: fmt.Sprintf("%d/%d", passed, len(b.PassRecords)), Share: -1, Note: plural(retries, "retry"), Bad: passed < len(b.PassRecords),
	}
}

func mishaps(b rundir.PipelineState) fact {
	open := 0
	for _, r := range b.ErrorHistory {
		if !r.Recovered {
			open++
		}
	}
	return fact{
		Name: "Errors", Value: fmt.Sprint(len(b.ErrorHistory)), Share: -1, Note: fmt.Sprintf("%d recovered, %d not", len(b.ErrorHistory)-open, open), Bad: open > 0,
	}
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
