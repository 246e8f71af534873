package run

import (
	"fmt"
	"strings"
)

// Story is one sentence about something that was done to a run from outside of its pipeline. The evidence of a run
// lists them.
type Story struct {
	What string // empty: nothing was done
	By   string
	Note string // of who did it
}

// StoryOf is what an event adds to the evidence of its run.
func StoryOf(e Entry) Story {
	if r := kinds()[e.Kind]; r != nil {
		return r.story(&e)
	}
	return Story{}
}

// noStory is the story of events of the pipeline itself.
func noStory[P any](*Entry, P) Story { return Story{} }

func pausedStory(_ *Entry, p RunPaused) Story {
	return Story{What: "paused: " + p.Reason, By: p.By, Note: strings.TrimSpace(p.Detail)}
}

func resumedStory(_ *Entry, p RunResumed) Story {
	note := strings.TrimSpace(strings.TrimSpace(p.Note) + " " + p.Why)
	what := "resumed"
	if p.Waits {
		what = "continued from the directory"
	}
	return Story{What: fmt.Sprintf("%s (epoch %d)", what, p.Epoch), By: p.By, Note: note}
}

func limitedStory(e *Entry, _ RunLimited) Story {
	return Story{What: e.After.LimitText(Clock{})}
}

func unlimitedStory(_ *Entry, p RunUnlimited) Story {
	return Story{What: "continued: " + p.why(), By: p.By, Note: strings.TrimSpace(p.Note)}
}

func interruptedStory(_ *Entry, p RunInterrupted) Story {
	return Story{What: "interrupted: " + p.Reason}
}

func revertedStory(_ *Entry, p RunReverted) Story {
	return Story{What: fmt.Sprintf("reverted to event %d (%s)", p.To, p.Cause)}
}

func budgetStory(_ *Entry, p BudgetEvent) Story {
	what := "budget raised to " + p.Budget.Words()
	return Story{What: what, By: p.By, Note: strings.TrimSpace(p.Note)}
}

func refusedStory(_ *Entry, p DecisionRefused) Story {
	if p.Count > 1 {
		what := fmt.Sprintf("refused %d messages, the last one %s: %s", p.Count, p.Verb, p.Reason)
		return Story{What: what, By: p.By}
	}
	return Story{What: "refused " + p.Verb + ": " + p.Reason, By: p.By}
}

// artifactStory is about an artifact that no call has changed: it was edited by hand.
func artifactStory(_ *Entry, p ArtifactUpdated) Story {
	if p.Cause == "" {
		return Story{}
	}
	return Story{What: "artifact " + p.Cause + " by hand"}
}

func workspaceStory(_ *Entry, p WorkspaceUpdated) Story {
	if p.Cause == "" || p.Cause == CauseProjects {
		return Story{}
	}
	return Story{What: fmt.Sprintf("workspace %s by hand: %s", p.Cause, Plural(p.Changed, "file"))}
}

// answerStory is about an answer that did not count. Those that count are listed with their questions.
func answerStory(e *Entry, p QuestionDecided) Story {
	if e.After.InvalidTransition == "" {
		return Story{}
	}
	return Story{What: "an answer that did not count: " + p.Action, By: p.DecidedBy, Note: p.Feedback}
}
