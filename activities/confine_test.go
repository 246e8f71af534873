package activities

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

func TestClaimRecordsSandbox(t *testing.T) {
	for name, row := range map[string]struct {
		mode string
		host sandbox.Host
		want sandbox.Held
	}{
		"workspace": {"", sandbox.Examine(), sandbox.Held{Mode: sandbox.Workspace, Network: []string{sandbox.Internet}}},
		"none":      {sandbox.None, sandbox.Examine(), sandbox.Held{Mode: sandbox.None, Network: []string{sandbox.HostNetwork}}},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "workspace" && row.host.Problem != "" {
				t.Skip(row.host.Problem)
			}
			h := newHarness(t, "answer")
			h.acts.cfg.Sandbox.Mode, h.acts.offers = row.mode, func() sandbox.Host { return row.host }
			h.accepted()
			require.Equal(t, row.want, h.claims()[0].Sandbox)
		})
	}
}

func TestNoCallStartsWithoutItsSandbox(t *testing.T) {
	h := newHarness(t, "answer")
	h.acts.cfg.Sandbox.Mode = ""
	h.acts.offers = func() sandbox.Host { return sandbox.Host{Problem: "no bubblewrap", Fix: "install it"} }
	res := h.result()
	require.Equal(t, run.CategorySpawnFailed, res.Outcome)
	require.Contains(t, res.Message, "sandbox workspace: this host does not offer it: no bubblewrap; install it")
	require.Zero(t, h.started())
}

// TestPortsOfPassbookStayClosed: neither a definition nor a variable opens them.
func TestPortsOfPassbookStayClosed(t *testing.T) {
	for name, row := range map[string]struct {
		network []string
		environ string
		refused string
	}{
		"an address":              {[]string{"127.0.0.1:8400"}, "", "127.0.0.1:8400"},
		"a name":                  {[]string{sandbox.Internet, "localhost:8400"}, "", "localhost:8400"},
		"in IPv6":                 {[]string{"[::1]:8400"}, "", "[::1]:8400"},
		"a variable":              {nil, "ANTHROPIC_BASE_URL=http://127.0.0.1:8400/v1", "127.0.0.1:8400"},
		"the server of a cluster": {[]string{"Temporal:7233"}, "", "Temporal:7233"},
		"a pattern of it":         {[]string{"*.corp.example:7233"}, "", "*.corp.example:7233"},
		"a variable of it":        {nil, "ANTHROPIC_BASE_URL=http://temporal:7233/v1", "temporal:7233"},
		"another port":            {[]string{"127.0.0.1:8401"}, "", ""},
		"the port of another":     {[]string{"api.example.com:8400"}, "", ""},
		"a variable of another":   {nil, "ANTHROPIC_BASE_URL=http://127.0.0.1:9000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			h.acts.cfg.Own = func() ([]string, error) {
				return []string{"k7f3q2.localhost:1", "127.0.0.1:8400", "temporal:7233", "t.corp.example:7233"}, nil
			}
			h.acts.offers = func() sandbox.Host { return sandbox.Host{Bwrap: "/usr/bin/bwrap", Isolation: true} }
			cmd := agent.Command{Environment: []string{row.environ}}
			h.acts.confine(&cmd, pipeline.Confinement{Sandbox: sandbox.Workspace, Network: row.network}, allow.Request{},
				"run-1", h.dir)
			if row.refused == "" {
				require.NoError(t, cmd.Refused)
				return
			}
			require.ErrorContains(t, cmd.Refused, "network: "+row.refused+" leads to Passbook")
		})
	}
}

func TestCommandsGetNoVariablesOfAgents(t *testing.T) {
	ag, ok := agentOf(&pipeline.Plan{}, pipeline.PlanStep{Kind: pipeline.KindRun, Run: "env", Env: []string{"MINE"}},
		pipeline.Role{})
	require.True(t, ok)
	c := agent.Command{
		Argv: ag.Run, Env: ag.Env, Shell: true, Dir: "/",
		Environment: []string{"ANTHROPIC_API_KEY=k", "CLAUDE_CODE_OAUTH_TOKEN=t", "MINE=1", "HOME=/h"},
	}
	require.Equal(t, []string{"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "HOME=/h", "MINE=1", "PWD=/"}, c.Environ())
}

// TestRunsAreHidden hides the folder with the directory of the run, and with those of others.
func TestRunsAreHidden(t *testing.T) {
	h := newHarness(t, "answer")
	h.acts.cfg.StateDir = t.TempDir()
	require.Empty(t, h.acts.runFolder("run-1"))
	require.NoError(t, os.Mkdir(filepath.Join(h.acts.cfg.StateDir, "index"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(h.acts.cfg.StateDir, "index", "run-1"), []byte("/work/runs/a\n"), 0o600))
	h.acts.cfg.Sandbox.Mode = ""
	h.acts.offers = func() sandbox.Host { return sandbox.Host{Bwrap: "/usr/bin/bwrap", Isolation: true} }
	var cmd agent.Command
	h.acts.confine(&cmd, pipeline.Confinement{}, allow.Request{}, "run-1", h.dir)
	require.Contains(t, cmd.Sandbox.Hidden, "/work/runs")
}

// A process outside the settings starts only after an operator of this host confirmed it, whatever started the run.
func TestProcessesStayInTheSettings(t *testing.T) {
	none := pipeline.Confinement{Sandbox: sandbox.None}
	notified := pipeline.Notify{Run: []string{"true"}, Timeout: 10 * time.Second, Confinement: none}
	for name, start := range map[string]func(h *harness) error{
		"agent": func(h *harness) error {
			if res := h.result(); res.Outcome != run.CategoryOK {
				return errors.New(res.Message)
			}
			return nil
		},
		"command of a receiver": func(h *harness) error {
			return h.acts.notifyCommand(h.t.Context(), notified, contract.NotifyInput{}, "", nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, "answer")
			h.yaml = strings.Replace(h.yaml, "reply: claude-json,", "reply: claude-json, sandbox: none,", 1)
			h.lay()
			h.acts.cfg.StateDir = t.TempDir()
			h.acts.offers = func() sandbox.Host { return sandbox.Host{Bwrap: "/usr/bin/bwrap"} }
			require.ErrorContains(t, start(h), "asks for sandbox: none")
			require.Zero(t, h.started())

			plan := must(h.acts.plan(t.Context(), h.s, h.plan))(t)
			plan.Notify = []pipeline.Notify{notified}
			own := h.acts.bounds()
			must(own.Confirm(allow.Confirmation{Digest: strings.Repeat("a", 64), Requests: own.Requests(plan)}))(t)
			h.in.Call += "-again"
			require.NoError(t, start(h))
		})
	}
}
