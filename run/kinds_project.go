package run

import (
	"cmp"
	"fmt"
	"strings"
)

// Kinds of events about the projects of a run.
const (
	KindProjectStarted   Kind = "project.started"
	KindProjectEnded     Kind = "project.ended"
	KindProjectSkipped   Kind = "project.skipped"
	KindProjectDelivered Kind = "project.delivered"
)

// projectKinds leave the status alone.
func projectKinds() []kindRow {
	return []kindRow{
		{
			kind: KindProjectStarted, traits: traits{started: true}, fold: (*folder).startProject,
			texts: about((*Log).projectStarted, projectStartedHeadline, noStory),
		},
		{
			kind: KindProjectEnded, traits: traits{started: true}, fold: (*folder).endProject,
			texts: about((*Log).projectEnded, projectEndedHeadline, noStory),
		},
		{
			kind: KindProjectSkipped, traits: traits{started: true}, fold: (*folder).skipProject,
			texts: about((*Log).projectSkipped, projectSkippedHeadline, noStory),
		},
		{
			kind: KindProjectDelivered, traits: traits{started: true}, fold: (*folder).deliverProject,
			texts: about((*Log).projectDelivered, projectDeliveredHeadline, noStory),
		},
	}
}

func (l *Log) projectStarted(_ *Entry, p ProjectStart) {
	l.info("Project %s started: run %s", p.Alias, p.RunID)
}

func (l *Log) projectEnded(_ *Entry, p ProjectEnd) {
	text := "Project " + p.text()
	if p.Outcome.Rule().Blocks {
		l.warn("%s", text)
	} else {
		l.info("%s", text)
	}
	l.decide(LogDecision{Decision: "end-project", Reason: text, Context: p.Alias})
}

func (l *Log) projectSkipped(_ *Entry, p ProjectSkip) {
	l.warn("Project %s", p.text())
	l.decide(LogDecision{Decision: "skip-project", Reason: p.reason(), Context: p.Alias})
}

func (l *Log) projectDelivered(_ *Entry, p ProjectDelivery) {
	l.line(p.level(), "Project %s: %s", p.Alias, p.text())
	l.decide(LogDecision{Decision: "deliver-project", Reason: p.text(), Context: p.Alias})
}

func (p ProjectEnd) text() string {
	return ProjectState{ProjectRef: ProjectRef{Alias: p.Alias}, Outcome: p.Outcome, Reason: p.Reason}.Text()
}

func (p ProjectSkip) reason() string { return "needs " + strings.Join(p.Needs, ", ") }

func (p ProjectSkip) text() string {
	return ProjectState{ProjectRef: ProjectRef{Alias: p.Alias}, Outcome: ProjectSkipped, Reason: p.reason()}.Text()
}

func (p ProjectDelivery) level() Level {
	if p.Delivered || p.Diff == "" {
		return LevelInfo
	}
	return LevelWarn
}

func (p ProjectDelivery) text() string {
	if !p.Delivered {
		return "nothing was delivered: " + cmp.Or(p.Message, noChange)
	}
	return fmt.Sprintf("%s delivered to %s %s", Plural(p.Files, "file"), p.To, p.Target)
}

func projectStartedHeadline(_ *Entry, p ProjectStart) string { return "Project " + p.Alias }

func projectEndedHeadline(_ *Entry, p ProjectEnd) string { return "  ■ project " + p.text() }

func projectSkippedHeadline(_ *Entry, p ProjectSkip) string { return "  ■ project " + p.text() }

func projectDeliveredHeadline(_ *Entry, p ProjectDelivery) string {
	return "  → project " + p.Alias + ": " + p.text()
}
