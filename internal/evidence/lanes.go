package evidence

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/run"
)

// Lane is the work on one item of a list.
type Lane struct {
	Stage     string        `json:"stage"`
	Number    int           `json:"number"` // of the item in the list, from 1
	Item      string        `json:"item"`
	Lane      string        `json:"lane"`    // key
	Outcome   string        `json:"outcome"` // active, waiting, done, failed or merged
	Reason    string        `json:"reason"`  // why it failed or waits
	Calls     int           `json:"calls"`   // failed attempts included
	USD       float64       `json:"cost_usd"`
	Unknown   int           `json:"unknown_calls"`
	CostKnown run.CostKnown `json:"cost_known"`
	Conflicts int           `json:"conflicts"` // that an operator was asked about
	Merged    int           `json:"merged"`    // place in the order of merges; 0: it is not merged
	Changed   int           `json:"files_changed"`
	Commit    string        `json:"commit"`
	StartedAt string        `json:"started_at"`
	EndedAt   string        `json:"ended_at"` // "": it has not ended
}

// Outcomes of lanes besides those of their ends.
const (
	LaneActive  = "active"
	LaneWaiting = "waiting"
	LaneMerged  = "merged"
)

// laneChange is what an event does to its lane.
type laneChange struct {
	seq        int64
	stage, key string
	apply      func(*Lane)
}

// lane keeps an event about a lane until it is known which of them a revert undid.
func (c *collector) lane(e run.Event) {
	if e.Lane == "" {
		return
	}
	if apply := laneEvent(e); apply != nil {
		c.laneLog = append(c.laneLog, laneChange{e.Seq, phase(e), e.Lane, apply})
	}
}

func laneEvent(e run.Event) func(*Lane) {
	switch e.Kind {
	case run.KindLaneStarted:
		var p run.LaneStarted
		e.Decode(&p)
		return func(l *Lane) { l.Number, l.Item, l.StartedAt = p.Index+1, p.Name, e.TS }
	case run.KindLaneWaiting:
		var p run.LaneWaiting
		e.Decode(&p)
		return func(l *Lane) {
			l.Number, l.Item, l.Outcome, l.Reason, l.EndedAt = p.Index+1, p.Name, LaneWaiting, p.Question, ""
			if p.Why == run.LaneConflict {
				l.Conflicts++
			}
		}
	case run.KindLaneContinued:
		return func(l *Lane) { l.Outcome, l.Reason = LaneActive, "" }
	case run.KindLaneEnded:
		var p run.LaneEnded
		e.Decode(&p)
		return func(l *Lane) {
			l.Number, l.Item, l.Outcome, l.Reason, l.EndedAt = p.Index+1, p.Name, p.Outcome, p.Reason, e.TS
		}
	case run.KindLaneMerged:
		var p run.LaneMerged
		e.Decode(&p)
		return func(l *Lane) {
			l.Number, l.Item, l.Outcome, l.Changed, l.Commit = p.Index+1, p.Name, LaneMerged, p.Changed, p.Commit
		}
	case run.KindPassAttempt:
		var p run.PassAttempt
		if e.Decode(&p); p.Spend != nil {
			return costs(*p.Spend)
		}
	case run.KindPassEnd:
		var p run.PassEnd
		e.Decode(&p)
		return costs(p.Spend)
	}
	return nil
}

func costs(s run.Spend) func(*Lane) {
	return func(l *Lane) {
		l.Calls++
		l.USD = run.Cents(l.USD + s.USD)
		l.Unknown = max(0, l.Unknown+s.UnknownCalls())
	}
}

// lanes applies the events of lanes that are in force. A fork has lanes that its source started.
func (c *collector) lanes(inForce run.Ranges) {
	at := map[string]int{}
	merged := 0
	for _, change := range c.laneLog {
		if !inForce.Has(change.seq) {
			continue
		}
		key := change.stage + "\x00" + change.key
		i, known := at[key]
		if !known {
			i = len(c.Lanes)
			at[key] = i
			c.Lanes = append(c.Lanes, Lane{Stage: change.stage, Lane: change.key, Outcome: LaneActive})
		}
		l := &c.Lanes[i]
		if change.apply(l); l.Outcome == LaneMerged && l.Merged == 0 {
			merged++
			l.Merged = merged
		}
	}
	for i := range c.Lanes {
		l := &c.Lanes[i]
		l.CostKnown = run.KnownOf(l.USD, l.Unknown)
	}
	if l := c.fold.Current().Lanes; l != nil {
		c.History.LanesLeft = l.Count - l.Begun
	}
	stages := map[string]int{} // in the order of the run
	for _, l := range c.Lanes {
		if _, ok := stages[l.Stage]; !ok {
			stages[l.Stage] = len(stages)
		}
	}
	slices.SortStableFunc(c.Lanes, func(a, b Lane) int {
		return cmp.Or(cmp.Compare(stages[a.Stage], stages[b.Stage]), cmp.Compare(a.Number, b.Number))
	})
}

// Result is the outcome of a lane in a few words: merged as 3, 2 files, after 1 conflict.
func (l Lane) Result() string {
	text := l.Outcome
	if l.Merged > 0 {
		text = fmt.Sprintf("%s as %d, %s", l.Outcome, l.Merged, run.Plural(l.Changed, "file"))
	}
	if l.Conflicts > 0 {
		text += ", after " + run.Plural(l.Conflicts, "conflict")
	}
	if l.Reason != "" {
		text += ": " + run.OneLine(l.Reason)
	}
	return text
}

// LaneTotals counts the lanes of a list: 60 lanes: 27 merged, 2 failed, 1 active, 30 not started. left are those that
// have not started.
func LaneTotals(all []Lane, left int) string {
	text := run.Plural(len(all)+left, "lane") + ":"
	for _, outcome := range []string{LaneMerged, run.LaneOutcomeDone, run.LaneOutcomeFailed, LaneWaiting, LaneActive} {
		n := 0
		for _, l := range all {
			if l.Outcome == outcome {
				n++
			}
		}
		if n > 0 {
			text += fmt.Sprintf(" %d %s,", n, outcome)
		}
	}
	if left > 0 {
		text += fmt.Sprintf(" %d not started,", left)
	}
	return text[:len(text)-1]
}

// lanes lists the lanes of the run.
func (e Evidence) lanes(p *page) {
	if len(e.Lanes) == 0 {
		return
	}
	p.line("%s.\n", LaneTotals(e.Lanes, e.History.LanesLeft))
	p.table("lane", "item", "outcome", "calls", "cost", "commit")
	for _, l := range e.Lanes {
		p.row(fmt.Sprint(l.Number), l.Item, l.Result(), fmt.Sprint(l.Calls), run.ShortCost(l.USD, l.Unknown), short(l.Commit))
	}
	p.line("")
}
