package view_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/report"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// place is that of the lane of an item.
func place(index int, name string) run.LanePlace {
	return run.LanePlace{Index: index, Key: name, Name: name + ".go"}
}

// cost is that of calls of a worker.
func cost(calls int, usd float64, unknown int) run.ChildCost {
	t := run.Totals{Calls: calls, USD: usd, Unknown: unknown}
	return run.ChildCost{Spent: t, ByRole: []run.Named{{Name: "worker", Totals: t}}}
}

func (j *journal) startLane(p run.LanePlace) {
	j.add(run.KindChildStarted, run.ChildStart{RunID: p.ChildRunID("r-1", 0), LanePlace: p})
}

func (j *journal) endLane(p run.LanePlace, outcome run.ChildOutcome, reason string, c run.ChildCost) {
	end := run.ChildEnd{RunID: p.ChildRunID("r-1", 0), LanePlace: p, Outcome: outcome, Reason: reason, Cost: c}
	if outcome == run.ChildDone {
		end.Tree = &run.Blob{Digest: "tree"}
	}
	j.add(run.KindChildEnded, end)
}

func (j *journal) mergeLane(p run.LanePlace, changed int, commit string) {
	j.add(run.KindChildMerged, run.ChildMerged{Index: p.Index, Key: p.Key, Name: p.Name, Tree: run.Blob{Digest: "tree"},
		Changed: changed, Commit: commit})
}

func (j *journal) startRun() {
	j.add(run.KindRunStart, run.RunStart{Task: "task", Pipeline: "pipe", RunID: "r-1", ThreadID: "thread", Epoch: 1,
		CreatedAt: "created", Budget: run.Budget{CapUSD: 9}, Wording: run.WordingStages,
		Stages: []run.StageRef{{Name: "work"}}})
	j.stage = "work"
	j.add(run.KindPhaseStart, run.PhaseStart{Key: "work", Title: "Work", Round: 1})
}

// TestEvidenceListsLanes: outcome, cost, place of the merge and conflicts of each lane, without what a revert undid.
func TestEvidenceListsLanes(t *testing.T) {
	j := &journal{t: t}
	j.startRun()
	j.add(run.KindChildrenListed, run.ChildrenListed{Stage: "work", Count: 4, Digest: "list"})
	a, b, c, d := place(0, "a"), place(1, "b"), place(2, "c"), place(3, "d")
	for _, p := range []run.LanePlace{a, b, c, d} {
		j.startLane(p)
	}
	j.endLane(b, run.ChildDone, "", cost(1, 0.25, 0))
	j.endLane(a, run.ChildDone, "", cost(2, 0.75, 1))
	j.mergeLane(a, 2, "commit")
	j.endLane(b, run.ChildConflict, "It conflicts.", run.ChildCost{})
	b.Suffix, b.Redo, b.Tries = "~2", 1, 1
	j.startLane(b)
	j.endLane(b, run.ChildDone, "", cost(3, 1, 0))
	j.mergeLane(b, 1, "")
	j.endLane(c, run.ChildFailed, "it is broken", cost(1, 0.25, 0))
	j.add(run.KindChildSkipped, run.ChildSkip{Index: 2, Key: "c", Name: "c.go", Reason: "it is broken"})
	kept := j.seq
	j.endLane(d, run.ChildDone, "", cost(1, 0.5, 0))
	j.mergeLane(d, 1, "")
	j.add(run.KindRunReverted, run.RunReverted{To: kept, State: &run.State{RunID: "r-1"}})
	e, err := view.ReadRecord(j.dir())
	require.NoError(t, err)
	require.Equal(t, "4 lanes: 2 merged, 1 failed, 1 active", view.LaneTotals(e.Lanes, e.History.LanesLeft))
	require.Equal(t, "4 lanes: 2 merged, 1 failed, 1 active", view.LaneTotals(e.Lanes, 0))
	require.Equal(t, "9 lanes: 2 merged, 1 failed, 1 active, 5 not started", view.LaneTotals(e.Lanes, 5))
	var results []string
	for _, l := range e.Lanes {
		results = append(results, l.Item+" "+l.Result())
	}
	require.Equal(t, []string{"a.go merged as 1, 2 files", "b.go merged as 2, 1 file, after 1 conflict",
		"c.go failed: it is broken", "d.go active"}, results)
	require.Equal(t, 2, e.Lanes[0].Calls)
	require.InDelta(t, 0.75, e.Lanes[0].USD, 1e-9)
	require.Equal(t, 1, e.Lanes[0].Unknown)
	require.InDelta(t, 1.25, e.Lanes[1].USD, 1e-9, "that of both its runs")
	require.Equal(t, 4, e.Lanes[1].Calls)
	require.Equal(t, "r-1.1.b~2", e.Lanes[1].RunID)
	require.Equal(t, "lanes/work/b~2", e.Lanes[1].Directory())
	require.NotEmpty(t, e.Lanes[2].EndedAt)
	require.Empty(t, e.Lanes[3].EndedAt)
	var page bytes.Buffer
	require.NoError(t, report.Markdown(&page, e))
	require.Contains(t, page.String(), "| 1 | a.go | merged as 1, 2 files | 2 |")
	require.Contains(t, page.String(), "| lanes/work/a |")
	require.Equal(t, []view.RoleCost{{Role: "worker", Calls: 8, USD: 2.75, Unknown: 1}}, e.Spend.ByRole)
	require.Len(t, e.History.Costs, 5)
	require.InDelta(t, 2.75, e.History.Costs[4].USD, 1e-9, "also of what was reverted")
}

// TestEvidenceOfOpenLanes: what lanes that have not ended cost, and what they wait for, is in their own records.
func TestEvidenceOfOpenLanes(t *testing.T) {
	j := &journal{t: t}
	j.startRun()
	j.add(run.KindChildrenListed, run.ChildrenListed{Stage: "work", Count: 6, Digest: "list"})
	var all []run.LanePlace
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, place(i, name))
		j.startLane(all[i])
	}
	j.endLane(all[3], run.ChildFailed, "it is broken", cost(1, 0.25, 0))
	j.endLane(all[4], run.ChildStopped, "", cost(1, 0.25, 0))
	dir := j.dir()
	for i, s := range []run.State{
		{Status: run.Running, Spent: run.Totals{Calls: 2, USD: 0.5, Unknown: 1}},
		{Status: run.AwaitingGateDecision, Spent: run.Totals{Calls: 1, USD: 0.5},
			Questions: []run.Question{{Kind: run.QuestionGate, ID: "q", Text: "The check failed."}}},
		{Status: run.Paused, Reason: run.PassFailed},
	} {
		s.RunID = all[i].ChildRunID("r-1", 0)
		own := rundir.At(dir.Path(all[i].Dir("work")))
		require.NoError(t, own.Take(run.Claim{Version: 1, RunID: s.RunID}))
		raw, err := rundir.Seal(rundir.Meta{State: s})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(own.Path(rundir.MetaFile), raw, 0o644))
	}
	e, err := view.ReadRecord(dir)
	require.NoError(t, err)
	require.Equal(t, "6 lanes: 3 waiting, 2 active, 1 not started", view.LaneTotals(e.Lanes, e.History.LanesLeft))
	var results []string
	for _, l := range e.Lanes {
		results = append(results, fmt.Sprintf("%s %d %s", l.Result(), l.Calls, run.ShortCost(l.USD, l.Unknown)))
		require.Empty(t, l.EndedAt)
	}
	require.Equal(t, []string{"active 2 ≥ $0.50", "waiting: The check failed. 1 $0.50",
		"waiting: pass-failed 0 $0.00", "waiting: it is broken 1 $0.25", "active 1 $0.25"}, results)
	require.Equal(t, run.CostAtLeast, e.Lanes[0].CostKnown)
	require.InDelta(t, 0.5, e.Spend.USD, 1e-9, "that of lanes which have ended")
}
