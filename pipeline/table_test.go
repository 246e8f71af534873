package pipeline

import (
	"bytes"
	"encoding/json"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWriteTable(t *testing.T) {
	for _, name := range []string{"corpus-integration", "plan-implement-review", "turn-loop"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, WriteTable(&out, Expand(parsed(t, read(t, name+".yaml"))), "workspace"))
			golden(t, name+".table.txt", out.String())
		})
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestWriteTableReturnsTheWritersError(t *testing.T) {
	require.ErrorIs(t, WriteTable(fullDisk{}, corpusPlan(t), ""), syscall.ENOSPC)
}

func TestPlanRoundTripsThroughJSON(t *testing.T) {
	plan := Expand(parsed(t, []byte(rich)))
	text, err := json.Marshal(plan)
	require.NoError(t, err)
	var back Plan
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, plan, &back)
}
