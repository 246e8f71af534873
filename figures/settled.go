package figures

import (
	"time"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Pass is one settled numbered pass as one line tells of it (TM-11).
type Pass struct {
	Number     int
	Set        string
	InSet      int
	Order      string
	Role       string
	Duration   time.Duration
	USD        float64
	Passed     bool
	Outcome    string // ok, or what it was given up with
	Retries    int
	Checkpoint string // that was made behind it
}

// lastOf gives the last three numbered passes, oldest first.
func lastOf(b rundir.PipelineState) []Pass {
	all := numbered(b)
	at := map[int]string{}
	for _, c := range b.Checkpoints {
		if c.AtPACycle == 0 {
			at[c.AtPassNumber] = c.ID
		}
	}
	var out []Pass
	for _, r := range all[max(0, len(all)-3):] {
		out = append(out, Pass{
			Number: r.GlobalPassNumber, Set: r.SubsetID, InSet: r.SubsetPassNumber, Order: r.Rotation, Role: r.AgentRole, Duration: time.Duration(r.DurationMS) * time.Millisecond,
			USD: r.Tokens.EstimatedCostUSD, Passed: r.ValidationPassed, Outcome: r.Outcome, Retries: r.RetryCount, Checkpoint: at[r.GlobalPassNumber],
		})
	}
	return out
}

// Settled is one settled pass of whatever kind, from its event: what a loop of turns or a review is told by.
type Settled struct {
	Seq      int64
	TS       string
	Pass     run.Pass
	Duration time.Duration
	USD      float64
	Passed   bool
	Outcome  string
	Verdict  string // of a review or of a turn
	Value    string // of a command: ok or failed
	As       string
	Score    *float64
	Changed  *int // files of the workspace; nil: it gives no changes
	Failed   bool // an attempt that did not settle it
	Message  string
}

// settledOf reads the passes that ended, and the attempts that failed, out of the last events.
func settledOf(recent []run.Event) []Settled {
	var out []Settled
	for _, e := range recent {
		switch e.Kind {
		case run.KindPassEnd:
			var p run.PassEnd
			e.Decode(&p)
			out = append(out, Settled{
				Seq: e.Seq, TS: e.TS, Pass: p.Pass, Duration: time.Duration(p.DurationMS) * time.Millisecond, USD: p.Spend.USD, Passed: p.Validation.Passed, Outcome: p.Outcome,
				Verdict: p.Verdict, Value: p.Value, As: p.As, Score: p.Score,
			})
		case run.KindPassAttempt:
			var p run.PassAttempt
			e.Decode(&p)
			out = append(out, Settled{
				Seq: e.Seq, TS: e.TS, Pass: p.Pass, Duration: time.Duration(p.DurationMS) * time.Millisecond, Outcome: p.Category, Failed: true, Message: p.Message,
			})
		case run.KindWorkspaceUpdated:
			var p run.WorkspaceUpdated
			e.Decode(&p)
			if n := len(out) - 1; n >= 0 && p.Call != "" && out[n].Pass.Step == p.Step {
				out[n].Changed = &p.Changed
			}
		}
	}
	return out
}
