package rundir

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/run"
)

// maxDiagnostics is the limit of requirement 002 §1.5, in characters.
const maxDiagnostics = 2000

// outcome is what an event decides about errors. Whether an attempt's error was recovered from is only known later, so
// it stays pending until its pass settles or pauses.
type outcome struct {
	lines []ErrorRecord // of errors.jsonl: every error
	// of errorHistory: the same, but one for all attempts of a start in which none succeeded
	records []ErrorRecord
	pending []ErrorRecord
}

// decideErrors returns what one event decides about the errors that were pending, and its own.
func decideErrors(e run.Event, t run.Wording, pending []ErrorRecord) outcome {
	o := outcome{pending: pending}
	switch e.Kind {
	case run.KindRunStart:
		var p run.RunStart
		e.Decode(&p)
		for _, found := range p.Found {
			found.Category = found.Category.In(t)
			o.add(noted(e, found))
		}
	case run.KindPassAttempt:
		var p run.PassAttempt
		e.Decode(&p)
		if p.Counts() {
			o.wait(ErrorRecord{Timestamp: e.TS, Context: p.Context(t), Category: p.Category.In(t), Message: p.Message,
				Diagnostics: p.Diagnostics})
		}
	case run.KindPassEnd:
		var p run.PassEnd
		e.Decode(&p)
		o.settle(p.Context(t), recovery(p.Outcome == run.CategoryOK, p.Attempts))
	case run.KindShotsAttempt:
		var p run.ShotsAttempt
		e.Decode(&p)
		o.wait(ErrorRecord{Timestamp: e.TS, Context: t.ShotsContext(p.Dir, p.Round),
			Category: run.CategoryScreenshotFailed, Message: p.Message})
	case run.KindScreenshots:
		var p run.Screenshots
		e.Decode(&p)
		o.settle(t.ShotsContext(p.Dir, p.Round), recovery(!p.Degraded, p.Attempts))
	case run.KindBudgetExceeded:
		var p run.BudgetEvent
		e.Decode(&p)
		o.add(noted(e, run.ErrorNoted{Category: run.CategoryBudgetExceeded, Message: p.Exceeded()}))
	case run.KindRunReverted:
		var p run.RunReverted
		if e.Decode(&p); p.Checkpoint != "" && p.State != nil {
			o.add(revertedError(e, p, t))
		}
	case run.KindErrorNoted:
		var p run.ErrorNoted
		e.Decode(&p)
		p.Category = p.Category.In(t)
		o.add(noted(e, p))
	case run.KindJournalDamaged:
		var p run.JournalDamage
		e.Decode(&p)
		o.add(noted(e, run.ErrorNoted{Category: run.CategoryStateCorruption, Message: p.String(),
			Recovered: p.Repaired}))
	case run.KindRunPaused:
		o.rest(e)
	case run.KindRunEnd, run.KindRunInterrupted:
		o.end(e)
	}
	return o
}

// wait keeps an error until its outcome is known. The slice that was given is not changed.
func (o *outcome) wait(r ErrorRecord) { o.pending = append(slices.Clip(o.pending), r) }

func (o *outcome) add(r ErrorRecord) {
	o.lines, o.records = append(o.lines, r), append(o.records, r)
}

// recovery returns the attempt that recovered from earlier ones; nil: they were not recovered from.
func recovery(recovered bool, attempt int) *int {
	if !recovered {
		return nil
	}
	return &attempt
}

// settle decides on all pending errors of one context; by is the attempt that recovered from them.
func (o *outcome) settle(of string, by *int) {
	rest, mine := []ErrorRecord{}, []ErrorRecord{}
	for _, r := range o.pending {
		if r.Context != of {
			rest = append(rest, r)
			continue
		}
		r.Recovered, r.RecoveredAtAttempt = by != nil, by
		mine = append(mine, r)
	}
	if len(mine) == 0 {
		return
	}
	o.pending, o.lines = rest, append(o.lines, mine...)
	if by == nil {
		mine = []ErrorRecord{exhausted(mine)}
	}
	o.records = append(o.records, mine...)
}

// exhausted makes one record of the attempts of a start none of which succeeded: it is one failure of the pass. Its
// diagnostics list the error of each attempt; each also has its own line in errors.jsonl.
func exhausted(attempts []ErrorRecord) ErrorRecord {
	r := attempts[len(attempts)-1]
	if len(attempts) == 1 {
		return r
	}
	var text strings.Builder
	for i, a := range attempts {
		fmt.Fprintf(&text, "attempt %d: %s: %s\n", i+1, a.Category, clip(a.Message, maxDiagnostics/4/len(attempts)))
	}
	r.Diagnostics = clip(text.String()+r.Diagnostics, maxDiagnostics)
	return r
}

// clip keeps the first n characters.
func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:max(0, n-1)]) + "…"
	}
	return s
}

// giveUp settles the errors that can no longer be recovered from.
func (o *outcome) giveUp() {
	for len(o.pending) > 0 {
		o.settle(o.pending[0].Context, nil)
	}
}

// rest records a pause. One because of a failure settles what it is about; a full disk is an error even where no call
// has met it, and no call has met a failed setup.
func (o *outcome) rest(e run.Event) {
	var p run.RunPaused
	e.Decode(&p)
	switch p.Reason {
	case run.PassFailed, run.GateFailed, run.ConsecutiveFailures:
		o.giveUp()
	case run.SetupFailed:
		o.add(noted(e, run.ErrorNoted{Category: run.CategoryFileIO, Message: p.Detail}))
	case run.DiskFull:
		for _, r := range slices.Clone(o.pending) {
			if r.Category == run.CategoryFileIO {
				o.settle(r.Context, nil)
			}
		}
		if len(o.records) == 0 {
			o.add(noted(e, run.ErrorNoted{Category: run.CategoryFileIO, Message: p.Detail}))
		}
	}
}

// end is the end of an epoch. A run that failed did so for a reason that none of the other categories is for.
func (o *outcome) end(e run.Event) {
	o.giveUp()
	var p run.RunEnd
	e.Decode(&p)
	if e.Kind == run.KindRunEnd && p.Status == run.Failed {
		o.add(noted(e, run.ErrorNoted{Category: run.CategoryUnknown, Message: p.Reason}))
	}
}

// noted is the record of an error that no attempt is to blame for.
func noted(e run.Event, p run.ErrorNoted) ErrorRecord {
	r := ErrorRecord{
		Timestamp: e.TS, Context: run.Where(p.Context, e.Phase), Category: p.Category, Message: p.Message,
		Recovered: p.Recovered, Diagnostics: clip(p.Diagnostics, maxDiagnostics),
	}
	if p.Recovered && p.Attempt > 0 {
		r.RecoveredAtAttempt = &p.Attempt
	}
	return r
}

// reverted is the record of a revert by an operator (requirement 002 §5.4).
func revertedError(e run.Event, p run.RunReverted, t run.Wording) ErrorRecord {
	return ErrorRecord{
		Timestamp: e.TS, Context: RevertContext + p.Checkpoint, Category: run.CategoryUnknown, Recovered: true,
		Diagnostics: fmt.Sprintf("Previous cost: $%.2f", p.WasUSD),
		Message:     fmt.Sprintf("Pipeline reverted to checkpoint %s (%s)", p.Checkpoint, placeText(p.State, t)),
	}
}

func placeText(s *run.State, t run.Wording) string {
	if t == run.WordingStages {
		return s.Progress()
	}
	return fmt.Sprintf("pass %d, PA cycle %d", s.Passes.LastSettled, s.Rounds)
}
