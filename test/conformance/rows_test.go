package conformance

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// rows are checks by the ids of the rows that they show, separated by spaces.
type rows map[string]func(t *testing.T)

// allRows returns the checks of every group.
func allRows(t *testing.T) rows {
	t.Helper()
	all := rows{}
	for _, group := range []rows{
		stateRows(), positionRows(), passRows(), cycleRows(), checkpointRows(), costRows(), textLogRows(), logRows(),
		fileRows(), archiveRows(), promptRows(), agentRows(), failureRows(), errorRows(), budgetRows(),
		screenshotRows(), killRows(), terminalRows(), revertRows(), commandRows(),
	} {
		for ids, check := range group {
			require.NotContains(t, all, ids)
			all[ids] = check
		}
	}
	return all
}

// TestRows checks the rows of the checklist one after the other, because they share runs. The name of a subtest holds
// the ids of its rows.
func TestRows(t *testing.T) {
	useRowsEnv(t)
	all := allRows(t)
	for _, ids := range slices.Sorted(maps.Keys(all)) {
		t.Run(strings.ReplaceAll(ids, " ", "_"), all[ids])
	}
}

// rowsTurn is locked by the test that uses the environment of the rows.
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
func setRowsFaults(t *testing.T, faults string) {
	t.Helper()
	require.NoError(t, rowsEnv.setFaults(faults))
}
func calls(t *testing.T, from int) []object { t.Helper(); return rowsEnv.callsFrom(t, from) }

// workerPID returns the process id of the worker, or 0 if there is none.
func workerPID(t *testing.T) int {
	t.Helper()
	_, pid, err := rowsEnv.processes()
	require.NoError(t, err)
	return pid
}
