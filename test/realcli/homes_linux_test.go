package realcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/test/modelapi"
)

// logins are the files with which the programs log in, and what of them the model API gets. URL is its address.
var logins = map[string]map[string]string{
	"claude": {
		".claude/.credentials.json": `{"claudeAiOauth":{"accessToken":"from-file","refreshToken":"r",` +
			`"expiresAt":9999999999999,"scopes":["user:inference","user:profile"],"subscriptionType":"pro"}}`,
		".claude.json": `{"hasCompletedOnboarding":true,"mcpServers":{"secret":{"command":"secret-server"}}}`,
	},
	"codex": {
		".codex/auth.json": `{"OPENAI_API_KEY":"from-file"}`,
		".codex/config.toml": `model = "gpt-5.5"
model_provider = "loopback"
[mcp_servers.secret]
command = "secret-server"
[model_providers.loopback]
name = "loopback"
base_url = "URL/v1"
requires_openai_auth = true
wire_api = "responses"
`,
	},
	"gemini": {
		".gemini/.env": "GEMINI_API_KEY=from-file\n",
		".gemini/settings.json": `{ // comment
"security": {"auth": {"selectedType": "gemini-api-key"}}, "mcpServers": {"secret": {"command": "secret-server"}}}`,
	},
}

// TestLoginsAndSessionsInSandbox: each program logs in with its file in a sandbox, and continues the conversation of a
// call in another one, with its messages.
func TestLoginsAndSessionsInSandbox(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip("there is no sandbox here: " + host.Problem)
	}
	for _, kind := range []string{adapter.ClaudeStream, adapter.CodexJSONL, adapter.GeminiStream} {
		f := forms()[kind]
		t.Run(f.cli.Name, func(t *testing.T) {
			t.Parallel()
			p := f.start(t, modelapi.Turn{Text: "Done.", Times: modelapi.Always})
			for file, text := range logins[f.cli.Name] {
				path := filepath.Join(p.home, file)
				require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
				require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(text, "URL", p.api.URL)), 0o600))
			}
			ad, _ := adapter.Find(kind)
			program := sessions.Program{Name: f.cli.Name, Environ: []string{"HOME=" + p.home}}
			state := filepath.Join(p.root, "state")
			first, second := filepath.Join(p.root, "one", "work"), filepath.Join(p.root, "two", "work")
			id := ad.Read([]byte(p.confined(host, f.args, first, "The word is heron."))).Session
			kept, err := program.Keep(state, "run", id)
			require.NoError(t, err)
			c, err := program.CopyKept(state, kept, id, second)
			require.NoError(t, err)
			id = c.ID
			for range 2 { // the next call of the role, and its second delivery after the first one died
				argv, ok := ad.Resume(append([]string{f.cli.Name}, f.args...), id)
				require.True(t, ok)
				id = ad.Read([]byte(p.confined(host, argv[1:], second, "Which word?"))).Session
				asked, _ := p.api.Asked()
				require.Equal(t, "from-file", asked[len(asked)-1].Key)
				require.Contains(t, string(asked[len(asked)-1].Body), "The word is heron.")
				require.NotContains(t, string(asked[len(asked)-1].Body), "secret-server")
			}
		})
	}
}

// confined calls the program in a strict sandbox that reaches the model API, with the login of its home only, and
// returns its output.
func (p *place) confined(host sandbox.Host, args []string, work, prompt string) string {
	p.t.Helper()
	program := installed(p.t, p.cli)
	named := filepath.Join(p.root, "bin", p.cli.Name) // the sandbox shows the login of a program by its name
	require.NoError(p.t, os.MkdirAll(filepath.Dir(named), 0o700))
	require.NoError(p.t, os.WriteFile(named, []byte("#!/bin/sh\nexec '"+strings.Join(program, "' '")+"' \"$@\"\n"), 0o700))
	p.calls++
	delivery := filepath.Join(p.root, "call", string(rune('0'+p.calls)))
	require.NoError(p.t, os.MkdirAll(delivery, 0o700))
	require.NoError(p.t, os.MkdirAll(work, 0o700))
	require.NoError(p.t, os.WriteFile(filepath.Join(delivery, "prompt"), []byte(prompt), 0o600))
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.home}
	var names []string
	for _, pair := range p.cli.Environ(p.api.URL) {
		if key, _, _ := strings.Cut(pair, "="); !strings.HasSuffix(key, "_API_KEY") {
			env, names = append(env, pair), append(names, key)
		}
	}
	self, err := os.Executable()
	require.NoError(p.t, err)
	s, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(p.t, err)
	c := agent.Command{
		Argv: append([]string{named}, args...), Env: names, Environment: env, Dir: work,
		Prompt: filepath.Join(delivery, "prompt"), Stdout: filepath.Join(delivery, "stdout"),
		Stderr: filepath.Join(delivery, "stderr"), Mark: delivery, Timeout: time.Minute,
		Sandbox: &sandbox.Call{Held: sandbox.Held{Mode: sandbox.Strict, Network: []string{strings.TrimPrefix(p.api.URL, "http://")}},
			Bwrap: host.Bwrap, Delivery: delivery, Supervisor: []string{self, supervisor.Verb}, Read: []string{named, filepath.Dir(program[len(program)-1])}},
	}
	child, err := agent.Start(s, c)
	require.NoError(p.t, err)
	exit, err := child.Result()
	require.NoError(p.t, err)
	stdout := p.file(delivery, "stdout")
	require.Zero(p.t, exit.Code, "%s\n%s", stdout, p.file(delivery, "stderr"))
	return stdout
}
