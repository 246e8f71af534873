package run

import "fmt"

// Kinds of events about lanes. Other events of a lane have their usual kinds.
const (
	KindStageExpanded Kind = "stage.expanded"
	KindLaneStarted   Kind = "lane.started"
	KindLaneWaiting   Kind = "lane.waiting"
	KindLaneContinued Kind = "lane.continued"
	KindLaneEnded     Kind = "lane.ended"
	KindLaneMerged    Kind = "lane.merged"
	KindLanesStored   Kind = "lanes.stored"
	KindLanesLoaded   Kind = "lanes.loaded"
)

func laneKinds() []kindRow {
	ofLanes := traits{ofLanes: true, started: true}
	return []kindRow{
		{
			kind: KindStageExpanded, traits: ofLanes, fold: (*folder).expandStage,
			texts: about((*Log).expanded, expandedHeadline, noStory),
		},
		{
			kind: KindLaneStarted, traits: ofLanes, fold: (*folder).startLane,
			texts: about((*Log).laneStarted, noHeadline, noStory),
		},
		{
			kind: KindLaneWaiting, traits: ofLanes, fold: (*folder).waitLane,
			texts: about((*Log).laneWaiting, laneWaitingHeadline, noStory),
		},
		{
			kind: KindLaneContinued, traits: ofLanes, fold: (*folder).continueLane,
			texts: about[LaneContinued](noLog, noHeadline, noStory),
		},
		{
			kind: KindLaneEnded, traits: ofLanes, fold: (*folder).endLane,
			texts: about((*Log).laneEnded, laneEndedHeadline, laneEndedStory),
		},
		{
			kind: KindLaneMerged, traits: ofLanes, fold: (*folder).mergeLane,
			texts: about((*Log).laneMerged, noHeadline, noStory),
		},
		{
			kind: KindLanesStored, traits: ofLanes, fold: (*folder).storeLanes,
			texts: about[LanesStored](noLog, noHeadline, noStory),
		},
		{
			kind: KindLanesLoaded, traits: ofLanes, fold: (*folder).loadLanes,
			texts: about[LanesLoaded](noLog, noHeadline, noStory),
		},
	}
}

func (l *Log) expanded(_ *Entry, p StageExpanded) {
	l.info("  %s: %s", p.Stage, Plural(p.Count, "lane"))
}

func (l *Log) laneStarted(_ *Entry, p LaneStarted) { l.info("  Lane %d, %s", p.Index+1, p.Name) }

func (l *Log) laneWaiting(_ *Entry, p LaneWaiting) {
	l.warn("  Lane %d, %s, waits for an operator: %s", p.Index+1, p.Name, p.Question)
}

func (l *Log) laneEnded(e *Entry, p LaneEnded) {
	if p.Outcome == LaneOutcomeDone {
		l.info("  Lane %d, %s, done (%s)", p.Index+1, p.Name, e.After.Lanes.text())
		return
	}
	l.warn("  Lane %d, %s, failed: %s (%s)", p.Index+1, p.Name, p.Reason, e.After.Lanes.text())
	l.decide(LogDecision{Decision: "leave-out-lane", Reason: p.Reason, Context: p.Name})
}

func (l *Log) laneMerged(_ *Entry, p LaneMerged) {
	l.info("  Lane %d, %s, merged: %s changed", p.Index+1, p.Name, Plural(p.Changed, "file"))
}

func expandedHeadline(_ *Entry, p StageExpanded) string {
	return fmt.Sprintf("  %s", Plural(p.Count, "lane"))
}

func laneWaitingHeadline(_ *Entry, p LaneWaiting) string {
	return fmt.Sprintf("  ! lane %d, %s: %s", p.Index+1, p.Name, p.Question)
}

func laneEndedHeadline(e *Entry, p LaneEnded) string {
	if p.Outcome == LaneOutcomeDone {
		return fmt.Sprintf("  ✓ lane %s (%s)", p.Name, e.After.Lanes.text())
	}
	return fmt.Sprintf("  ✗ lane %s: %s (%s)", p.Name, p.Reason, e.After.Lanes.text())
}

func laneEndedStory(_ *Entry, p LaneEnded) Story {
	if p.Outcome == LaneOutcomeDone {
		return Story{}
	}
	return Story{What: fmt.Sprintf("lane %d, %s, left out", p.Index+1, p.Name), Note: p.Reason}
}

func (l *Lanes) text() string {
	if l == nil {
		return "no lanes"
	}
	return l.Text()
}
