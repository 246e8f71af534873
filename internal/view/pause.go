package view

import (
	"fmt"
	"strings"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// WhyPaused describes why a run does not continue, and which key helps; empty if it continues or has an open
// question.
func WhyPaused(s run.State, effective run.Status) string {
	_, undecided := s.Asks()
	switch {
	case undecided && !s.Status.Settled() && effective.Closed():
		return fmt.Sprintf("The run is %s, and this question is open; a decision resumes the run.", effective)
	case undecided && !s.Status.Settled(), effective.Class() == run.Live:
		return ""
	case effective == run.Done:
		return doneText(s) + ScoreText(s) + deliveryText(s)
	case effective == run.Paused:
		return pausedText(s)
	case effective == run.WaitingLimit:
		return run.Means(effective, s.Reason) + ProblemText(s) + "\nPress r to try at once, p to pause."
	case effective == run.Halted:
		return run.Means(effective, s.Reason) + reasonText(s) + "\nPress r to resume it, with a reason."
	}
	why := run.Means(effective, s.Reason) + reasonText(s)
	if p := s.Problem; p != nil {
		why += fmt.Sprintf("\nLast error: %s — %s", p.Category, p.Message)
	}
	return why + "\nPress r to resume it in a new epoch; answered calls are not paid for again."
}

func reasonText(s run.State) string {
	if s.Reason == "" {
		return ""
	}
	return " Reason: " + s.Reason + "."
}

// doneText describes the result of a finished run.
func doneText(s run.State) string {
	var parts []string
	if s.Passes.Total+s.Rounds > 0 || s.Wording == run.WordingStages {
		parts = append(parts, WorkText(s))
	}
	if s.Spent.Calls > 0 {
		parts = append(parts, run.Plural(s.Spent.Calls, "call"), s.CostWords())
	}
	if len(parts) == 0 {
		return "Finished."
	}
	return strings.Join(parts, ", ") + "."
}

func deliveryText(s run.State) string {
	if s.Delivery == nil {
		return ""
	}
	text := s.Delivery.Text()
	return " " + strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// Result is what a finished run leaves to the user: its delivery or its artifact; empty: neither.
func Result(d rundir.Dir, s run.State) string {
	switch {
	case s.Status != run.Done:
		return ""
	case s.Delivery != nil:
		return s.Delivery.Text()
	case s.Artifact == nil:
		return ""
	}
	for line, err := range d.Lines(0) {
		if err != nil || line.Err != nil {
			return ""
		}
		var start run.RunStart
		if line.Event.Decode(&start); line.Event.Kind == run.KindRunStart && start.Artifact != nil {
			return d.Path(rundir.ArtifactFile(start))
		}
	}
	return ""
}

func pausedText(s run.State) string {
	means := run.Means(run.Paused, s.Reason)
	switch s.Reason {
	case run.BudgetThreshold:
		if s.Raised {
			return fmt.Sprintf("The budget is now %s. Press r to resume.", s.Budget.Words())
		}
		return fmt.Sprintf("%s %s.\nPress b to raise it, then r to resume.", means, s.BudgetWords())
	case run.DiskFull:
		return strings.TrimSuffix(means, ".") + ProblemText(s) + ".\nFree space there, then press r to resume."
	case run.PassFailed, run.GateFailed, run.SetupFailed, run.ConsecutiveFailures:
		if s.Failure == nil && s.Problem != nil {
			means = strings.TrimSuffix(means, ".") + ProblemText(s)
		}
		if f := s.Failure; f != nil {
			means += "\n" + f.Text(s.Wording)
		}
		return means + "\nFix the cause, then press r to resume."
	}
	return means + "\nPress r to resume."
}

// WorkText counts what a finished run did: numbered passes and rounds, or stages and rounds.
func WorkText(s run.State) string {
	switch {
	case s.Wording == run.WordingStages:
		return s.Progress()
	case s.Passes.Total == 0:
		return run.Plural(s.Rounds, s.Wording.Words().Round)
	}
	return fmt.Sprintf("%d of %d passes, %s", s.Passes.LastSettled, s.Passes.Total,
		run.Plural(s.Rounds, s.Wording.Words().Round))
}

// ProblemText returns the last error of a run, the only record of the cause of such a pause. The last lines of a command
// are indented.
func ProblemText(s run.State) string {
	if s.Problem == nil {
		return ""
	}
	return ": " + strings.ReplaceAll(terminal.Safe(strings.TrimSpace(s.Problem.Message)), "\n", "\n  ")
}

// ScoreText is the last score in a sentence.
func ScoreText(s run.State) string {
	if s.Score == nil {
		return ""
	}
	return fmt.Sprintf(" Score %.1f.", *s.Score)
}
