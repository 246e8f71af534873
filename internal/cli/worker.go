package cli

import (
	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/host"
)

func (a *app) worker() *cobra.Command { return host.Command(a.workerEnv) }

// workerEnv returns the environment of the verb worker.
func (a *app) workerEnv() host.CommandEnv {
	return host.CommandEnv{Settings: a.settings, Secrets: a.secrets, Stderr: a.err, Keep: a.keepKeeper}
}
