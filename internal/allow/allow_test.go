package allow

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
)

func TestAsks(t *testing.T) {
	offered, missing := sandbox.Host{}, sandbox.Host{Problem: "no bubblewrap"}
	for name, row := range map[string]struct {
		mode     string // the setting
		host     sandbox.Host
		programs []string
		asked    pipeline.Confinement
		agent    []string
		command  []string
	}{
		"the default":               {"", offered, nil, pipeline.Confinement{}, nil, nil},
		"more than the default":     {"", offered, nil, pipeline.Confinement{Sandbox: "strict"}, nil, nil},
		"none":                      {"", offered, nil, pipeline.Confinement{Sandbox: "none"}, []string{"sandbox: none"}, []string{"sandbox: none"}},
		"none where nothing else":   {"", missing, nil, pipeline.Confinement{Sandbox: "none"}, nil, nil},
		"none in the settings":      {"none", offered, nil, pipeline.Confinement{Sandbox: "none"}, nil, nil},
		"workspace under strict":    {"strict", offered, nil, pipeline.Confinement{Sandbox: "workspace"}, []string{"sandbox: workspace"}, []string{"sandbox: workspace"}},
		"open under strict":         {"strict", offered, nil, pipeline.Confinement{Network: []string{"open"}}, []string{"network: open"}, []string{"network: open"}},
		"this host under strict":    {"strict", offered, nil, pipeline.Confinement{Network: []string{"example.org", "10.1.2.3:80"}}, []string{"network: example.org, 10.1.2.3:80"}, []string{"network: example.org, 10.1.2.3:80"}},
		"addresses under strict":    {"strict", offered, nil, pipeline.Confinement{Network: []string{"example.org", "8.8.8.8:53"}}, nil, nil},
		"a program beside the list": {"", offered, []string{"claude"}, pipeline.Confinement{}, nil, []string{"a program that policy.agents does not list"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := On(config.Sandbox{Mode: row.mode}, row.programs, "", row.host)
			require.Equal(t, row.agent, f.OfAgent(pipeline.Agent{Run: []string{"a"}, Confinement: row.asked}).Asks)
			require.Equal(t, row.command, f.OfReceiver(pipeline.Notify{Run: []string{"a"}, Confinement: row.asked}).Asks)
			require.Equal(t, row.command, f.OfStep(pipeline.PlanStep{Run: "a", Confinement: row.asked}).Asks)
		})
	}
}

func TestInstallerIsARequest(t *testing.T) {
	f := On(config.Sandbox{}, nil, "", sandbox.Host{})
	plan := pipeline.Plan{Stages: []pipeline.PlanStage{{Rounds: []pipeline.PlanRound{
		{Steps: []pipeline.PlanStep{{Shots: &pipeline.Screenshots{Install: []string{"get", "browser"}}}}},
		{Steps: []pipeline.PlanStep{{Shots: &pipeline.Screenshots{Install: []string{"get", "browser"}}}}},
	}}}}
	require.Equal(t, []Request{{"the installer of a browser", []string{"get", "browser"}, []string{"sandbox: none"}}},
		f.Requests(&plan), "each once")
}

// A confirmation is for a repository, a digest, and what it lists.
func TestConfirmed(t *testing.T) {
	f := On(config.Sandbox{}, nil, t.TempDir(), sandbox.Host{})
	asked := f.OfAgent(pipeline.Agent{Run: []string{"a"}, Confinement: pipeline.Confinement{Sandbox: "none"}})
	other := f.OfAgent(pipeline.Agent{Run: []string{"b"}, Confinement: pipeline.Confinement{Sandbox: "none"}})
	c := Confirmation{Repository: "/repository", Digest: strings.Repeat("d", 64), Requests: []Request{asked}}
	confirmed := func(c Confirmation) bool {
		ok, err := f.Confirmed(c)
		require.NoError(t, err)
		return ok
	}
	require.False(t, confirmed(c))
	require.Error(t, f.Allow(asked))
	file, err := f.Confirm(c)
	require.NoError(t, err)
	require.True(t, confirmed(c))
	require.NoError(t, f.Allow(asked))
	require.Error(t, f.Allow(other))

	for name, change := range map[string]func(*Confirmation){
		"repository": func(c *Confirmation) { c.Repository = "/elsewhere" },
		"digest":     func(c *Confirmation) { c.Digest = strings.Repeat("e", 64) },
		"request":    func(c *Confirmation) { c.Requests = []Request{asked, other} },
	} {
		different := c
		change(&different)
		require.False(t, confirmed(different), name)
	}
	require.NoError(t, os.WriteFile(file, []byte(`{"version": 7}`), 0o600))
	_, err = f.Confirmed(c)
	require.ErrorContains(t, err, "it has version 7, and this program knows 1")
	require.Error(t, f.Allow(asked))
}
