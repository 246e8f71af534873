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
	o.SearchAttributes = map[string]string{"Stage": "Keyword"}
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

	o.SearchAttributes["Status"] = "Keyword"
	again := ensure(t, o)
	require.Equal(t, s.Address, again.Address)
	d := must(dialServer(t, again).DescribeWorkflowExecution(t.Context(), "w", ""))(t)
	require.Equal(t, enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, d.WorkflowExecutionInfo.Status)

	o.SearchAttributes["Late"], o.Namespace = "Int", "other" // while it runs
	late := ensure(t, o)
	require.Equal(t, again.Process, late.Process)
	r := must(dialServer(t, late).OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: "other"}))(t)
	require.Contains(t, r.CustomAttributes, "Late")
	require.Contains(t, r.CustomAttributes, "Stage")

	require.True(t, must(host.StopServer(t.Context(), dir, 20*time.Second))(t))
}

func dialServer(t *testing.T, s host.Server) client.Client {
	t.Helper()
	trust := must(s.TLS(certs.CLI))(t)
	c := must(client.Dial(client.Options{HostPort: s.Address, Namespace: s.Namespace,
		ConnectionOptions: client.ConnectionOptions{TLS: trust}}))(t)
	t.Cleanup(c.Close)
	return c
}
