package host

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/secrets"
)

func TestWorkersOfADeployment(t *testing.T) {
	named := config.Settings{Deployment: config.Deployment{Name: "passbook", BuildID: "v0.1.0"}}
	for name, row := range map[string]struct {
		options WorkerConfig
		want    bool
	}{
		"no name":             {WorkerConfig{}, false},
		"in a cluster":        {WorkerConfig{Operator: operations.Operator{Settings: named}}, true},
		"the embedded server": {WorkerConfig{Operator: operations.Operator{Settings: named, Embedded: true}}, false},
	} {
		opts := row.options.workflowOptions()
		require.Equal(t, row.want, opts.DeploymentOptions.UseVersioning, name)
		require.Equal(t, row.want, opts.LocalActivityWorkerOnly, name)
		if row.want {
			require.Equal(t, "v0.1.0", opts.DeploymentOptions.Version.BuildID)
			require.Equal(t, workflow.VersioningBehaviorPinned, opts.DeploymentOptions.DefaultVersioningBehavior)
		}
		calls := row.options.gated(&slotGate{pool: newPool(1)})
		require.False(t, calls.DeploymentOptions.UseVersioning, "any build of the host makes its calls")
	}
}

func TestBuildWithoutVersionJoinsNoDeployment(t *testing.T) {
	o := WorkerConfig{Operator: operations.Operator{
		Settings: config.Settings{Deployment: config.Deployment{Name: "passbook"}}}}
	require.ErrorIs(t, RunWorker(t.Context(), o), errNoVersion)
}

func TestSettingDisablesInhibitor(t *testing.T) {
	o := WorkerConfig{Operator: operations.Operator{Redact: must(secrets.New(config.Settings{}, nil))(t)}}
	require.Nil(t, o.activities().KeepAwake)
	o.Settings.KeepAwake = true
	require.NotNil(t, o.activities().KeepAwake)
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}
