package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// operator controls the runs of the environment as a program does that uses Passbook as a library.
func (h *environment) operator(c client.Client) operations.Operator {
	h.t.Helper()
	release, err := host.Attach(h.t.Context(), h.state()) // the server stays as long as a client is attached
	require.NoError(h.t, err)
	h.t.Cleanup(func() { require.NoError(h.t, release()) })
	host, err := host.HostID(h.state())
	require.NoError(h.t, err)
	return operations.Operator{
		Client: c, Namespace: client.DefaultNamespace, Host: host, Build: "test", By: "ada", Embedded: true,
		Attributes: true,
		Settings: config.Settings{
			StateDir: h.state(), RunRoot: h.dir("runs"), Store: "file://" + filepath.Join(h.state(), "store"),
			TaskQueue: "passbook", Heartbeat: heartbeat,
			Environment: "test",
		},
	}
}

// subject is one small run with agents that a test steers, and all that can be asked of it.
type subject struct {
	*environment
	t     *testing.T
	o     operations.Operator
	def   operations.Definition
	dir   rundir.Dir
	steer string
	id    string
}

// subject makes the definition of a run that has not begun; edits are pairs of texts in it.
func (h *environment) subject(t *testing.T, o operations.Operator, edits ...string) *subject {
	t.Helper()
	folder, err := os.MkdirTemp(h.root, "life-")
	require.NoError(t, err)
	testdata := filepath.Join(project, "test", "e2e", "testdata", "life")
	require.NoError(t, os.CopyFS(folder, os.DirFS(testdata)))
	edits = append(edits, "AGENT", filepath.Join(testdata, "agent.sh"))
	for i := 0; i < len(edits); i += 2 {
		replace(t, folder, "pipeline.yaml", edits[i], edits[i+1])
	}
	l := &subject{environment: h, t: t, o: o, dir: rundir.At(filepath.Join(folder, "run")),
		steer: filepath.Join(folder, "steer")}
	require.NoError(t, os.Mkdir(l.steer, 0o700))
	l.def, err = operations.Load(os.DirFS(folder), "pipeline.yaml", "pipeline.yaml")
	require.NoError(t, err)
	l.def.Task = "Do it, steer=" + l.steer
	return l
}

// steerAgents steers the agents: hold or fail, until the same word with a leading minus.
func (l *subject) steerAgents(words ...string) *subject {
	l.t.Helper()
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "-"); ok {
			require.NoError(l.t, os.Remove(filepath.Join(l.steer, name)))
			continue
		}
		require.NoError(l.t, os.WriteFile(filepath.Join(l.steer, w), nil, 0o600))
	}
	return l
}

// start starts the run.
func (l *subject) start() *subject {
	l.t.Helper()
	st, err := l.o.Start(l.t.Context(), l.def, l.dir)
	require.NoError(l.t, err)
	l.id = st.RunID
	return l
}

// calls is how often an agent was called.
func (l *subject) calls() int {
	raw, err := os.ReadFile(filepath.Join(l.steer, "calls"))
	if os.IsNotExist(err) {
		return 0
	}
	require.NoError(l.t, err)
	return strings.Count(string(raw), "\n")
}

// called waits until an agent was called that often.
func (l *subject) called(n int) *subject {
	l.t.Helper()
	until(l.t, "the agent is called", func() bool { return l.calls() >= n })
	return l
}

// is waits until the directory shows a status.
func (l *subject) is(want run.Status) *subject {
	l.t.Helper()
	until(l.t, "the run is "+string(want), func() bool {
		m, err := l.dir.Meta()
		return err == nil && (m.Status == string(want) && (!want.Closed() || m.FinishedAt != nil))
	})
	return l
}

// closed waits until the run's workflow has ended.
func (l *subject) closed() *subject {
	l.t.Helper()
	_ = l.o.Client.GetWorkflow(l.t.Context(), l.id, "").Get(l.t.Context(), nil) // however it ended
	return l
}
