package evidence_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/evidence"
	"github.com/passbook-run/passbook/run"
)

// laneEvent adds an event of a lane.
func (j *journal) laneEvent(lane string, kind run.Kind, payload any) {
	j.lane = lane
	j.add(kind, payload)
	j.lane = ""
}

// TestEvidenceListsLanes: outcome, cost, place of the merge and conflicts of each lane, without what a revert undid.
func TestEvidenceListsLanes(t *testing.T) {
	j := &journal{t: t}
	j.add(run.KindRunStart, run.RunStart{Task: "task", Pipeline: "pipe", RunID: "r-1", ThreadID: "thread", Epoch: 1,
		CreatedAt: "created", Budget: run.Budget{CapUSD: 9}})
	j.stage = "work"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "work", Title: "Work", Round: 1})
	j.add(run.KindStageExpanded, run.StageExpanded{Stage: "work", Count: 4, Digest: "list"})
	names := []string{"a", "b", "c", "d"}
	for i, name := range names {
		j.laneEvent(name, run.KindLaneStarted, run.LaneStarted{Index: i, Name: name + ".go"})
		p := run.Pass{Step: "work/1", Round: 1, Role: "worker", Lane: name, Item: name + ".go"}
		if name == "a" {
			j.laneEvent(name, run.KindPassAttempt, run.PassAttempt{Pass: p, Call: "1", Attempt: 1,
				Category: run.CategoryAgentTimeout, Spend: &run.Spend{USD: 0.5, Known: run.CostAtLeast}})
		}
		j.laneEvent(name, run.KindPassEnd, run.PassEnd{Pass: p, Call: "2", Outcome: run.CategoryOK,
			Spend: run.Spend{USD: 0.25, Known: run.CostExact}})
	}
	tree := &run.Blob{Digest: "tree"}
	for _, i := range []int{1, 0} {
		j.laneEvent(names[i], run.KindLaneEnded, run.LaneEnded{Index: i, Name: names[i] + ".go", Outcome: "done", Tree: tree})
	}
	j.laneEvent("a", run.KindLaneMerged, run.LaneMerged{Index: 0, Name: "a.go", Tree: *tree, Changed: 2, Commit: "commit"})
	j.laneEvent("b", run.KindLaneWaiting, run.LaneWaiting{Index: 1, Name: "b.go",
		LaneWait: run.LaneWait{Why: run.LaneConflict, Question: "It conflicts."}})
	j.laneEvent("b", run.KindLaneContinued, run.LaneContinued{Index: 1, Name: "b.go", Action: "retry"})
	j.laneEvent("b", run.KindLaneEnded, run.LaneEnded{Index: 1, Name: "b.go", Outcome: "done", Tree: tree})
	j.laneEvent("b", run.KindLaneMerged, run.LaneMerged{Index: 1, Name: "b.go", Tree: *tree, Changed: 1})
	j.laneEvent("c", run.KindLaneEnded, run.LaneEnded{Index: 2, Name: "c.go", Outcome: "failed", Reason: "it is broken"})
	kept := j.seq
	j.laneEvent("d", run.KindLaneEnded, run.LaneEnded{Index: 3, Name: "d.go", Outcome: "done", Tree: tree})
	j.laneEvent("d", run.KindLaneMerged, run.LaneMerged{Index: 3, Name: "d.go", Tree: *tree, Changed: 1})
	j.add(run.KindRunReverted, run.RunReverted{To: kept, State: &run.State{RunID: "r-1"}})
	e, err := evidence.Read(j.dir())
	require.NoError(t, err)
	require.Equal(t, "4 lanes: 2 merged, 1 failed, 1 active", evidence.LaneTotals(e.Lanes, e.History.LanesLeft))
	require.Equal(t, "4 lanes: 2 merged, 1 failed, 1 active", evidence.LaneTotals(e.Lanes, 0))
	require.Equal(t, "9 lanes: 2 merged, 1 failed, 1 active, 5 not started", evidence.LaneTotals(e.Lanes, 5))
	var results []string
	for _, l := range e.Lanes {
		results = append(results, l.Item+" "+l.Result())
	}
	require.Equal(t, []string{"a.go merged as 1, 2 files", "b.go merged as 2, 1 file, after 1 conflict",
		"c.go failed: it is broken", "d.go active"}, results)
	require.Equal(t, 2, e.Lanes[0].Calls)
	require.InDelta(t, 0.75, e.Lanes[0].USD, 1e-9)
	require.Equal(t, 1, e.Lanes[0].Unknown)
	require.InDelta(t, 0.25, e.Lanes[1].USD, 1e-9)
	require.NotEmpty(t, e.Lanes[2].EndedAt)
	require.Empty(t, e.Lanes[3].EndedAt)
	var page bytes.Buffer
	require.NoError(t, e.Markdown(&page))
	require.Contains(t, page.String(), "| 1 | a.go | merged as 1, 2 files | 2 |")
}
