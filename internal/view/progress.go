package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Progress is the progress of the numbered passes (TM-02), or of the stages of a run that is reported by them.
type Progress struct {
	Stage      string // title; empty: the plan is unreadable
	Done       int    // settled numbered passes, or finished stages
	Total      int    // 0: none
	Percent    int
	Set, Theme string // of the current or next pass; empty: between sets
	InSet      int    // number of the pass in the set
	OfSet      int
	Order      string // A
	OrderLabel string // Base ordering
	Role       string
	Round, Max int    // of a repeated stage; 0: the stage does not repeat
	After      string // the round after the last one; empty: it is not reached
}

// stages counts stages instead of passes. A stage with lanes counts with those that have ended.
func (p *Progress) stages(l *run.Lanes, all []Stage) {
	p.Done, p.Total = 0, len(all)
	for _, stage := range all {
		if stage.Finished {
			p.Done++
		}
	}
	p.Percent = run.Percent(p.Done, p.Total)
	if l != nil && l.Count > 0 {
		p.Percent = run.Percent(p.Done*l.Count+l.Done+l.Failed, p.Total*l.Count)
	}
}

// Bar returns how many of width cells are filled at a percentage, rounded half up (requirement 002 §7.5): of 40 at
// 61 percent, 24.
func Bar(percent, width int) int { return (2*width*percent + 100) / 200 }

func progressOf(s Source) Progress {
	done, total := s.State.Passes.LastSettled, s.State.Passes.Total
	p := Progress{Done: done, Total: total, Percent: run.Percent(done, total)}
	if s.State.Wording == run.WordingStages {
		p.stages(s.State.Lanes, stagesOf(s))
	}
	stage, round, step, ok := s.step()
	p.Stage, p.Set, p.Theme = stage.Title, round.Set, round.Theme
	if stage.Kind == pipeline.StageRepeat {
		p.Round, p.Max = s.State.Next.Round, stage.MaxRounds()
		p.After = s.State.AfterLastRound(s.State.Wording.Words().Round, p.Max)
	}
	if ok {
		p.InSet, p.OfSet, p.Order, p.OrderLabel, p.Role = step.InRound, len(round.Steps), step.Order, step.OrderLabel,
			roleOf(step)
	}
	return p
}

// roleOf returns the role or roles of a step.
func roleOf(step pipeline.PlanStep) string {
	switch step.Kind {
	case pipeline.KindRole:
		return step.Role
	case pipeline.KindTogether:
		return strings.Join(step.Members, ", ")
	case pipeline.KindRun:
		return pipeline.CommandRole
	}
	return string(step.Kind)
}

// InFlightCall is one call that has started and not settled.
type InFlightCall struct {
	Step        string
	Member      string // of a group
	Role        string
	Call        string // id
	Attempt     int
	Number      int // of the pass; 0: none
	Set, Order  string
	Description string // empty: the plan is unreadable
	Files       []string
	Command     string // of a step that is a command
	Reply       string // form of the agent's output; empty: the plan is unreadable
	Since       time.Time
	Elapsed     time.Duration
}

// Name is that of the member or role, or else of the step of a command.
func (f InFlightCall) Name() string { return cmp.Or(f.Member, f.Role, f.Step) }

// InFlight returns the running calls of a run, and of its lanes. plan may be nil.
func InFlight(s run.State, plan *pipeline.Plan, now time.Time, lanes ...rundir.Lane) []InFlightCall {
	return inFlightOf(Source{State: s, Plan: plan, Lanes: lanes}, now)
}

func inFlightOf(s Source, now time.Time) []InFlightCall {
	out := ownInFlight(s, now)
	for _, l := range s.Lanes {
		if l.Live == nil || l.Outcome != "" {
			continue
		}
		for _, f := range ownInFlight(Source{State: *l.Live, Plan: s.Plan}, now) { // its plan is that of its run
			f.Member = f.Name() + " " + l.Name
			out = append(out, f)
		}
	}
	return out
}

func ownInFlight(s Source, now time.Time) []InFlightCall {
	if s.State.Status != run.Running {
		return nil // calls interrupted by a pause are repeated
	}
	var out []InFlightCall
	_, round, step, ok := s.step()
	for _, f := range s.State.InFlight {
		fl := InFlightCall{Step: f.Step, Member: f.Member, Role: f.Role, Call: f.Call, Attempt: f.Attempt}
		if t, known := parse(f.StartedAt); known {
			fl.Since, fl.Elapsed = t, max(0, now.Sub(t))
		}
		if ok && step.Key == f.Step {
			fl.Number, fl.Set, fl.Order, fl.Files, fl.Command = step.Number, round.Set, step.Order, step.Files, step.Run
			fl.Description = step.DescriptionOf(f.Member, s.State.Next.Round)
			fl.Reply = s.Plan.ReplyOf(step, f.Role)
		}
		out = append(out, fl)
	}
	return out
}

// LaneNow is one lane of a run that has not ended.
type LaneNow struct {
	run.ActiveLane
	Directory string        // in that of its run; empty: the stage is unknown
	Elapsed   time.Duration // of its oldest call; 0: none runs
}

func lanesOf(s Source, now time.Time) []LaneNow {
	steps := 0
	if stage, ok := s.stage(); ok && len(stage.Rounds) > 0 {
		steps = len(stage.Rounds[0].Steps)
	}
	var out []LaneNow
	for _, one := range s.Lanes {
		l := LaneNow{ActiveLane: s.State.LaneNow(one.Lane, one.Live, steps)}
		if at := s.State.Lanes.Stage; at < len(s.State.Stages) {
			l.Directory = one.Dir(s.State.Stages[at].Name)
		}
		if t, known := parse(l.Since); known {
			l.Elapsed = max(0, now.Sub(t))
		}
		out = append(out, l)
	}
	return out
}

// Set is one set of files and the number of its settled passes (TM-10).
type Set struct {
	ID, Theme   string
	Done, Total int
}

// Steps returns how many cells of a bar are filled. The bar is full only when every pass of the set has settled: 3
// of 8 fills 3 of 8.
func (s Set) Steps(n int) int {
	if s.Total == 0 {
		return 0
	}
	return n * s.Done / s.Total
}

// setsOf returns the sets of the plan in order.
func setsOf(s Source) []Set {
	if s.Plan == nil {
		return nil
	}
	var out []Set
	for _, stage := range s.Plan.Stages {
		for _, round := range stage.Rounds {
			set := Set{ID: round.Set, Theme: round.Theme}
			for _, step := range round.Steps {
				if step.Number == 0 {
					continue
				}
				set.Total++
				if step.Number <= s.State.Passes.LastSettled {
					set.Done++
				}
			}
			if round.Set != "" && set.Total > 0 {
				out = append(out, set)
			}
		}
	}
	return out
}

// Stage is one stage of the plan and the number of its finished rounds.
type Stage struct {
	Name     string
	Title    string
	Rounds   int // finished rounds
	Max      int // number or maximum of rounds
	Repeats  bool
	Current  bool
	After    string // the round after the last one; empty: it is not reached
	Finished bool   // the run is in a later stage, or finished
	Unmet    string // condition that the loop ended without; known of the last loop
}

// RoundText is the round of the current stage: "round 2 of at most 3"; "" of another one.
func (s Stage) RoundText() string {
	if !s.Current || !s.Repeats {
		return ""
	}
	return cmp.Or(s.After, fmt.Sprintf("round %d of at most %d", min(s.Rounds+1, s.Max), s.Max))
}

func stagesOf(s Source) []Stage {
	if s.Plan == nil {
		return nil
	}
	var out []Stage
	at := s.State.Next
	for i, stage := range s.Plan.Stages {
		st := Stage{Name: stage.Name, Title: stage.Title, Max: stage.MaxRounds(), Repeats: stage.Kind == pipeline.StageRepeat}
		st.Finished = s.State.Status == run.Done || i < at.Stage
		st.Current = !st.Finished && i == at.Stage
		if st.Current {
			st.Rounds = max(0, at.Round-1)
			if st.Repeats {
				st.After = s.State.AfterLastRound("round", st.Max)
			}
		}
		if st.Finished && !st.Repeats {
			st.Rounds = st.Max
		}
		out = append(out, st)
	}
	for i := range slices.Backward(out) { // the state knows the last finished loop
		if out[i].Finished && out[i].Repeats {
			out[i].Rounds, out[i].Unmet = s.State.Rounds, s.State.Unmet
			break
		}
	}
	return out
}

// round rounds half up.
func round(x float64) int64 { return int64(math.Floor(x + 0.5)) }

// parse parses a time of the journal.
func parse(ts string) (time.Time, bool) {
	t, err := time.Parse(run.TimeFormat, ts)
	return t, err == nil
}
