package run

// Kinds of events about the run itself.
const (
	KindRunStart        Kind = "run.start"
	KindRunEnd          Kind = "run.end"
	KindRunInterrupted  Kind = "run.interrupted"
	KindRunReplaying    Kind = "run.replaying"
	KindRunPaused       Kind = "run.paused"
	KindRunResumed      Kind = "run.resumed"
	KindRunLimited      Kind = "run.limited"
	KindRunUnlimited    Kind = "run.unlimited"
	KindRunReverted     Kind = "run.reverted"
	KindRunAmended      Kind = "run.amended"
	KindBudgetWarning   Kind = "budget.warning"
	KindBudgetExceeded  Kind = "budget.exceeded"
	KindBudgetRaised    Kind = "budget.raised"
	KindDecisionRefused Kind = "decision.refused"
	KindErrorNoted      Kind = "error.noted"
	KindJournalDamaged  Kind = "journal.damaged"
)

// statusKinds change the status.
func statusKinds() []kindRow {
	return []kindRow{
		{
			kind: KindRunStart, effect: "running",
			fold: (*folder).start, texts: about((*Log).started, noHeadline, noStory),
		},
		{
			kind: KindRunResumed, effect: "running", traits: traits{started: true},
			fold:  (*folder).resume,
			texts: about((*Log).resumed, noHeadline, resumedStory),
		},
		{
			kind: KindRunReplaying, effect: "replaying", traits: traits{started: true},
			fold:  func(f *folder, _ *Event) { f.become(Replaying, "") },
			texts: about[Source](noLog, noHeadline, noStory),
		},
		{
			kind: KindRunPaused, effect: "paused, with its reason", traits: traits{started: true},
			fold:     (*folder).pause,
			occasion: pauseOccasion, texts: about((*Log).paused, noHeadline, pausedStory),
		},
		{
			kind: KindRunLimited, effect: "waiting_limit, with the kind of the limit", traits: traits{started: true},
			fold: (*folder).limit, occasion: limitOccasion,
			texts: about((*Log).limited, limitedHeadline, limitedStory),
		},
		{
			kind: KindRunUnlimited, effect: "running", traits: traits{started: true}, fold: (*folder).endLimit,
			texts: about((*Log).unlimited, noHeadline, unlimitedStory),
		},
		{
			kind: KindRunEnd, effect: "the status that it names; another word than those of the table changes nothing",
			traits: traits{started: true},
			fold:   (*folder).end, occasion: endOrFailure,
			texts: about((*Log).ended, noHeadline, noStory),
		},
		{
			kind: KindRunInterrupted, effect: "interrupted", traits: traits{started: true},
			fold: (*folder).interrupt, texts: about(noLog, noHeadline, interruptedStory),
		},
		{
			kind: KindRunReverted, effect: "the state that it carries",
			fold: (*folder).revert, record: (*Recorder).reverted,
			texts: about((*Log).reverted, revertHeadline, revertedStory),
		},
	}
}

// controlKinds are about the run and leave its status alone.
func controlKinds() []kindRow {
	return []kindRow{
		{
			kind: KindRunAmended, traits: traits{started: true}, fold: (*folder).amend,
			texts: about((*Log).amended, amendedHeadline, amendedStory),
		},
		{
			kind: KindBudgetWarning, fold: func(f *folder, _ *Event) { f.Warned = true }, occasion: always("budget"),
			texts: about((*Log).budgetWarned, budgetHeadline, noStory),
		},
		{kind: KindBudgetExceeded, fold: (*folder).exceedBudget, texts: about[BudgetEvent](noLog, noHeadline, noStory)},
		{kind: KindBudgetRaised, fold: (*folder).raiseBudget, texts: about((*Log).budgetRaised, noHeadline, budgetStory)},
		{kind: KindDecisionRefused, fold: (*folder).countRefused, texts: about((*Log).refused, noHeadline, refusedStory)},
		{kind: KindRunSteered, fold: (*folder).steer, texts: about((*Log).steered, steeredHeadline, steeredStory)},
		{kind: KindErrorNoted, fold: (*folder).noteError, texts: about((*Log).noted, errorHeadline, noStory)},
		{kind: KindJournalDamaged, fold: (*folder).noteDamage, texts: about((*Log).damaged, damageHeadline, noStory)},
	}
}

// always is the occasion of an event that is always one.
func always(word string) func(State) string { return func(State) string { return word } }

// pauseOccasion leaves out the waits for a pull request: nothing is to be done about them.
func pauseOccasion(after State) string {
	if after.Reason == ForChecks || after.Reason == ForReview {
		return ""
	}
	return "pause"
}

func endOrFailure(after State) string {
	if after.Status == Failed {
		return "failure"
	}
	return "end"
}
