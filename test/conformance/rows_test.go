package conformance

import (
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are the checks by the ids of their rows.
type rows map[string]func(t *testing.T)

// allRows are those of every group.
func allRows(t *testing.T) rows {
	t.Helper()
	all := rows{}
	for _, group := range []rows{
		stateRows(), phaseRows(), recordRows(), cycleRows(), checkpointRows(), costRows(), textLogRows(), logRows(),
		fileRows(), injuryRows(),
		promptRows(), agentRows(), retryRows(), structureRows(), errorRows(), moneyRows(), blindRows(), killRows(),
		terminalRows(), viewRows(), revertRows(), commandRows(),
	} {
		for id, check := range group {
			require.NotContains(t, all, id, "two checks have this id")
			all[id] = check
		}
	}
	return all
}

// TestRows checks the rows of the checklist, each in a subtest with its id, one after the other: they share runs.
func TestRows(t *testing.T) {
	useRowsEnv(t)
	all := allRows(t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		t.Run(id, all[id])
	}
}

// rowsTurn is held by the test that uses the environment of the rows.
var rowsTurn sync.Mutex

// useRowsEnv lets a test run in parallel with those in other environments, and after those in the environment of the
// rows.
func useRowsEnv(t *testing.T) {
	t.Helper()
	t.Parallel()
	rowsTurn.Lock()
	t.Cleanup(rowsTurn.Unlock)
}

func try(t *testing.T, args ...string) (string, int) { t.Helper(); return rowsEnv.try(t, args...) }
func starter(t *testing.T, args ...string) string    { t.Helper(); return rowsEnv.starter(t, args...) }
func spoil(t *testing.T, faults string)              { t.Helper(); require.NoError(t, rowsEnv.setFaults(faults)) }
func calls(t *testing.T, from int) []object          { t.Helper(); return rowsEnv.callsFrom(t, from) }

// workerPID is the process id of the worker, 0 if there is none.
func workerPID(t *testing.T) int {
	t.Helper()
	_, pid, err := rowsEnv.processes()
	require.NoError(t, err)
	return pid
}
