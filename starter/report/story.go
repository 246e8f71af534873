package report

import (
	"slices"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// story is what only the events say: when what was spent, who counted what, which artifact came of which pass, which pictures were taken.
type story struct {
	set     map[int64]run.Pass // the pass of each event that ended one
	spent   []spending
	budgets []budget
	tallies []tally
	changes []change
	shots   []run.Screenshots
	before  map[string]string // digest of an artifact → backup of it
	stages  map[string]stage  // by their names
	start   run.RunStart
}

// stage is what people call a stage.
type stage struct {
	title   string
	repeats bool
}

// spending is one call that has cost something.
type spending struct {
	at    time.Time
	total float64 // with this call
}

// budget is what was allowed from a moment on.
type budget struct {
	at  time.Time
	cap float64
}

// tally is what one verifier counted.
type tally struct {
	seq    int64
	Pass   int
	Title  string
	Counts []run.Count
}

// change is a pass that gave another artifact.
type change struct {
	seq           int64
	pass          run.Pass
	before, after string // digests
}

func tell(events []run.Event) story {
	s := story{set: map[int64]run.Pass{}, before: map[string]string{}, stages: map[string]stage{}}
	total, holds := 0.0, map[int64]bool{}
	for _, e := range run.InForce(events) {
		holds[e.Seq] = true
	}
	for _, e := range events {
		switch e.Kind {
		case run.KindRunStart:
			e.Decode(&s.start)
			s.allow(e, s.start.Budget)
		case run.KindPhaseStart:
			var p run.PhaseStart
			e.Decode(&p)
			if e.Phase != nil {
				s.stages[*e.Phase] = stage{title: p.Title, repeats: p.Dir != "" || p.Round > 1}
			}
		case run.KindPassStart:
			s.begun(e)
		case run.KindPassAttempt:
			var p run.PassAttempt
			e.Decode(&p)
			if p.Spend != nil {
				total = s.pay(e, total, *p.Spend)
			}
		case run.KindPassEnd:
			var p run.PassEnd
			e.Decode(&p)
			total = s.pay(e, total, p.Spend)
			s.ended(e, p)
		case run.KindScreenshots:
			var p run.Screenshots
			e.Decode(&p)
			if holds[e.Seq] {
				s.shots = append(s.shots, p)
			}
		case run.KindBudgetRaised:
			var p run.BudgetEvent
			e.Decode(&p)
			s.allow(e, p.Budget)
		}
	}
	s.changes = slices.DeleteFunc(s.changes, func(c change) bool { return !holds[c.seq] })
	s.tallies = slices.DeleteFunc(s.tallies, func(t tally) bool { return !holds[t.seq] })
	return s
}

func (s *story) allow(e run.Event, b run.Budget) {
	if b.CapUSD > 0 {
		s.budgets = append(s.budgets, budget{at: when(e.TS), cap: b.CapUSD})
	}
}

func (s *story) begun(e run.Event) {
	var p run.PassStart
	e.Decode(&p)
	if p.Gives == "artifact" && p.Before != "" && s.start.Artifact != nil {
		s.before[p.Before] = rundir.Backup(p.Pass, s.start.Artifact.File)
	}
}

func (s *story) ended(e run.Event, p run.PassEnd) {
	s.set[e.Seq] = p.Pass
	if len(p.Tally) > 0 {
		s.tallies = append(s.tallies, tally{seq: e.Seq, Pass: p.Number, Title: p.Title, Counts: p.Tally})
	}
	if p.Artifact != nil && p.Modified {
		s.changes = append(s.changes, change{seq: e.Seq, pass: p.Pass, before: p.Before, after: p.Artifact.Digest})
	}
}

// pay notes one call, and gives the sum so far. What a revert left behind stays spent.
func (s *story) pay(e run.Event, total float64, c run.Spend) float64 {
	total = run.Cents(total + c.USD)
	s.spent = append(s.spent, spending{at: when(e.TS), total: total})
	return total
}

// when reads a time of the journal; zero: it is none.
func when(ts string) time.Time {
	t, err := time.Parse(run.TimeFormat, ts)
	if err != nil {
		return time.Time{}
	}
	return t
}
