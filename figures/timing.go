package figures

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Timing is how long a run has taken and will take (TM-05).
type Timing struct {
	Elapsed   time.Duration  // from the start to now or the end, without the times in which it rested
	Rested    time.Duration  // those times
	Mean      *time.Duration // of a pass: the mean of their durations; nil: none has settled
	MeanSet   *time.Duration // of a set: the mean over whole sets of the sum of their passes; nil: none is whole
	Remaining *time.Duration // see [Remaining]
}

// Rest is a time in which a run waited for a person, or was over and had not been taken up again. To is zero while it lasts.
type Rest struct{ From, To time.Time }

func timingOf(s Source, now time.Time) Timing {
	var t Timing
	if from, ok := parse(s.Records.StartedAt); ok {
		end := now
		if s.Records.CompletedAt != nil {
			if over, ok := parse(*s.Records.CompletedAt); ok {
				end = over
			}
		}
		t.Rested = Rested(s.Rests, from, end)
		t.Elapsed = max(0, end.Sub(from)-t.Rested)
	}
	t.Mean, t.MeanSet, t.Remaining = Mean(durations(s)), MeanSet(s), Remaining(s)
	return t
}

// Rested adds up the rests between two times.
func Rested(rests []Rest, from, to time.Time) time.Duration {
	var sum time.Duration
	for _, r := range rests {
		end := r.To
		if end.IsZero() || end.After(to) {
			end = to
		}
		if r.From.After(from) {
			from = r.From
		}
		if end.After(from) && r.From.Before(end) {
			sum += end.Sub(from)
			from = end // rests that overlap count once
		}
	}
	return sum
}

// numbered gives the records of the numbered passes, in order.
func numbered(b rundir.PipelineState) []rundir.PassRecord {
	return slices.SortedFunc(maps.Values(b.PassRecords), func(x, y rundir.PassRecord) int { return x.GlobalPassNumber - y.GlobalPassNumber })
}

// durations are those of the numbered passes, oldest first. A pipeline without any has those of its last eight passes.
func durations(s Source) []time.Duration {
	var out []time.Duration
	for _, r := range numbered(s.Records) {
		out = append(out, time.Duration(r.DurationMS)*time.Millisecond)
	}
	if s.Records.TotalCorpusPasses > 0 || len(out) > 0 {
		return out
	}
	for _, ms := range s.State.DurationsMS {
		out = append(out, time.Duration(ms)*time.Millisecond)
	}
	return out
}

// Mean is the mean of durations; nil of none.
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

// MeanSet is the mean, over the sets whose passes have all settled, of the sum of their passes' durations.
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

// Weighted is the mean of the last eight durations, the newest with weight 8, the one before with 7 and so on (TM-06); of n under eight the newest has weight
// n. Nil under three: that is too little to go by.
func Weighted(all []time.Duration) *time.Duration {
	const window, fewest = 8, 3
	if len(all) < fewest {
		return nil
	}
	recent := all[max(0, len(all)-window):]
	var sum, weights time.Duration
	for i, d := range recent { // oldest first: its weight is 1
		sum += d * time.Duration(i+1)
		weights += time.Duration(i + 1)
	}
	mean := sum / weights
	return &mean
}

// Remaining is the time that is left (TM-06): the weighted mean of the last passes, times the numbered passes that are left, plus as many steps as one cycle has
// (four in the seed's pipeline: pictures, auditors, weaver, refine) for every cycle that may still come. It is what is left if no loop ends early. Nil under three passes,
// and when the run is over.
func Remaining(s Source) *time.Duration {
	mean := Weighted(durations(s))
	if mean == nil || s.State.Status.Closed() {
		return nil
	}
	passes, cycles := left(s)
	steps, _ := cycleSize(s)
	d := *mean * time.Duration(passes+cycles*steps)
	return &d
}

// left is how many numbered passes and how many cycles may still come.
func left(s Source) (passes, cycles int) {
	if s.State.Status == run.Done {
		return 0, 0
	}
	passes = max(0, s.Records.TotalCorpusPasses-s.Records.LastCompletedCorpusPass)
	if _, at, ok := s.loop(); ok && s.State.Next.Stage > at {
		return passes, 0 // the loop ended before its last round
	}
	return passes, max(0, s.Records.MaxPACycles-s.Records.CompletedPACycles)
}

// cycleSize is how many steps a cycle has, one after the other, and how many calls: four and five, unless the plan says otherwise.
func cycleSize(s Source) (steps, calls int) {
	loop, _, ok := s.loop()
	if !ok {
		return 4, 5
	}
	for _, step := range loop.Rounds[0].Steps {
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

// Duration writes a duration as 4h 23m, 4m 32s or 42s (TM-13).
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
