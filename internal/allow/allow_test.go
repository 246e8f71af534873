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
	asksNetwork := func(text string) []string { return []string{"network: " + text} }
	for name, row := range map[string]struct {
		settings config.Sandbox
		programs []string
		asked    pipeline.Confinement
		agent    []string
		command  []string
	}{
		"the default":             {config.Sandbox{}, nil, pipeline.Confinement{}, nil, nil},
		"more than the default":   {config.Sandbox{}, nil, pipeline.Confinement{Sandbox: "strict"}, nil, nil},
		"none":                    {config.Sandbox{}, nil, pipeline.Confinement{Sandbox: "none"}, []string{"sandbox: none"}, []string{"sandbox: none"}},
		"none in the settings":    {config.Sandbox{Mode: "none"}, nil, pipeline.Confinement{Sandbox: "none"}, nil, nil},
		"workspace under strict":  {config.Sandbox{Mode: "strict"}, nil, pipeline.Confinement{Sandbox: "workspace"}, []string{"sandbox: workspace"}, []string{"sandbox: workspace"}},
		"internet":                {config.Sandbox{}, nil, pipeline.Confinement{Network: []string{"internet"}}, nil, nil},
		"public addresses":        {config.Sandbox{Mode: "strict"}, nil, pipeline.Confinement{Network: []string{"example.org", "8.8.8.8:53"}}, nil, nil},
		"none of a network":       {config.Sandbox{Network: []string{"a:1"}}, nil, pipeline.Confinement{Network: []string{"none"}}, nil, nil},
		"a private address":       {config.Sandbox{}, nil, pipeline.Confinement{Network: []string{"internet", "10.1.2.3:80"}}, asksNetwork("internet, 10.1.2.3:80"), asksNetwork("internet, 10.1.2.3:80")},
		"a port of this host":     {config.Sandbox{}, nil, pipeline.Confinement{Network: []string{"127.0.0.1:5432"}}, asksNetwork("127.0.0.1:5432"), asksNetwork("127.0.0.1:5432")},
		"localhost":               {config.Sandbox{}, nil, pipeline.Confinement{Network: []string{"localhost:5432"}}, asksNetwork("localhost:5432"), asksNetwork("localhost:5432")},
		"IPv6":                    {config.Sandbox{}, nil, pipeline.Confinement{Network: []string{"[::1]:5432"}}, asksNetwork("[::1]:5432"), asksNetwork("[::1]:5432")},
		"a port of the settings":  {config.Sandbox{Network: []string{"internet", "localhost:5432"}}, nil, pipeline.Confinement{Network: []string{"localhost:5432"}}, nil, nil},
		"network of the host":     {config.Sandbox{Network: []string{"host"}}, nil, pipeline.Confinement{Network: []string{"localhost:5432"}}, nil, nil},
		"internet beyond a list":  {config.Sandbox{Network: []string{"a:1"}}, nil, pipeline.Confinement{Network: []string{"internet"}}, asksNetwork("internet"), asksNetwork("internet")},
		"addresses beyond a list": {config.Sandbox{Network: []string{"a:1"}}, nil, pipeline.Confinement{Network: []string{"a:1", "b:1"}}, asksNetwork("a:1, b:1"), asksNetwork("a:1, b:1")},
		"a program beside the list": {config.Sandbox{}, []string{"claude"}, pipeline.Confinement{}, nil,
			[]string{"a program that policy.agents does not list"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := On(row.settings, row.programs, "")
			require.Equal(t, row.agent, f.OfAgent(pipeline.Agent{Run: []string{"a"}, Confinement: row.asked}).Asks)
			require.Equal(t, row.command, f.OfReceiver(pipeline.Notify{Run: []string{"a"}, Confinement: row.asked}).Asks)
			require.Equal(t, row.command, f.OfStep(pipeline.PlanStep{Run: "a", Confinement: row.asked}).Asks)
		})
	}
}

func TestInstallerIsARequest(t *testing.T) {
	f := On(config.Sandbox{}, nil, "")
	plan := pipeline.Plan{Stages: []pipeline.PlanStage{{Rounds: []pipeline.PlanRound{
		{Steps: []pipeline.PlanStep{{Shots: &pipeline.Screenshots{Install: []string{"get", "browser"}}}}},
		{Steps: []pipeline.PlanStep{{Shots: &pipeline.Screenshots{Install: []string{"get", "browser"}}}}},
	}}}}
	require.Equal(t, []Request{{"the installer of a browser", []string{"get", "browser"}, []string{"sandbox: none"}}},
		f.Requests(&plan), "each once")
}

// A confirmation is for a repository, a digest, and what it lists.
func TestConfirmed(t *testing.T) {
	f := On(config.Sandbox{}, nil, t.TempDir())
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
	t.Chdir(f.StateDir) // a repository could have the folder
	nowhere := On(config.Sandbox{}, nil, "")
	ok, err := nowhere.Confirmed(c)
	require.NoError(t, err)
	require.False(t, ok)
	require.Error(t, nowhere.Allow(asked))

	require.NoError(t, os.WriteFile(file, []byte(`{"version": 7}`), 0o600))
	_, err = f.Confirmed(c)
	require.ErrorContains(t, err, "it has version 7, and this program knows 1")
	require.Error(t, f.Allow(asked))
}

// TestUnsafeArgumentsAreARequest: those of an agent that is used by name.
func TestUnsafeArgumentsAreARequest(t *testing.T) {
	f := On(config.Sandbox{}, nil, "")
	for word, want := range map[string][]string{
		"--dangerously-skip-permissions": {"args: --dangerously-skip-permissions"},
		"bypassPermissions":              {"args: bypassPermissions"},
		"--settings={}":                  {"args: --settings={}"},
		"--settings":                     {"args: --settings"},
		"--add-dir":                      nil,
		"--mcp-config":                   {"args: --mcp-config"},
		"--plugin-dir":                   {"args: --plugin-dir"},
	} {
		p, _ := pipeline.PresetOf("claude")
		a := pipeline.Agent{Use: "claude", Run: p.Argv(pipeline.Choice{Args: []string{word, "{}"}})}
		require.Equal(t, want, f.OfAgent(a).Asks, word)
	}
	codex, _ := pipeline.PresetOf("codex")
	for _, word := range []string{`mcp_servers.x.command="sh"`, `notify=["sh"]`, "--profile", `sandbox_mode="x"`, "--yolo"} {
		a := pipeline.Agent{Use: "codex", Run: codex.Argv(pipeline.Choice{Args: []string{"-c", word}})}
		require.Equal(t, []string{"args: " + word}, f.OfAgent(a).Asks)
	}
	require.Empty(t, f.OfAgent(pipeline.Agent{Use: "codex", Run: codex.Argv(pipeline.Choice{})}).Asks)
}

// TestNoDefinitionHasTheModeOfAgentsAlone: it would run what it names without a sandbox.
func TestNoDefinitionHasTheModeOfAgentsAlone(t *testing.T) {
	f, own := On(config.Sandbox{}, nil, ""), pipeline.Confinement{Sandbox: "own"}
	codex, _ := pipeline.PresetOf("codex")
	for _, r := range []Request{
		f.OfAgent(pipeline.Agent{Use: "codex", Run: codex.Argv(pipeline.Choice{}), Confinement: own}),
		f.OfStep(pipeline.PlanStep{Run: "a", Confinement: own}), f.OfReceiver(pipeline.Notify{Run: []string{"a"}, Confinement: own}),
	} {
		require.Equal(t, []string{"sandbox: own"}, r.Asks)
	}
	_, err := sandbox.Decide(sandbox.Request{Mode: "own"}, sandbox.Host{Isolation: true})
	require.ErrorContains(t, err, "own is no mode that a definition can ask for")
}

// TestAgentsAloneOnHostsWithoutASandbox: only those that no one gave a mode.
func TestAgentsAloneOnHostsWithoutASandbox(t *testing.T) {
	codex, _ := pipeline.PresetOf("codex")
	a := pipeline.Agent{Use: "codex", Run: codex.Argv(pipeline.Choice{})}
	none := sandbox.Host{Problem: "no namespaces"}
	require.Equal(t, "own", Alone(a, "", none).Sandbox)
	require.Equal(t, a, Alone(a, "", sandbox.Host{}))
	require.Equal(t, a, Alone(a, "none", none))
	a.Sandbox = "strict"
	require.Equal(t, a, Alone(a, "", none))
}
