package operations

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/durable"
)

// TestStartsInOneDirectoryRunOneAfterAnother holds the turn on a directory, whichever path leads there, and wants a
// start to wait for it before it reads or writes anything.
func TestStartsInOneDirectoryRunOneAfterAnother(t *testing.T) {
	base := t.TempDir()
	o := Operator{Settings: config.Settings{StateDir: filepath.Join(base, "state")}}
	turn, err := o.turn(t.Context(), projector.At(filepath.Join(base, "run")))
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel() // so it does not wait any longer than it has to
	var held *durable.ErrHeld
	for _, path := range []string{"run", "other/../run"} {
		_, err = o.Start(over, Definition{}, projector.At(filepath.Join(base, path)))
		require.ErrorAs(t, err, &held, path)
		require.ErrorContains(t, err, "start on ")
		require.NoDirExists(t, filepath.Join(base, "run"))
	}
	require.NoError(t, turn.Unlock())
	_, err = o.turn(over, projector.At(filepath.Join(base, "run")))
	require.NoError(t, err, "the turn is free again")
}
