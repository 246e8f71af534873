package host_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/host"
)

// buildEnv makes the real server be built for this test; without it, it must be in the cache.
const buildEnv = "PASSBOOK_TEST_BUILD_SERVER"

func TestRealServerKeepsAWorkflowThroughKill(t *testing.T) {
	dir := stateDir(t)
	o := options(t, dir)
	o.Binary, o.CacheDir, o.SourceDir, o.StartTimeout = "", "", filepath.Dir(filepath.Dir(must(os.Getwd())(t))), time.Minute
	_, ok, err := host.CachedServer(o)
	require.NoError(t, err)
	if !ok && os.Getenv(buildEnv) == "" {
		t.Skip("the real server is not in the cache: any `starter demo`, or " + buildEnv + "=1, builds it")
	}
	s := must(host.EnsureServer(t.Context(), o, func(line string) { t.Log(line) }))(t)
	require.Equal(t, "temporal-1.32.db", filepath.Base(s.Database))
	c := dialServer(t, s)
	must(c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "w", TaskQueue: "no worker"}, "any"))(t)
	kill(t, s.Process)

	again := ensure(t, o)
	require.Equal(t, s.Address, again.Address)
	d := must(dialServer(t, again).DescribeWorkflowExecution(t.Context(), "w", ""))(t)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.WorkflowExecutionInfo.Status)

	r := must(dialServer(t, again).OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: again.Namespace}))(t)
	require.Contains(t, r.CustomAttributes, "PassbookStage")

	require.NoError(t, host.StopServer(t.Context(), dir, 20*time.Second))
}

func dialServer(t *testing.T, s host.Server) client.Client {
	t.Helper()
	trust := must(s.TLS(certs.CLI))(t)
	c := must(client.Dial(client.Options{HostPort: s.Address, Namespace: s.Namespace,
		ConnectionOptions: client.ConnectionOptions{TLS: trust}}))(t)
	t.Cleanup(c.Close)
	return c
}
