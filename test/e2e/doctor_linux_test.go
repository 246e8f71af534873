package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/sandbox"
)

// TestDoctorAsksTheWorker: the worker asks an agent for its version and login as it would call it, in the sandbox and
// with the environment of the terminal, also if the worker was started with another one. Without a worker the doctor
// reports that it asked the agent itself.
func TestDoctorAsksTheWorker(t *testing.T) {
	t.Parallel()
	if problem := sandbox.Examine().Problem; problem != "" {
		t.Skip(problem)
	}
	h := newEnv(t)
	bin, home := h.dir("bin"), h.dir("home")
	for _, dir := range []string{bin, home} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(bin, "codex"), []byte(`#!/bin/sh
case "$1" in
--version) echo "1.2 of ${PASSBOOK_DELIVERY##*/scratch/}";;
--help) echo "  login  Log in"; ls -a "$HOME" "`+h.root+`" >&2;;
login) [ -e "$HOME/.codex/auth.json" ] && [ ! -e "$HOME/private" ];;
esac
`), 0o700))
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".codex"), 0o700))
	for _, name := range []string{"private", ".codex/auth.json"} {
		require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte("{}"), 0o600))
	}
	definition := filepath.Join(h.root, "pipeline.yaml")
	require.NoError(t, os.WriteFile(filepath.Join(h.root, "task.md"), []byte("Do the work.\n"), 0o600))
	require.NoError(t, os.WriteFile(definition, []byte(`pipeline: small
agent: {run: [codex, exec, --json], reply: codex-jsonl, sandbox: workspace}
roles: {worker: {prompt: task.md, gives: report}}
stages: [{name: work, steps: [{role: worker}]}]
`), 0o600))
	check := func(args ...string) map[string]host.Check {
		out, _ := h.try(append([]string{"doctor", "--agents", "--json", "--config", definition}, args...)...)
		var r host.Report
		require.NoError(t, json.Unmarshal([]byte(out), &r), out)
		all := map[string]host.Check{}
		for _, c := range r.Checks {
			all[c.Name] = c
		}
		return all
	}
	h.starter("server", "start")
	worker := h.worker()
	h.env = append(h.env, "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home, "XDG_CACHE_HOME="+cacheHome(t))
	all := check()
	require.Equal(t, host.OK, all["asked by"].State, all["asked by"].Detail)
	require.Contains(t, all["asked by"].Detail, "the environment of this terminal")
	require.Equal(t, host.OK, all["codex"].State, all["codex"].Detail)
	require.Regexp(t, `/bin/codex: 1\.2 of brief-\d+/1, logged in \(sandbox: workspace, network internet\)$`,
		all["codex"].Detail)
	require.Equal(t, worker, h.worker())
	left, err := filepath.Glob(filepath.Join(h.state(), "scratch", "brief-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	left, err = filepath.Glob(filepath.Join(h.state(), "environ", "*"))
	require.NoError(t, err)
	require.Empty(t, left)

	require.NoError(t, os.Remove(filepath.Join(home, ".codex", "auth.json")))
	all = check()
	require.Equal(t, host.Problem, all["codex"].State)
	require.Equal(t, "codex login", all["codex"].Fix)

	h.starter("server", "stop")
	all = check()
	require.Equal(t, host.Unchecked, all["asked by"].State)
	require.Contains(t, all["asked by"].Detail, "no worker runs on this machine")
	require.Equal(t, host.Problem, all["codex"].State, "the home shows no login")
}
