package view

import (
	"fmt"
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Numbered is one settled numbered pass, for one line (TM-11).
type Numbered struct {
	rundir.PassRecord
	Checkpoint string // created after it
}

// Name is the place of the pass and its role: S5/1A Builder.
func (p Numbered) Name() string {
	return PlaceName(p.SubsetID, p.SubsetPassNumber, p.Rotation, p.AgentRole)
}

// PlaceName is a place in a set and a role: S5/1A Builder; without a set the role.
func PlaceName(set string, inSet int, order, role string) string {
	if set == "" {
		return Title(role)
	}
	return fmt.Sprintf("%s/%d%s %s", set, inSet, order, Title(role))
}

// lastOf returns the last three numbered passes, oldest first.
func lastOf(b rundir.PipelineState) []Numbered {
	all := numbered(b)
	at := map[int]string{}
	for _, c := range b.Checkpoints {
		if c.AtPACycle == 0 {
			at[c.AtPassNumber] = c.ID
		}
	}
	var out []Numbered
	for _, n := range all[max(0, len(all)-3):] {
		out = append(out, Numbered{PassRecord: record(b, n), Checkpoint: at[n]})
	}
	return out
}

// Settled is one settled pass of any kind, one failed attempt, or one lane, from its event.
type Settled struct {
	Pass
	As      string // id of the step
	Failed  bool   // a failed attempt or lane
	Message string
}

// settledOf reads ended passes, failed attempts and ended lanes from the last events.
func settledOf(recent []run.Event, w run.Wording) []Settled {
	var out []Settled
	begun := map[string]time.Time{} // lanes, by run
	last := func(step string) *Settled {
		if n := len(out) - 1; n >= 0 && out[n].Step == step {
			return &out[n]
		}
		return &Settled{}
	}
	for _, e := range recent {
		switch e.Kind {
		case run.KindPassEnd:
			p := run.PayloadOf[run.PassEnd](e)
			var cost run.Totals
			cost.Add(p.Spend)
			out = append(out, Settled{Pass: passOf(e, p, cost, w), As: p.ID})
		case run.KindPassAttempt:
			p := run.PayloadOf[run.PassAttempt](e)
			if p.Category == run.CategoryLost {
				continue // the call continues, or is made again
			}
			end := run.PassEnd{Pass: p.Pass, Outcome: p.Category, DurationMS: p.DurationMS}
			var cost run.Totals
			if p.Spend != nil {
				cost.Add(*p.Spend)
			}
			out = append(out, Settled{Pass: passOf(e, end, cost, w), Failed: true, Message: p.Message})
		case run.KindChildStarted:
			begun[run.PayloadOf[run.ChildStart](e).RunID], _ = parse(e.TS)
		case run.KindChildEnded:
			p := run.PayloadOf[run.ChildEnd](e)
			if p.Outcome == run.ChildStopped {
				continue // it begins again
			}
			l := Settled{Pass: Pass{
				Seq: e.Seq, Step: p.RunID, Role: "lane", Item: p.Name, CompletedAt: e.TS,
				USD: p.Cost.Spent.USD, Unknown: p.Cost.Spent.Unknown, Outcome: run.CategoryOK,
			}}
			if l.Failed = p.Outcome != run.ChildDone; l.Failed {
				l.Outcome, l.Message = run.Category(p.Outcome), p.Reason
			}
			if from := begun[p.RunID]; !from.IsZero() {
				at, _ := parse(e.TS)
				l.DurationMS = at.Sub(from).Milliseconds()
			}
			out = append(out, l)
		case run.KindWorkspaceTampered:
			p := run.PayloadOf[run.Tampered](e)
			last(p.Step).Tampered = &p
		case run.KindWorkspaceUpdated:
			p := run.PayloadOf[run.WorkspaceUpdated](e)
			last(p.Step).Changed = p.Changed
		}
	}
	return out
}
