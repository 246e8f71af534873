package view

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Lane is the work on one item of a list.
type Lane struct {
	Stage     string        `json:"stage"`
	Number    int           `json:"number"` // of the item in the list, from 1
	Item      string        `json:"item"`
	Lane      string        `json:"lane"`    // key
	RunID     string        `json:"run_id"`  // of its last run
	Outcome   string        `json:"outcome"` // active, waiting, done, failed or merged
	Reason    string        `json:"reason"`  // why it failed or waits
	Calls     int           `json:"calls"`   // of all its runs, failed attempts included
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

// lane counts what a lane has cost, and keeps an event about it until it is known which of them a revert undid.
func (c *collector) lane(e run.Event) {
	switch e.Kind {
	case run.KindChildEnded:
		c.spendLane(e, run.PayloadOf[run.ChildEnd](e).Cost)
	case run.KindChildSkipped:
		c.spendLane(e, run.PayloadOf[run.ChildSkip](e).Cost)
	}
	if key, apply := laneEvent(e); apply != nil {
		c.laneLog = append(c.laneLog, laneChange{e.Seq, phaseOf(e), key, apply})
	}
}

func laneEvent(e run.Event) (key string, apply func(*Lane)) {
	switch e.Kind {
	case run.KindChildStarted:
		var p run.ChildStart
		e.Decode(&p)
		return p.Key, func(l *Lane) {
			l.Number, l.Item, l.Outcome, l.Reason, l.EndedAt = p.Index+1, p.Name, LaneActive, "", ""
			if l.RunID = p.RunID; l.StartedAt == "" {
				l.StartedAt = e.TS
			}
		}
	case run.KindChildEnded:
		var p run.ChildEnd
		e.Decode(&p)
		return p.Key, func(l *Lane) {
			costs(l, p.Cost)
			l.Number, l.Item, l.Outcome, l.Reason, l.EndedAt = p.Index+1, p.Name, string(p.Outcome), p.Reason, ""
			switch p.Outcome {
			case run.ChildConflict:
				l.Conflicts, l.Outcome = l.Conflicts+1, LaneWaiting
			case run.ChildFailed: // until it begins again or is left out
				l.Outcome = LaneWaiting
			case run.ChildStopped:
				l.Outcome = LaneActive
			default:
				l.EndedAt = e.TS
			}
		}
	case run.KindChildMerged:
		var p run.ChildMerged
		e.Decode(&p)
		return p.Key, func(l *Lane) {
			l.Number, l.Item, l.Outcome, l.Changed, l.Commit = p.Index+1, p.Name, LaneMerged, p.Changed, p.Commit
		}
	case run.KindChildSkipped:
		var p run.ChildSkip
		e.Decode(&p)
		return p.Key, func(l *Lane) {
			costs(l, p.Cost)
			l.Number, l.Item, l.Outcome, l.Reason = p.Index+1, p.Name, string(run.ChildFailed), p.Reason
			l.EndedAt = e.TS
		}
	}
	return "", nil
}

func costs(l *Lane, c run.ChildCost) {
	l.Calls += c.Spent.Calls
	l.USD = run.Cents(l.USD + c.Spent.USD)
	l.Unknown += c.Spent.Unknown
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

// open adds what the own records of lanes that have not ended show: what they have cost, and why they wait.
func (c *collector) open(d rundir.Dir, s run.State) {
	for _, one := range d.Lanes(s) {
		if one.Live == nil || one.Outcome != "" {
			continue
		}
		now := s.LaneNow(one.Lane, one.Live, 0)
		i := slices.IndexFunc(c.Lanes, func(l Lane) bool { return l.RunID == now.RunID && l.Outcome == LaneActive })
		if i < 0 {
			continue
		}
		l := &c.Lanes[i]
		costs(l, *one.Live.ChildCost())
		l.CostKnown = run.KnownOf(l.USD, l.Unknown)
		if q, asks := one.Live.Asks(); now.Waiting && asks {
			l.Outcome, l.Reason = LaneWaiting, q.Words()
		} else if now.Waiting {
			l.Outcome, l.Reason = LaneWaiting, cmp.Or(one.Live.Reason, string(one.Live.Status))
		}
	}
}

// Directory is that of the lane's last run, in the directory of its run; empty: another run has it.
func (l Lane) Directory() string {
	if l.RunID == "" {
		return ""
	}
	return path.Join(run.LanesDir, l.Stage, l.RunID[strings.LastIndexByte(l.RunID, '.')+1:])
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
	for _, outcome := range []string{LaneMerged, string(run.ChildDone), string(run.ChildFailed), LaneWaiting, LaneActive} {
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
