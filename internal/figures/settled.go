package figures

import (
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Pass is one settled numbered pass, for one line (TM-11).
type Pass struct {
	Number     int
	Set        string
	InSet      int
	Order      string
	Role       string
	Duration   time.Duration
	USD        float64
	Unknown    int // calls that USD lacks
	Passed     bool
	Outcome    run.Category // ok, or its failure
	Retries    int
	Checkpoint string // created after it
}

// lastOf returns the last three numbered passes, oldest first.
func lastOf(b rundir.PipelineState) []Pass {
	all := numbered(b)
	at := map[int]string{}
	for _, c := range b.Checkpoints {
		if c.AtPACycle == 0 {
			at[c.AtPassNumber] = c.ID
		}
	}
	var out []Pass
	for _, n := range all[max(0, len(all)-3):] {
		r := record(b, n)
		out = append(out, Pass{
			Number: r.GlobalPassNumber, Set: r.SubsetID, InSet: r.SubsetPassNumber, Order: r.Rotation,
			Role:     r.AgentRole,
			Duration: time.Duration(r.DurationMS) * time.Millisecond,
			USD:      r.Tokens.EstimatedCostUSD, Unknown: r.Tokens.UnknownCalls,
			Passed: r.ValidationPassed, Outcome: r.Outcome, Retries: r.RetryCount,
			Checkpoint: at[r.GlobalPassNumber],
		})
	}
	return out
}

// Settled is one settled pass of any kind, or one lane, from its event.
type Settled struct {
	Seq      int64
	TS       string
	Pass     run.Pass
	Duration time.Duration
	USD      float64
	Unknown  int // calls that USD lacks
	Passed   bool
	Outcome  run.Category
	Verdict  string // of a review or of a turn
	Value    string // of a command: ok or failed
	As       string
	Score    *float64
	Changed  *int // files of the workspace; nil: no changes
	Tampered int  // protected files that it changed, or that were restored before it
	Failed   bool // a failed attempt
	Message  string
}

// settledOf reads ended passes, failed attempts and ended lanes from the last events.
func settledOf(recent []run.Event, w run.Wording) []Settled {
	var out []Settled
	begun := map[string]time.Time{} // lanes, by run
	for _, e := range recent {
		switch e.Kind {
		case run.KindPassEnd:
			var p run.PassEnd
			e.Decode(&p)
			out = append(out, Settled{
				Seq: e.Seq, TS: e.TS, Pass: p.Pass, Duration: time.Duration(p.DurationMS) * time.Millisecond,
				USD: p.Spend.USD, Unknown: max(0, p.Spend.UnknownCalls()),
				Passed: p.Validation.Passed, Outcome: p.Outcome.In(w),
				Verdict: p.Verdict, Value: p.Value, As: p.ID, Score: p.Score, Tampered: p.Tampered.Files(),
			})
		case run.KindPassAttempt:
			var p run.PassAttempt
			if e.Decode(&p); p.Category == run.CategoryLost {
				continue // the call continues, or is made again
			}
			out = append(out, Settled{
				Seq: e.Seq, TS: e.TS, Pass: p.Pass, Duration: time.Duration(p.DurationMS) * time.Millisecond,
				Outcome: p.Category.In(w), Failed: true, Message: p.Message,
			})
			if p.Spend != nil {
				out[len(out)-1].USD, out[len(out)-1].Unknown = p.Spend.USD, p.Spend.UnknownCalls()
			}
		case run.KindChildStarted:
			begun[run.PayloadOf[run.ChildStart](e).RunID], _ = parse(e.TS)
		case run.KindChildEnded:
			p := run.PayloadOf[run.ChildEnd](e)
			if p.Outcome == run.ChildStopped {
				continue // it begins again
			}
			l := Settled{
				Seq: e.Seq, TS: e.TS, Pass: run.Pass{Step: p.RunID, Role: "lane", Item: p.Name},
				USD: p.Cost.Spent.USD, Unknown: p.Cost.Spent.Unknown, Outcome: run.CategoryOK,
			}
			if l.Failed = p.Outcome != run.ChildDone; l.Failed {
				l.Outcome, l.Message = run.Category(p.Outcome), p.Reason
			}
			if from := begun[p.RunID]; !from.IsZero() {
				at, _ := parse(e.TS)
				l.Duration = at.Sub(from)
			}
			out = append(out, l)
		case run.KindWorkspaceTampered:
			var p run.Tampered
			e.Decode(&p)
			if n := len(out) - 1; n >= 0 && out[n].Pass.Step == p.Step {
				out[n].Tampered = p.Files()
			}
		case run.KindWorkspaceUpdated:
			var p run.WorkspaceUpdated
			e.Decode(&p)
			if n := len(out) - 1; n >= 0 && out[n].Pass.Step == p.Step {
				out[n].Changed = &p.Changed
			}
		}
	}
	return out
}
