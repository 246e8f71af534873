package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/run"
)

const deployment = "passbook"

// cluster is a host of a cluster, on which workers of several builds run side by side.
type cluster struct {
	*open
	c client.Client
}

// newCluster starts a server that the host uses as one that others operate.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	h := newEnv(t, "PASSBOOK_IDLE=10m")
	h.starter("server", "start")
	server, c := h.running().Server, h.dial()
	h.env = append(append(h.env, server.Env()...), "PASSBOOK_STATE_DIR="+h.dir("state-host"),
		"PASSBOOK_DEPLOYMENT_NAME="+deployment)
	return &cluster{h.open(), c}
}

// worker starts a worker of a release. It stops at the end of the test, or by the returned function.
func (h *cluster) worker(version string) (stop func()) {
	t := h.t
	t.Helper()
	dir, err := releases[version]()
	require.NoError(t, err)
	cmd := exec.Command(filepath.Join(dir, "starter"), "worker") // until its cleanup
	cmd.Env = h.env
	out, err := os.Create(h.dir("worker-" + version + ".log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(t, cmd.Start())
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
			require.NoError(t, cmd.Wait())
		}
	}
	t.Cleanup(func() {
		stop()
		if raw, err := os.ReadFile(out.Name()); err == nil && t.Failed() {
			t.Logf("worker %s:\n%s", version, raw)
		}
		require.NoError(t, out.Close())
	})
	until(t, "the worker of "+version+" polls", func() bool {
		d, err := h.c.WorkerDeploymentClient().GetHandle(deployment).DescribeVersion(t.Context(),
			client.WorkerDeploymentDescribeVersionOptions{BuildID: version})
		if err != nil {
			return false
		}
		for _, q := range d.Info.TaskQueuesInfos {
			require.True(t, q.Type == client.TaskQueueTypeWorkflow, "any build executes activities of %s", q.Name)
		}
		st, err := host.Read(h.dir("state-host"))
		return err == nil && st.Worker != nil
	})
	return stop
}

// current makes a version the one of new workflows.
func (h *cluster) current(version string) {
	h.t.Helper()
	_, err := h.c.WorkerDeploymentClient().GetHandle(deployment).SetCurrentVersion(h.t.Context(),
		client.WorkerDeploymentSetCurrentVersionOptions{BuildID: version})
	require.NoError(h.t, err)
}

// buildOf returns the version that executed the last workflow task of a run.
func (h *cluster) buildOf(dir string) string {
	h.t.Helper()
	d, err := h.c.DescribeWorkflowExecution(h.t.Context(), metaOf(h.t, dir).RunID, "")
	require.NoError(h.t, err)
	v := d.GetWorkflowExecutionInfo().GetVersioningInfo()
	require.Equal(h.t, enums.VERSIONING_BEHAVIOR_PINNED, v.GetBehavior())
	require.Equal(h.t, deployment, v.GetDeploymentVersion().GetDeploymentName())
	return v.GetDeploymentVersion().GetBuildId()
}

// TestWorkerDeployment runs two builds side by side in a cluster: runs stay with the build that began them, move to the
// current one when their workflow continues as new, and after a rollback new runs begin with the former build.
func TestWorkerDeployment(t *testing.T) {
	t.Parallel()
	h := newCluster(t)
	h.install(former)
	stop := h.worker(former)

	// Without a current version nothing would be executed: a start is refused.
	folder := h.dir("pipeline-early")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "p.md"), []byte("name=early\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(h.definition("early", three)), 0o600))
	output, code := h.try("run", "--config", filepath.Join(folder, "p.yaml"), "--output-dir", h.dir("run-early"),
		"--detach")
	require.Equal(t, 1, code, output)
	require.Contains(t, output,
		"temporal worker deployment set-current-version --deployment-name passbook --build-id v0.1.0")
	h.current(former)

	h.let(false)
	stays := h.begin("stays", three)
	env := h.env
	h.env = append(slices.Clone(env), "PASSBOOK_CONTINUE_AFTER=1")
	moves := h.begin("moves", three)
	h.env = env
	until(t, "two runs call", func() bool { return h.count("start stays")+h.count("start moves") == 2 })
	require.Equal(t, former, h.buildOf(stays))

	h.worker(later)
	h.current(later)
	asking := h.begin("asks", asksOnce)
	until(t, "the new run calls", func() bool { return h.count("start asks") == 1 })
	require.Equal(t, later, h.buildOf(asking), "a new run begins with the current build")
	h.let(true)
	h.paid(stays, 3)
	require.Equal(t, former, h.buildOf(stays), "an open run stays with its build")
	h.paid(moves, 3)
	require.Equal(t, later, h.buildOf(moves), "it moves when it continues as new")

	// Rolled back: new runs begin with the former build; the open one stays with the later build until it ends.
	h.current(former)
	back := h.begin("back", three)
	h.paid(back, 3)
	require.Equal(t, former, h.buildOf(back))
	until(t, "a run asks", func() bool { return statusIs(asking, run.AwaitingPhaseHandoff) })
	h.starter("decide", asking, "--action", "continue")
	h.paid(asking, 2)
	require.Equal(t, later, h.buildOf(asking))

	// Without a worker of the former build, its activities are executed by the other one: only its workflows need it.
	kept := h.begin("keeps", asksOnce)
	ended := h.begin("ended", asksOnce)
	until(t, "two runs of the former build ask", func() bool {
		return statusIs(kept, run.AwaitingPhaseHandoff) && statusIs(ended, run.AwaitingPhaseHandoff)
	})
	require.Nil(t, h.status(kept).EffectiveStatus.NoWorker)
	h.current(later)
	stop()
	last := h.begin("last", three)
	h.paid(last, 3)
	require.Equal(t, later, h.buildOf(last))
	require.Nil(t, h.status(last).EffectiveStatus.NoWorker)
	h.unattended(kept, ended)
}

// unattended wants runs that are pinned to the former build, which has no worker, to be shown as such until they move.
// One is cancelled meanwhile.
func (h *cluster) unattended(dir, ended string) {
	t := h.t
	t.Helper()
	const missing = "no worker of build v0.1.0 (deployment passbook) polls passbook-dir-"
	move := func(dir string) string {
		return "temporal workflow update-options --workflow-id " + metaOf(t, dir).RunID +
			" --versioning-override-behavior auto_upgrade"
	}
	for _, output := range []string{h.starter("status", dir), h.starter("list")} {
		require.Contains(t, output, missing)
		require.Regexp(t, regexp.QuoteMeta(move(dir))+"|"+regexp.QuoteMeta(move(ended)), output)
	}
	output, code := h.try("decide", dir, "--action", "continue")
	require.Equal(t, 5, code, output)
	require.Contains(t, output, "no worker of build v0.1.0 (deployment passbook) takes task queue passbook-dir-")
	require.Contains(t, output, move(dir))
	output, code = h.try("cancel", ended)
	require.Equal(t, 3, code, output)
	require.Contains(t, output, "a worker has to process the request, but "+missing)
	require.Contains(t, output, move(ended))

	for _, dir := range []string{dir, ended} {
		_, err := h.c.UpdateWorkflowExecutionOptions(t.Context(), client.UpdateWorkflowExecutionOptionsRequest{
			WorkflowId: metaOf(t, dir).RunID, WorkflowExecutionOptionsChanges: client.WorkflowExecutionOptionsChanges{
				VersioningOverride: &client.VersioningOverrideChange{Value: &client.AutoUpgradeVersioningOverride{}}},
		})
		require.NoError(t, err)
	}
	until(t, "the moved runs have a worker", func() bool {
		return !strings.Contains(h.starter("status", dir)+h.starter("list"), "no worker")
	})
	until(t, "the request is processed", func() bool { return statusIs(ended, run.Cancelled) })
	h.starter("decide", dir, "--action", "continue")
	h.paid(dir, 2)
}
