package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/run"
)

func TestRecoveredProjectionErrorIsJournaled(t *testing.T) {
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){2: func() {
		w.dir.troubles = []contract.RecoveredError{{Category: "file-io", Message: "read-only file system", Attempt: 4},
			{
				Category: "state-corruption", Message: "state.json is damaged",
			}}
	}}
	w.done()
	require.Equal(t, []run.ErrorNoted{
		{Category: "file-io", Message: "read-only file system", Recovered: true, Attempt: 4},
		{Category: "state-corruption", Message: "state.json is damaged", Recovered: true},
	}, payloads[run.ErrorNoted](w, run.KindErrorNoted))
	require.Equal(t, run.CategoryStateCorruption, w.status().Problem.Category)
}

func TestNothingIsJournaledAfterEnd(t *testing.T) {
	whole := newHarness(t, twoPasses)
	whole.done()
	w := newHarness(t, twoPasses)
	w.dir.before = map[int]func(){
		len(whole.dir.batches): func() {
			w.dir.troubles = []contract.RecoveredError{{Category: "file-io",
				Message: "late"}}
		},
	}
	w.done()
	require.Empty(t, w.dir.troubles, "it was told")
	events := w.dir.events(t)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
}
