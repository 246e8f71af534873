package operations

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// TestRefresh sends the message to a workflow that has fewer events than its directory, and to no other.
func TestRefresh(t *testing.T) {
	asks := decided(run.KindHandoffRequested, "", run.QuestionHandoff, run.TriggerAsked, run.ActionContinue)[0]
	for name, row := range map[string]struct {
		last   entry
		has    int64 // events of the workflow
		closed bool
		away   bool // no worker
		looks  bool
	}{
		"paused":            {last: pausedEntry(), has: 2, looks: true},
		"a question":        {last: asks, has: 2, looks: true},
		"it has all events": {last: pausedEntry(), has: 3},
		"it has more":       {last: pausedEntry(), has: 4},
		"it works":          {last: entry{run.KindPhaseStart, run.PhaseStart{Key: "write"}}, has: 2, looks: true},
		"it has ended":      {last: runEnded(run.Failed), has: 2, looks: true},
		"closed":            {last: pausedEntry(), has: 2, closed: true},
		"no worker":         {last: pausedEntry(), has: 2, away: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, f, _ := openRun(t, row.last)
			f.answers[contract.QueryStatus] = contract.StatusAnswer{State: run.State{Seq: row.has}}
			if row.closed {
				f.described["r1"] = terminated
			}
			if !row.away {
				f.pollers = map[string]*taskqueuepb.PollerInfo{contract.HostQueues("passbook", "here").Dir: poller("1@far@", time.Now())}
			}
			require.NoError(t, o.Refresh(t.Context(), d))
			if !row.looks {
				require.Empty(t, f.updated)
				return
			}
			require.Len(t, f.updated, 1)
			require.Equal(t, contract.VerbLook, f.updated[0].UpdateName)
		})
	}
}

// TestRefreshAll refreshes the recorded runs that have not ended. A missing directory is no error.
func TestRefreshAll(t *testing.T) {
	o, _, f, _ := openRun(t, pausedEntry())
	o.WorkerStarts = true // no queue has a poller
	f.answers = nil
	require.NoError(t, Index(o.Settings.StateDir, "missing", t.TempDir()))
	require.ErrorContains(t, o.RefreshAll(t.Context()), "ask the workflow of run r1 for its status: no worker")
	o, _, f, _ = openRun(t, runEnded(run.Failed))
	o.WorkerStarts, f.answers = true, nil
	require.NoError(t, o.RefreshAll(t.Context()))
}
