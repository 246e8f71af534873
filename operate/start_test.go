package operate

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/durable"
	"github.com/passbook-run/passbook/rundir"
)

// TestAStartWaitsForItsTurn holds the turn on a directory, whichever path leads there, and wants a start to wait for it before it reads or writes anything.
func TestAStartWaitsForItsTurn(t *testing.T) {
	base := t.TempDir()
	o := Operator{Settings: config.Settings{StateDir: filepath.Join(base, "state")}}
	turn, err := o.turn(t.Context(), rundir.At(filepath.Join(base, "run")))
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel() // so it does not wait any longer than it has to
	var held *durable.ErrHeld
	for _, path := range []string{"run", "other/../run"} {
		_, err = o.Start(over, Definition{}, rundir.At(filepath.Join(base, path)))
		require.ErrorAs(t, err, &held, path)
		require.ErrorContains(t, err, "start on ")
		require.NoDirExists(t, filepath.Join(base, "run"))
	}
	require.NoError(t, turn.Unlock())
	_, err = o.turn(over, rundir.At(filepath.Join(base, "run")))
	require.NoError(t, err, "the turn is free again")
}
