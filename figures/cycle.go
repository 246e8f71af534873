package figures

import (
	"maps"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Cycle is the round of the scoring stage that is under way, or the last one (TM-12).
type Cycle struct {
	Number, Max int
	Open        bool
	Before      *float64 // score of the cycle before
	Score       *float64 // of this one; nil: not yet, or none was found
	Target      *float64
	Met         bool
	Steps       []CycleStep
	Auditors    []Auditor // whose reports are there, in the order of their ids
}

// CycleStep is one step of a cycle.
type CycleStep struct {
	Name string // Screenshots, Auditors, Weaver, Refine
	At   StepState
}

// StepState says how far a step is.
type StepState string

// States of a step.
const (
	StepDone    StepState = "done"
	StepRuns    StepState = "runs"
	StepWaits   StepState = "waits"
	StepSkipped StepState = "skipped" // the cycle ended before it
)

// Auditor is one member of the group that looks at the pictures. Name is its id without what all of them share: A, B, C.
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

// Trend is the scores of the cycles in order, that of the open one included. Cycles without a score are left out.
func Trend(b rundir.PipelineState) []Point {
	var out []Point
	for _, c := range cycles(b) {
		if c.PAScore != nil {
			out = append(out, Point{Cycle: c.CycleNumber, Score: *c.PAScore, Met: c.MetThreshold})
		}
	}
	return out
}

// cycles gives the records of the cycles in order, with that of the open one.
func cycles(b rundir.PipelineState) []rundir.PACycleRecord {
	all := slices.Collect(maps.Values(b.PACycleRecords))
	if b.OpenCycle != nil {
		all = slices.DeleteFunc(all, func(c rundir.PACycleRecord) bool { return c.CycleNumber == b.OpenCycle.CycleNumber })
		all = append(all, *b.OpenCycle)
	}
	slices.SortFunc(all, func(x, y rundir.PACycleRecord) int { return x.CycleNumber - y.CycleNumber })
	return all
}

func cycleOf(s Source) *Cycle {
	all := cycles(s.Records)
	if len(all) == 0 {
		return nil
	}
	last := all[len(all)-1]
	c := &Cycle{
		Number: last.CycleNumber, Max: s.Records.MaxPACycles, Open: s.Records.OpenCycle != nil, Score: last.PAScore, Target: s.Records.PAScoreThreshold, Met: last.MetThreshold,
		Auditors: auditorsOf(last.Auditors),
	}
	if len(all) > 1 {
		c.Before = all[len(all)-2].PAScore
	}
	if loop, at, ok := s.loop(); ok {
		c.Steps = cycleSteps(s, loop, at, last)
	}
	return c
}

// cycleSteps says how far each step of the cycle is. Of the open cycle the state's place says it, of a closed one its record.
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
			cs.At = StepRuns
		default:
			cs.At = StepWaits
		}
		out = append(out, cs)
	}
	return out
}

// recorded says that a closed cycle's record shows the step as done.
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

// stepName is a step in one word: what its members share, or its role.
func stepName(step pipeline.PlanStep) string {
	name := roleOf(step)
	if step.Kind == pipeline.KindTogether {
		if shared := sharedStart(step.Members); shared != "" {
			name = strings.TrimRight(shared, "-_ ") + "s"
		}
	}
	if step.As != "" && step.Kind == pipeline.KindRun {
		name = step.As
	}
	return Title(name)
}

func auditorsOf(all []rundir.AuditorRecord) []Auditor {
	var ids []string
	for _, a := range all {
		ids = append(ids, a.ID)
	}
	shared := sharedStart(ids)
	var out []Auditor
	for _, a := range all {
		out = append(out, Auditor{Name: strings.TrimPrefix(a.ID, shared), Score: a.Score})
	}
	return out
}

// sharedStart is what all names begin with, up to and with a hyphen; empty for fewer than two.
func sharedStart(names []string) string {
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

// Title writes a name with a capital.
func Title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
