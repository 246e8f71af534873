// Package figures computes what people are shown of a run: progress, times, costs, quality, scores. The terminal and the pages for people take their numbers
// from here, so that no two of them differ.
//
// Everything but [Read] is pure: the figures of a moment follow from what the run directory recorded and from the clock that is handed in. Nothing
// is asked of a server. A figure that cannot be known is left out (a nil pointer, an empty list), never guessed.
//
// The formulas are those of requirement 002 §7.3 and §7.4; each stands at its function, with the row of the checklist.
package figures

import (
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Source is a run directory at one moment.
type Source struct {
	State   run.State            // small state, with the lines that meta.json has not seen
	Records rundir.PipelineState // state.json, as of meta.json
	Plan    *pipeline.Plan       // nil: it could not be read; what only it says is left out
	Rests   []Rest               // when the run waited for a person or was over, oldest first
	Recent  []run.Event          // the last events, oldest first
}

// Figures are the figures of a run at one moment.
type Figures struct {
	Progress Progress
	Flights  []Flight
	Timing   Timing
	Cost     Cost
	Quality  Quality
	Sets     []Set
	Stages   []Stage
	Last     []Pass    // the last three numbered passes, oldest first
	Cycle    *Cycle    // of the repeated stage that scores; nil: not there yet
	Trend    []Point   // a point for each cycle that has a score
	Settled  []Settled // what settled last, of every kind of pass, oldest first
}

// Of computes the figures of a moment.
func Of(s Source, now time.Time) Figures {
	return Figures{
		Progress: progressOf(s), Flights: flightsOf(s, now), Timing: timingOf(s, now), Cost: costOf(s), Quality: qualityOf(s), Sets: setsOf(s),
		Stages: stagesOf(s), Last: lastOf(s.Records), Cycle: cycleOf(s), Trend: Trend(s.Records), Settled: settledOf(s.Recent),
	}
}

// step is the step of the plan that the run stands at; false: it is between two stages, through, or the plan is not there.
func (s Source) step() (pipeline.PlanStage, pipeline.PlanRound, pipeline.PlanStep, bool) {
	stage, ok := s.stage()
	if !ok {
		return stage, pipeline.PlanRound{}, pipeline.PlanStep{}, false
	}
	round, at := stage.RoundAt(s.State.Next.Round), s.State.Next.Step
	if at < 0 || at >= len(round.Steps) {
		return stage, round, pipeline.PlanStep{}, false
	}
	return stage, round, round.Steps[at], true
}

// stage is the stage that the run stands in.
func (s Source) stage() (pipeline.PlanStage, bool) {
	if at := s.State.Next.Stage; s.Plan != nil && at >= 0 && at < len(s.Plan.Stages) {
		return s.Plan.Stages[at], true
	}
	return pipeline.PlanStage{}, false
}

// loop is the last repeated stage of the plan, which the records call cycles, and its place among the stages.
func (s Source) loop() (pipeline.PlanStage, int, bool) {
	if s.Plan == nil {
		return pipeline.PlanStage{}, 0, false
	}
	for i := len(s.Plan.Stages) - 1; i >= 0; i-- {
		if s.Plan.Stages[i].Kind == pipeline.StageRepeat {
			return s.Plan.Stages[i], i, true
		}
	}
	return pipeline.PlanStage{}, 0, false
}
