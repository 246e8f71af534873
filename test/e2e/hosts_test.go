package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/run"
)

// twoAgents is a pipeline whose steps need one agent after the other, together, and a command.
const twoAgents = `pipeline: two-hosts
agents:
  alpha: {run: [alpha], reply: text, price: {input: 15, output: 75}}
  beta: {run: [BETA], reply: text, price: {input: 15, output: 75}}
limits: {attempts: 1}
roles:
  a: {prompt: p.md, gives: report, agent: alpha}
  b: {prompt: p.md, gives: report, agent: beta}
stages:
  - name: one
    steps: [{role: a}, {role: b}, {role: a}]
  - name: two
    steps: [{together: [a, b]}]
`

// hosts are machines of a test with different agents, a server and a bucket between them.
type hosts struct {
	*environment
	log  string // one line a call: who was called on which host
	beta string // path of an agent that only one of them has, with a space in it
}

// startHost starts a worker on a separate machine with these agents; it has the bucket's credentials unless env takes
// them away.
func (h *hosts) startHost(name string, env ...string) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), filepath.Join(programs, "worker"))
	cmd.Env = append(h.env, append([]string{
		"PASSBOOK_STATE_DIR=" + h.dir("state-"+name), "PATH=" + h.dir("bin-"+name) + ":/usr/bin:/bin",
		"PASSBOOK_RECHECK=200ms",
	}, env...)...)
	require.NoError(h.t, os.MkdirAll(h.dir("bin-"+name), 0o700))
	out, err := os.Create(h.dir("worker-" + name + ".log"))
	require.NoError(h.t, err)
	cmd.Stdout, cmd.Stderr = out, out
	require.NoError(h.t, cmd.Start())
	h.t.Cleanup(func() {
		require.NoError(h.t, end(cmd))
		require.NoError(h.t, out.Close())
		if raw, err := os.ReadFile(out.Name()); err == nil && h.t.Failed() {
			h.t.Logf("worker %s:\n%s", name, raw)
		}
	})
	until(h.t, "worker "+name+" is ready", func() bool {
		st, err := host.Read(h.dir("state-" + name))
		return err == nil && st.Worker != nil
	})
}

// install writes an agent that logs its calls.
func (h *hosts) install(path string) {
	h.t.Helper()
	require.NoError(h.t, os.MkdirAll(filepath.Dir(path), 0o700))
	script := "#!/bin/sh\ncat >/dev/null\necho " + filepath.Base(filepath.Dir(path)) + " >>" + h.log +
		"\necho An answer.\n"
	require.NoError(h.t, os.WriteFile(path+".new", []byte(script), 0o700))
	require.NoError(h.t, os.Rename(path+".new", path))
}

func (h *hosts) calls() []string {
	h.t.Helper()
	raw, err := os.ReadFile(h.log)
	if !os.IsNotExist(err) {
		require.NoError(h.t, err)
	}
	return strings.Fields(string(raw))
}

// begin starts a run whose directory is on the first host.
func (h *hosts) begin(name string) string {
	h.t.Helper()
	folder := h.dir("pipeline-" + name)
	require.NoError(h.t, os.MkdirAll(folder, 0o700))
	require.NoError(h.t, os.WriteFile(filepath.Join(folder, "p.md"), []byte("Do "+name+".\n"), 0o600))
	definition := strings.ReplaceAll(twoAgents, "BETA", h.beta)
	require.NoError(h.t, os.WriteFile(filepath.Join(folder, "p.yaml"), []byte(definition), 0o600))
	dir := h.dir("run-" + name)
	h.starter("run", "--config", filepath.Join(folder, "p.yaml"), "--output-dir", dir, "--detach")
	return dir
}

func (h *hosts) done(dir string) {
	h.t.Helper()
	until(h.t, dir+" is done", func() bool { return statusIs(dir, run.Done) })
	events := eventsOf(h.t, dir)
	require.Empty(h.t, of[run.RunPaused](events, run.KindRunPaused))
	for _, at := range of[run.PassAttempt](events, run.KindPassAttempt) {
		require.Equal(h.t, run.CategoryLost, at.Category, "a missing program or store is no attempt")
	}
}

// TestTwoHosts finishes runs whose agents are on different hosts, without a resume: what a host lacks is never the
// outcome of a call.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	url, gate := fakes3.StartGated(t)
	h := &hosts{environment: newEnv(t, "PASSBOOK_STORE="+url)}
	h.log, h.beta = h.dir("calls.log"), h.dir("bin-b/my beta.sh")
	h.starter("server", "start")
	server := h.running().Server
	h.env = append(append(h.env, server.Env()...), "PASSBOOK_STATE_DIR="+h.dir("state-a"))

	// A host without credentials takes no work.
	h.startHost("c", "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=")
	h.install(h.dir("bin-a/alpha"))
	h.startHost("a")
	dir := h.begin("first")
	until(t, "host a has made the first call", func() bool { return len(h.calls()) == 1 })
	until(t, "status names what is missing", func() bool {
		return strings.Contains(h.starter("status", dir), "no worker that reaches the store s3://passbook?") &&
			strings.Contains(h.starter("status", dir), "has the program "+h.beta)
	})
	output, code := h.try("doctor")
	require.Equal(t, 3, code)
	require.Contains(t, output, "has the program "+h.beta)
	unreached, err := host.ReadCapabilities(h.dir("state-c"))
	require.NoError(t, err)
	require.Empty(t, unreached.Queues)
	require.NotEmpty(t, unreached.Stores[0].Missing)

	// The agent is installed on host b, whose worker runs already.
	h.startHost("b")
	h.install(h.beta)
	h.done(dir)
	require.Equal(t, []string{"bin-a", "bin-b", "bin-a"}, h.calls()[:3])
	require.ElementsMatch(t, []string{"bin-a", "bin-b"}, h.calls()[3:])

	// While the store is away a run waits; it does not fail.
	last := h.begin("second")
	until(t, "the second run is under way", func() bool { return len(h.calls()) > 5 })
	gate.Close()
	until(t, "no host takes work", func() bool {
		for _, name := range []string{"a", "b"} {
			c, err := host.ReadCapabilities(h.dir("state-" + name))
			if err != nil || len(c.Stores) == 0 || c.Stores[0].Missing == "" {
				return false
			}
		}
		return true
	})
	require.False(t, statusIs(last, run.Failed))
	gate.Open()
	until(t, "the run is done", func() bool { return statusIs(last, run.Done) })
}
