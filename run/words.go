package run

// Means says in a sentence what a status means, and why a paused run rests.
func Means(s Status, reason string) string {
	switch s {
	case Pending:
		return "The run is claimed and has not begun."
	case Running:
		return "The pipeline is at work, or goes on by itself from the last settled pass when a worker is there again."
	case Replaying:
		return "The run goes through the recorded part of another run; then it works on its own."
	case Paused:
		return "The run rests: " + pausedBy(reason) + "."
	case AwaitingPhaseHandoff:
		return "A phase hands its work over and waits for your decision."
	case AwaitingGateDecision:
		return "A check, or the delivery, waits for your decision."
	case AwaitingHumanReview:
		return "What the run made waits for your review."
	case Done:
		return "The run is through."
	case Halted:
		return "An operator or a policy ended the run."
	case Cancelled:
		return "The run was called off."
	case Failed:
		return "The run failed; a question that nobody decided is kept."
	case Interrupted:
		return "The run's workflow ended without a word of its own; a question that nobody decided is kept."
	}
	return "No event says yet where the run stands."
}

func pausedBy(reason string) string {
	switch reason {
	case UserRequested:
		return "somebody asked for a pause"
	case UserReview:
		return "a set is through and may be looked at"
	case BudgetThreshold:
		return "the budget is used up"
	case QualityGate:
		return "the score is not good enough"
	case PassFailed:
		return "a pass failed in all its attempts"
	case ConsecutiveFailures:
		return "several passes failed one after another"
	case DiskFull:
		return "the disk is full"
	}
	return "somebody or something asked for a pause"
}

// Next says in a sentence what may be done about a run.
func Next(s Status, reason string) string {
	switch s {
	case Pending:
		return "Watch it, or cancel it."
	case Running, Replaying:
		return "Watch it, pause it or cancel it; there is nothing to decide."
	case Paused:
		return cleared(reason) + "resume it; or revert it, or cancel it."
	case AwaitingPhaseHandoff, AwaitingGateDecision, AwaitingHumanReview:
		return "Decide; the decision lets it go on. Or cancel it."
	case Done:
		return "Read the results; follow it up, fork it, replay it or promote it again. It is never resumed."
	case Halted:
		return "Inspect it, then follow it up; it is resumed or reverted only by force and with a reason."
	case Cancelled:
		return "Follow it up or fork it; or resume it in a new epoch."
	case Failed:
		return "Inspect it first; decide what is undecided; then resume it in a new epoch, revert it or follow it up."
	case Interrupted:
		return "Decide what is undecided; then resume it in a new epoch, or cancel it. Repair its state if a check finds it torn."
	}
	return "Diagnose it."
}

// cleared says how the cause of a pause is cleared.
func cleared(reason string) string {
	switch reason {
	case UserReview:
		return "Look at what it made, then "
	case BudgetThreshold:
		return "Raise the budget, then "
	case QualityGate:
		return "See why the score is low, then "
	case PassFailed, ConsecutiveFailures:
		return "See what the passes failed with, then "
	case DiskFull:
		return "Make room on the disk, then "
	}
	return "When you are ready, "
}
