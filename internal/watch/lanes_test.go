package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/figures"
	"github.com/passbook-run/passbook/run"
)

func TestScreenShowsLanes(t *testing.T) {
	s := asking()
	s.Question, s.State.Status, s.Status = nil, run.Running, run.Running
	s.State.Lanes = &run.Lanes{Count: 20, Done: 9, Failed: 1, Merged: 7, Active: []run.Lane{
		{Index: 10, Key: "k", Name: "k.go", Step: 1}, {Index: 11, Key: "l", Name: "l.go",
			Waiting: &run.LaneWait{Why: run.LaneConflict, Question: "it conflicts"}}}}
	s.Figures.Lanes = []figures.Lane{
		{ActiveLane: run.ActiveLane{Number: 11, Name: "k.go", Does: "step 2 of 3, reviewer"}, Elapsed: 12 * time.Second},
		{ActiveLane: run.ActiveLane{Number: 12, Name: "l.go", Does: "waits for an operator: it conflicts", Waiting: true}}}
	s.Figures.Settled = []figures.Settled{
		{Pass: run.Pass{Role: "worker", Round: 1, Item: "j.go"}, Outcome: run.CategoryOK, Passed: true},
		{Pass: run.Pass{Role: "worker", Round: 1, Item: "i.go"}, Outcome: run.CategoryAgentTimeout, Failed: true,
			Message: "late"}}
	for _, width := range []int{80, 140} {
		shown := plainly(s, width, 60)
		require.Regexp(t, `Ended +█+░+ +10/20`, shown, width)
		require.Contains(t, shown, "7 merged, 1 failed, 1 waiting for an operator", width)
		require.Regexp(t, `▶ 11 k.go  step 2 of 3, reviewer +12s`, shown, width)
		require.Regexp(t, `! 12 l.go  waits for an operator: it conflicts`, shown, width)
		require.Regexp(t, `✓ Worker +j\.go`, shown, width)
		require.Regexp(t, `✗ Worker +i\.go`, shown, width)
		require.NotContains(t, shown, "Current", "the calls of lanes are listed once")
	}
}
