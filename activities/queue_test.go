package activities

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/costs"
	"github.com/passbook-run/passbook/run"
)

// runsOf is a client of runs with a status; a run without one has no workflow.
type runsOf struct {
	client.Client
	status map[string]run.Status
	woken  []contract.AccountMessage
}

type answerOf struct {
	converter.EncodedValue
	status run.Status
}

func (a answerOf) Get(into any) error {
	into.(*run.State).Status = a.status
	return nil
}

func (r *runsOf) QueryWorkflow(_ context.Context, id, _, _ string, _ ...any) (converter.EncodedValue, error) {
	if s, open := r.status[id]; open {
		return answerOf{status: s}, nil
	}
	return nil, serviceerror.NewNotFound("no workflow " + id)
}

func (r *runsOf) SignalWorkflow(_ context.Context, id, _, name string, m any) error {
	if _, open := r.status[id]; !open {
		return serviceerror.NewNotFound("no workflow " + id)
	}
	if name == contract.AccountWake {
		r.woken = append(r.woken, m.(contract.AccountMessage))
	}
	return nil
}

// occupied is a harness whose host has as many calls as may run at once.
func occupied(t *testing.T, most config.AtOnce) (*harness, costs.Call) {
	t.Helper()
	h := counting(t, "answer")
	h.acts.cfg.AtOnce = most
	other := costs.Call{ID: "other/1", Delivery: 1, Run: "other", Worker: h.acts.worker}
	_, _, err := h.acts.costs.Reserve(t.Context(), other, costs.Terms{})
	require.NoError(t, err)
	return h, other
}

func TestCallWaitsForItsTurn(t *testing.T) {
	h, other := occupied(t, config.AtOnce{Host: 1})
	res := h.result()
	require.True(t, res.Uncalled)
	require.Equal(t, run.CategoryRateLimit, res.Outcome)
	require.Equal(t, run.LimitAtOnce, res.Limit.Kind)
	require.Empty(t, h.claims(), "nothing was claimed")

	runs := &runsOf{status: map[string]run.Status{h.in.RunID: run.WaitingLimit}}
	h.acts.cfg.Client = runs
	require.NoError(t, h.acts.OfferTurns(t.Context()))
	require.Empty(t, runs.woken, "the other call runs")
	require.NoError(t, h.acts.costs.Settle(t.Context(), h.s, other.ID, other.Delivery))
	require.NoError(t, h.acts.OfferTurns(t.Context()))
	require.Equal(t, []contract.AccountMessage{{Account: res.Limit.AccountID, Number: res.Limit.Number, Run: h.in.RunID}},
		runs.woken)
	res = h.accepted()
	require.Empty(t, must(h.acts.costs.Queue())(t))
}

func TestRunWithoutACallLeavesTheQueue(t *testing.T) {
	for name, status := range map[string]map[string]run.Status{
		"paused": {"run-1": run.Paused, "next": run.WaitingLimit}, "ended": {"run-1": run.Done, "next": run.Running},
		"no workflow": {"next": run.WaitingLimit},
	} {
		t.Run(name, func(t *testing.T) {
			h, other := occupied(t, config.AtOnce{Host: 1})
			h.in.RunID = "run-1"
			h.result()
			full, _, err := h.acts.costs.Reserve(t.Context(), costs.Call{ID: "next/1", Delivery: 1, Run: "next"},
				costs.Terms{AtOnce: costs.AtOnce{Host: 1}})
			require.NoError(t, err)
			require.Equal(t, 2, full.Place)
			runs := &runsOf{status: status}
			h.acts.cfg.Client = runs
			require.NoError(t, h.acts.costs.Settle(t.Context(), h.s, other.ID, other.Delivery))
			require.NoError(t, h.acts.OfferTurns(t.Context()))
			require.Len(t, runs.woken, 1)
			require.Equal(t, "next", runs.woken[0].Run)
		})
	}
}

// TestPausedRunLeavesTheQueueAtOnce: the places of the others are right from then on. A call that asks later stays.
func TestPausedRunLeavesTheQueueAtOnce(t *testing.T) {
	for kind, stays := range map[run.Kind]int{run.KindRunPaused: 0, run.KindRunEnd: 0, run.KindPhaseStart: 1} {
		t.Run(string(kind), func(t *testing.T) {
			h, _ := occupied(t, config.AtOnce{Host: 1})
			h.in.RunID = "run-1"
			h.result()
			<-h.acts.ended // of the call that waits
			in := h.startsAs(filepath.Join(h.dir, "run"))
			in.Lines = append(in.Lines, h.line(2, kind, struct{}{}))
			h.projected(in)
			q := must(h.acts.costs.Queue())(t)
			require.Len(t, q, stays)
			require.Len(t, h.acts.ended, 1-stays, "another call may have its turn")

			h.result()
			h.acts.leaveQueue(t.Context(), in, time.Now().Add(-time.Hour))
			q = must(h.acts.costs.Queue())(t)
			require.Len(t, q, 1, "it asked after the pause")
		})
	}
}

func TestBoundOfAnAccount(t *testing.T) {
	most := config.AtOnce{Account: 3, Accounts: config.Words{"work=1", "free (3f2a91bc)=0"}}
	for account, bound := range map[string]int{"work": 1, "free (3f2a91bc)": 0, "other": 3} {
		require.Equal(t, bound, most.Of(account), account)
	}
}
