package run

// Means is the meaning of a status, and the reason of a pause, in a sentence.
func Means(s Status, reason string) string {
	r := s.row()
	if s == Paused {
		return r.means + pausedBy(reason) + "."
	}
	if s == WaitingLimit && reason == limitReason(LimitAtOnce) {
		return "The run waits for the turn of its call."
	}
	return r.means
}

func pausedBy(reason string) string {
	switch reason {
	case UserRequested:
		return "an operator asked for it"
	case UserReview:
		return "a set is completed and ready for review"
	case BudgetThreshold:
		return "the budget does not cover the next call"
	case QualityGate:
		return "the score is below the threshold"
	case PassFailed:
		return "a pass failed in all its attempts"
	case GateFailed:
		return "the command of a step was not found or could not be executed"
	case ConsecutiveFailures:
		return "several consecutive passes failed"
	case DiskFull:
		return "the disk is full"
	case SetupFailed:
		return "the commands that set up the workspace failed"
	case ForChecks:
		return "the checks of the pull request have not ended"
	case ForReview:
		return "the pull request is neither merged nor closed"
	}
	return "a pause was requested"
}

// Advice is what to do about a run, in a sentence: where an error stopped it, by the category of the error.
func (s State) Advice() string {
	if c := s.StoppedBy(); c != "" && s.Reason != GateFailed { // whose agent is the shell
		return c.Info().Advice + ", then " + s.Status.row().advice
	}
	return s.NextStep()
}

// NextStep is [Next] for a state, which knows whether the budget was raised since the pause for it.
func (s State) NextStep() string {
	if s.Raised && s.Status == Paused && s.Reason == BudgetThreshold {
		return cleared("") + s.Status.row().advice
	}
	return Next(s.Status, s.Reason)
}

// Next is what may be done about a run, in a sentence.
func Next(s Status, reason string) string {
	r := s.row()
	if s == Paused {
		return cleared(reason) + r.advice
	}
	return r.advice
}

// cleared is how the cause of a pause is removed.
func cleared(reason string) string {
	switch reason {
	case UserReview:
		return "Review the set, then "
	case BudgetThreshold:
		return CategoryBudgetExceeded.Info().Advice + ", then "
	case QualityGate:
		return "Find out why the score is low, then "
	case PassFailed, ConsecutiveFailures:
		return "Check why the passes failed, then "
	case GateFailed:
		return "Install what the command needs or correct it, then "
	case SetupFailed:
		return "Correct the setup of the workspace in the pipeline or the source, then "
	case DiskFull:
		return CategoryFileIO.Info().Advice + ", then "
	case ForChecks, ForReview:
		return "The run continues when the pull request changes; or "
	}
	return "When you are ready, "
}
