package conformance

import (
	"maps"
	"slices"
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
		stateRows(), phaseRows(), recordRows(), cycleRows(), checkpointRows(), costRows(), textLogRows(), logRows(), fileRows(), injuryRows(),
		promptRows(), agentRows(), retryRows(), structureRows(), errorRows(), moneyRows(), blindRows(), killRows(), terminalRows(), revertRows(),
	} {
		for id, check := range group {
			require.NotContains(t, all, id, "two checks have this id")
			all[id] = check
		}
	}
	return all
}

// TestRows shows the rows of the checklist, each as a subtest with its id.
func TestRows(t *testing.T) {
	all := allRows(t)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		t.Run(id, all[id])
	}
}
