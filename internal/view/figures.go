package view

import (
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Source is the state of a run directory at one moment.
type Source struct {
	State   run.State            // including lines after meta.json
	Records rundir.PipelineState // state.json, as of meta.json
	Plan    *pipeline.Plan       // nil: unreadable; its figures are omitted
	Pauses  []Pause              // pauses, questions and ends, oldest first
	Recent  []run.Event          // the last events, oldest first
	Lanes   []rundir.Lane        // that have not ended, in the order of the list
}

// Figures are the numbers shown for a run at one moment: progress, times, costs, quality, scores. An unknown figure is
// omitted (nil, an empty list) and not guessed. The formulas are those of requirement 002 §7.3 and §7.4; each function
// names its row of the checklist.
type Figures struct {
	Words    run.Vocabulary
	Progress Progress
	InFlight []InFlightCall
	Lanes    []LaneNow // that have not ended, in the order of the list
	Timing   Timing
	Cost     Cost
	Quality  Quality
	Sets     []Set
	Stages   []Stage
	Last     []Numbered // the last three numbered passes, oldest first
	Cycle    *Cycle     // of the repeated stage that scores; nil: not begun
	Trend    []Point    // one point per cycle with a score
	Settled  []Settled  // last settled passes of every kind, oldest first
}

// Of computes the figures of a moment.
func Of(s Source, now time.Time) Figures {
	return Figures{
		Words:    s.State.Wording.Words(),
		Progress: progressOf(s), Timing: timingOf(s), Cost: costOf(s), Quality: qualityOf(s), Sets: setsOf(s),
		Stages: stagesOf(s), Last: lastOf(s.Records), Cycle: cycleOf(s),
		Trend: Trend(s.Records), Settled: settledOf(s.Recent, s.State.Wording),
	}.Tick(s, now)
}

// Tick returns the figures of a later moment without new records.
func (f Figures) Tick(s Source, now time.Time) Figures {
	f.InFlight, f.Lanes = inFlightOf(s, now), lanesOf(s, now)
	f.Timing.Elapsed, f.Timing.Paused = elapsed(s, now)
	return f
}

// step returns the current step of the plan; false: between two stages, finished, or without a plan.
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

// stage returns the current stage.
func (s Source) stage() (pipeline.PlanStage, bool) {
	if at := s.State.Next.Stage; s.Plan != nil && at >= 0 && at < len(s.Plan.Stages) {
		return s.Plan.Stages[at], true
	}
	return pipeline.PlanStage{}, false
}

// loop returns the last repeated stage of the plan, which the records call cycles, and its index.
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
