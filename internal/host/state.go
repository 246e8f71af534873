package host

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/internal/format"
)

// OpenState is called by every program before it writes to a state directory: it creates the directory, and upgrades
// one of an earlier release unless background processes run. A directory of a newer release is refused, and nothing is
// changed.
func OpenState(ctx context.Context, stateDir string) error {
	return format.State().Open(ctx, stateDir, func() error { return idleState(stateDir) })
}

// idleState returns an error while a background process may write to the state directory.
func idleState(stateDir string) error {
	st, err := Read(stateDir)
	if err != nil {
		return err
	}
	pid := 0
	switch {
	case st.Worker != nil:
		pid = st.Worker.Process.PID
	case st.Keeper != nil:
		pid = st.Keeper.Process.PID
	case st.Server != nil:
		pid = st.Server.Process.PID
	default:
		return nil
	}
	return fmt.Errorf("a process of an earlier release uses it (pid %d); stop it: starter server stop", pid)
}
