package view

import (
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Timing is the elapsed and remaining time of a run (TM-05).
type Timing struct {
	Elapsed   time.Duration  // from the start to now or the end, without pauses
	Paused    time.Duration  // total of the pauses
	Mean      *time.Duration // mean duration of a pass; nil: none has settled
	MeanSet   *time.Duration // mean duration of complete sets; nil: none
	Remaining *time.Duration // see [Remaining]
}

// Pause is a time in which a run was paused, waited for an answer, or had ended. To is zero while it lasts.
type Pause struct{ From, To time.Time }

func timingOf(s Source) Timing {
	return Timing{Mean: Mean(durations(s)), MeanSet: MeanSet(s), Remaining: Remaining(s)}
}

// elapsed returns the time from the start to now or the end without pauses, and the total of the pauses.
func elapsed(s Source, now time.Time) (worked, paused time.Duration) {
	from, ok := parse(s.Records.StartedAt)
	if !ok {
		return 0, 0
	}
	if s.Records.CompletedAt != nil {
		if over, ok := parse(*s.Records.CompletedAt); ok {
			now = over
		}
	}
	paused = PausedTime(s.Pauses, from, now)
	return max(0, now.Sub(from)-paused), paused
}

// PausedTime returns the total of the pauses between two times.
func PausedTime(pauses []Pause, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, r := range pauses {
		end := r.To
		if end.IsZero() || end.After(to) {
			end = to
		}
		if r.From.After(from) {
			from = r.From
		}
		if end.After(from) && r.From.Before(end) {
			sum += end.Sub(from)
			from = end // overlaps count once
		}
	}
	return sum
}

// numbered returns the numbers of the settled passes, in order.
func numbered(b rundir.PipelineState) []int {
	out := make([]int, 0, len(b.PassRecords))
	for _, r := range b.PassRecords {
		out = append(out, r.GlobalPassNumber)
	}
	slices.Sort(out)
	return out
}

func record(b rundir.PipelineState, number int) rundir.PassRecord {
	return b.PassRecords[strconv.Itoa(number)]
}

// durations returns those of the numbered passes, oldest first, or of the last eight passes of a pipeline that is
// reported by its stages, or has no numbered passes.
func durations(s Source) []time.Duration {
	var out []time.Duration
	for _, n := range numbered(s.Records) {
		out = append(out, time.Duration(record(s.Records, n).DurationMS)*time.Millisecond)
	}
	if s.State.Wording != run.WordingStages && (s.State.Passes.Total > 0 || len(out) > 0) {
		return out
	}
	out = nil
	for _, ms := range s.State.DurationsMS {
		out = append(out, time.Duration(ms)*time.Millisecond)
	}
	return out
}

// Mean returns the mean of durations, or nil for none.
func Mean(all []time.Duration) *time.Duration {
	if len(all) == 0 {
		return nil
	}
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	mean := sum / time.Duration(len(all))
	return &mean
}

// MeanSet returns the mean over all complete sets of the sum of their passes' durations.
func MeanSet(s Source) *time.Duration {
	spent := map[string]time.Duration{}
	for _, r := range s.Records.PassRecords {
		spent[r.SubsetID] += time.Duration(r.DurationMS) * time.Millisecond
	}
	var whole []time.Duration
	for _, set := range setsOf(s) {
		if set.Done == set.Total {
			whole = append(whole, spent[set.ID])
		}
	}
	return Mean(whole)
}

// Weighted returns the mean of the last eight durations with weights 8 (newest) to 1 (TM-06); of n under eight the
// newest has weight n. Nil for fewer than three.
func Weighted(all []time.Duration) *time.Duration {
	const window, fewest = 8, 3
	if len(all) < fewest {
		return nil
	}
	recent := all[max(0, len(all)-window):]
	var sum, weights time.Duration
	for i, d := range recent { // oldest first, with weight 1
		sum += d * time.Duration(i+1)
		weights += time.Duration(i + 1)
	}
	mean := sum / weights
	return &mean
}

// Remaining returns the remaining time (TM-06): the weighted mean of the last passes, times the remaining numbered
// passes plus the steps of remaining cycles (four per cycle of the seed's pipeline: screenshots, auditors, weaver,
// refine). It assumes that no loop ends early. Nil under three passes, while lanes work, and after the run.
func Remaining(s Source) *time.Duration {
	mean := Weighted(durations(s))
	if mean == nil || s.State.Status.Closed() || s.State.Lanes != nil {
		return nil
	}
	passes, cycles := remainingPasses(s)
	steps, _ := cycleSize(s)
	d := *mean * time.Duration(passes+cycles*steps)
	return &d
}

// remainingPasses returns the remaining numbered passes and cycles.
func remainingPasses(s Source) (passes, cycles int) {
	if s.State.Status == run.Done {
		return 0, 0
	}
	passes = max(0, s.State.Passes.Total-s.State.Passes.LastSettled)
	if _, at, ok := s.loop(); ok && s.State.Next.Stage > at {
		return passes, 0 // the loop ended before its last round
	}
	return passes, max(0, s.Records.MaxPACycles-s.Records.CompletedPACycles)
}

// cycleSize returns the number of consecutive steps and of calls per cycle: four and five without a plan.
func cycleSize(s Source) (steps, calls int) {
	loop, _, ok := s.loop()
	if !ok {
		return 4, 5
	}
	return size(loop.Rounds[0].Steps)
}

// size returns the number of consecutive steps and of calls.
func size(all []pipeline.PlanStep) (steps, calls int) {
	for _, step := range all {
		switch step.Kind {
		case pipeline.KindTogether:
			calls += len(step.Members)
		case pipeline.KindRole, pipeline.KindRun:
			calls++
		case pipeline.KindAsk:
			continue
		}
		steps++
	}
	return steps, calls
}

// remainingInLanes returns the remaining calls of the lanes of the current stage, each step of which takes one.
func remainingInLanes(s Source) (calls int) {
	l := s.State.Lanes
	stage, ok := s.stage()
	if l == nil || !ok || len(stage.Rounds) == 0 {
		return 0
	}
	steps := stage.Rounds[0].Steps
	_, each := size(steps)
	calls = (l.Count - l.Begun + len(l.Again)) * each
	for _, a := range s.Lanes {
		done := 0 // of one that an operator is asked about: it may begin again
		if a.Live != nil && a.Outcome == "" {
			if done = min(a.Live.Next.Step, len(steps)); a.Live.Next.Stage > l.Stage {
				done = len(steps)
			}
		}
		_, rest := size(steps[done:])
		calls += rest
	}
	return calls
}

// Duration formats a duration as 4h 23m, 4m 32s or 42s (TM-13).
func Duration(d time.Duration) string {
	s := int(max(0, d).Seconds())
	switch {
	case s >= 3600:
		return strconv.Itoa(s/3600) + "h " + strconv.Itoa(s/60%60) + "m"
	case s >= 60:
		return strconv.Itoa(s/60) + "m " + strconv.Itoa(s%60) + "s"
	}
	return strconv.Itoa(s) + "s"
}
