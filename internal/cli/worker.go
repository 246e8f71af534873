package cli

import (
	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/workercmd"
)

func (a *app) worker() *cobra.Command { return workercmd.New(a.workerEnv) }

// workerEnv returns the environment of the verb worker.
func (a *app) workerEnv() workercmd.Env {
	return workercmd.Env{Settings: a.settings, Secrets: a.secrets, Stderr: a.err, Keep: a.keepKeeper}
}
