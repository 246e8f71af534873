package view

import (
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Cycle is the current or last round of the scoring stage (TM-12).
type Cycle struct {
	Stage       string  // title
	Name        string  // of the score: PA-05
	MaxScore    float64 // maximum score; 0: unknown
	Judge       string  // role that returns it
	Number, Max int
	Open        bool
	Previous    *float64 // score of the previous cycle
	Score       *float64 // of this cycle; nil: none yet, or none found
	Target      *float64
	Met         bool
	Steps       []CycleStep
	Auditors    []Auditor // with a report, ordered by id
}

// CycleStep is one step of a cycle.
type CycleStep struct {
	Name string // Screenshots, Auditors, Weaver, Refine
	At   StepState
}

// StepState is the state of a step.
type StepState string

// States of a step.
const (
	StepDone    StepState = "done"
	StepRunning StepState = "runs"
	StepWaiting StepState = "waits"
	StepSkipped StepState = "skipped" // the cycle ended before it
)

// Auditor is one member of the group that reviews the screenshots. Name is its id without the common prefix: A, B,
// C.
type Auditor struct {
	Name  string
	Score *float64 // nil: the role has no score
}

// Point is the score of one cycle.
type Point struct {
	Cycle int
	Score float64
	Met   bool
}

// Trend returns the scores of the cycles in order, including the open one. Cycles without a score are omitted.
func Trend(b rundir.PipelineState) []Point {
	var out []Point
	for _, c := range Cycles(b) {
		if c.PAScore != nil {
			out = append(out, Point{Cycle: c.CycleNumber, Score: *c.PAScore, Met: c.MetThreshold})
		}
	}
	return out
}

// Cycles returns the records of the cycles in order, including the open one.
func Cycles(b rundir.PipelineState) []rundir.PACycleRecord {
	all := slices.Collect(maps.Values(b.PACycleRecords))
	if b.OpenCycle != nil {
		all = slices.DeleteFunc(all,
			func(c rundir.PACycleRecord) bool { return c.CycleNumber == b.OpenCycle.CycleNumber })
		all = append(all, *b.OpenCycle)
	}
	slices.SortFunc(all, func(x, y rundir.PACycleRecord) int { return x.CycleNumber - y.CycleNumber })
	return all
}

func cycleOf(s Source) *Cycle {
	all := Cycles(s.Records)
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	c := &Cycle{
		Number: last.CycleNumber, Max: s.Records.MaxPACycles, Open: s.Records.OpenCycle != nil, Score: last.PAScore,
		Target: s.Records.PAScoreThreshold, Met: last.MetThreshold,
		Auditors: auditorsOf(last.Auditors),
	}
	if len(all) > 1 {
		c.Previous = all[len(all)-2].PAScore
	}
	if loop, at, ok := s.loop(); ok {
		c.Stage, c.Steps = loop.Title, cycleSteps(s, loop, at, last)
		c.setScoreRole(s.Plan, loop)
	}
	return c
}

// setScoreRole sets the role of the loop that returns the score, and the score's name.
func (c *Cycle) setScoreRole(plan *pipeline.Plan, loop pipeline.PlanStage) {
	for _, step := range loop.Rounds[0].Steps {
		role, ok := plan.Role(step.Role)
		if !ok || role.Score == nil {
			continue
		}
		c.Name, c.Judge = role.Score.Name, role.Name
		if n := len(role.Score.Range); n > 0 {
			c.MaxScore = role.Score.Range[n-1]
		}
	}
}

// cycleSteps returns the state of each step of the cycle: from the run's place for the open cycle, from its record
// for a closed one.
func cycleSteps(s Source, loop pipeline.PlanStage, at int, record rundir.PACycleRecord) []CycleStep {
	next := s.State.Next
	inside := next.Stage == at && next.Round == record.CycleNumber && s.State.Status != run.Done
	var out []CycleStep
	for i, step := range loop.Rounds[0].Steps {
		cs := CycleStep{Name: stepName(step)}
		switch {
		case inside && i < next.Step, !inside && s.recorded(step, record):
			cs.At = StepDone
		case !inside:
			cs.At = StepSkipped
		case i == next.Step && s.State.Status == run.Running:
			cs.At = StepRunning
		default:
			cs.At = StepWaiting
		}
		out = append(out, cs)
	}
	return out
}

// recorded reports whether a closed cycle's record contains the step.
func (s Source) recorded(step pipeline.PlanStep, c rundir.PACycleRecord) bool {
	role, _ := s.Plan.Role(step.Role)
	switch {
	case step.Kind == pipeline.KindScreenshots:
		return c.ScreenshotCount > 0
	case step.Kind == pipeline.KindTogether:
		return len(c.Auditors) > 0
	case role.Gives == pipeline.GivesArtifact:
		return c.Refine != nil
	}
	return c.Weaver != nil
}

// stepName returns the name of a step: the common prefix of its members, or its role.
func stepName(step pipeline.PlanStep) string {
	name := roleOf(step)
	if step.Kind == pipeline.KindTogether {
		if shared := commonPrefix(step.Members); shared != "" {
			name = strings.TrimRight(shared, "-_ ") + "s"
		}
	}
	if step.ID != "" && step.Kind == pipeline.KindRun {
		name = step.ID
	}
	return Title(name)
}

func auditorsOf(all []rundir.AuditorRecord) []Auditor {
	var ids []string
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	shared := commonPrefix(ids)
	var out []Auditor
	for _, a := range all {
		out = append(out, Auditor{Name: strings.TrimPrefix(a.ID, shared), Score: a.Score})
	}
	return out
}

// commonPrefix returns the common prefix of all names up to a hyphen; empty for fewer than two names.
func commonPrefix(names []string) string {
	if len(names) < 2 {
		return ""
	}
	start := names[0][:strings.LastIndex(names[0], "-")+1]
	for _, n := range names {
		if !strings.HasPrefix(n, start) {
			return ""
		}
	}
	return start
}

// Title capitalizes a name.
func Title(s string) string { return run.Capital(s) }
