package agent

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/sandbox"
)

// homes is what the programs have in a home. WORK is the working directory of a call. Nothing with SECRET is of the
// call: tokens of MCP servers, and conversations and entries of other projects.
var homes = map[string]struct {
	files                  map[string]string
	login, talk, own, kept string // paths: the login; another conversation; one of the call; settings that it needs
}{
	"claude": {map[string]string{
		".claude.json": `{"mcpServers":{"passbook":{"headers":{"Authorization":"Bearer SECRET"}}},"oauthAccount":"kept",` +
			`"projects":{"/other":{"history":["SECRET"]},"WORK":{"allowedTools":[],"mcpServers":{"x":{"env":"SECRET"}}}}}`,
		".claude/.credentials.json":         "login",
		".claude/projects/-other/one.jsonl": "SECRET",
		".claude/history.jsonl":             "SECRET",
	}, ".claude/.credentials.json", ".claude/projects/-other/one.jsonl", ".claude/projects/DASHES/two.jsonl",
		".claude.json"},
	"codex": {map[string]string{
		".codex/config.toml": "model = 'kept'\nmcp_servers.b.url = 'SECRET'\n[mcp_servers.a]\nbearer_token = 'SECRET'\n" +
			"[projects.'/SECRET']\ntrust_level = 'trusted'\n[model_providers.p]\nbase_url = 'u'\n",
		".codex/auth.json": "login",
		".codex/sessions/2026/01/02/rollout-one.jsonl": "SECRET",
		".codex/history.jsonl":                         "SECRET",
	}, ".codex/auth.json", ".codex/sessions/2026/01/02/rollout-one.jsonl", ".codex/sessions/2026/01/02/rollout-two.jsonl",
		".codex/config.toml"},
	"gemini": {map[string]string{
		".gemini/settings.json": "{ // SECRET\n\"model\": {\"name\": \"kept\", \"url\": \"https://x/*y*/\"}, /* SECRET */\n" +
			"\"mcpServers\": {\"a\": {\"env\": {\"T\": \"SECRET\"}}}}",
		".gemini/trustedFolders.json":            `{"/": "TRUST_FOLDER", "/SECRET": "TRUST_FOLDER"}`,
		".gemini/oauth_creds.json":               "login",
		".gemini/tmp/other/chats/session-1.json": "SECRET",
		".gemini/tmp/other/shell_history":        "SECRET",
	}, ".gemini/oauth_creds.json", ".gemini/tmp/other/chats/session-1.json", ".gemini/tmp/FOLDER/chats/session-2.json",
		".gemini/settings.json"},
}

// TestCallsSeeNothingOfOtherProjects: an agent searches its home for secrets of MCP servers and conversations of other
// projects, and changes what it can write. The login that it refreshes and its own conversation are on the host
// afterwards, and the next call in its working directory finds them.
func TestCallsSeeNothingOfOtherProjects(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip(host.Problem)
	}
	for name, h := range homes {
		for _, mode := range []string{sandbox.Workspace, sandbox.Strict} {
			t.Run(name+" "+mode, func(t *testing.T) {
				root := t.TempDir()
				home, program, work := filepath.Join(root, "home"), filepath.Join(root, "bin", name), filepath.Join(root, "work")
				names := strings.NewReplacer("WORK", work, "DASHES",
					strings.TrimPrefix(sandbox.Folder(work), "passbook"),
					"FOLDER", sandbox.Folder(work))
				write := func(path, text string, mode os.FileMode) {
					require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
					require.NoError(t, os.WriteFile(path, []byte(text), mode))
				}
				for file, text := range h.files {
					write(filepath.Join(home, file), names.Replace(text), 0o600)
				}
				require.NoError(t, os.MkdirAll(work, 0o700))
				call := func(script string) string {
					write(program, "#!/bin/sh\ncd \"$HOME\"\n"+names.Replace(script), 0o700)
					delivery, err := os.MkdirTemp(root, "call-")
					require.NoError(t, err)
					c := commandIn(delivery, "")
					c.Argv, c.Dir, c.Environment = []string{program}, work, []string{"PATH=/usr/bin:/bin", "HOME=" + home}
					c.Mark = delivery
					c.Sandbox = &sandbox.Call{Held: sandbox.Held{Mode: mode, Network: []string{sandbox.Closed}},
						Bwrap: host.Bwrap, Delivery: delivery}
					require.Zero(t, result(t, start(t, c)).Code, read(t, c.Stderr))
					return read(t, c.Stdout)
				}
				own := filepath.Dir(h.own)
				require.Empty(t, call(`grep -rl SECRET . 
					echo planted 2>/dev/null >>`+h.talk+`; echo planted 2>/dev/null >>.`+name+`/planted
					grep -q kept `+h.kept+` || echo "no settings"
					echo refreshed >`+h.login+`; mkdir -p `+own+`; echo talk >`+h.own))
				require.Equal(t, "refreshed\n", read(t, filepath.Join(home, h.login)))
				for file, text := range h.files {
					if file != h.login {
						require.Equal(t, names.Replace(text), read(t, filepath.Join(home, file)))
					}
				}
				require.NoFileExists(t, filepath.Join(home, "."+name, "planted"))
				require.Equal(t, "refreshed\ntalk\n", call(`cat `+h.login+` `+h.own))
			})
		}
	}
}

// TestSettingsOfTheServiceAreHidden: a worker of the package runs as a separate user, who can read the credentials in
// /etc/passbook. The test runs again as such a user, with another /etc.
func TestSettingsOfTheServiceAreHidden(t *testing.T) {
	const file, inside = "/etc/passbook/environment", "AGENT_TEST_OF_SERVICE"
	if os.Getenv(inside) == "" {
		for _, program := range []string{"unshare", "setpriv", "bwrap"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip(err)
			}
		}
		etc := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(etc, "passbook"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(etc, "passbook", "environment"), []byte("SECRET\n"), 0o600))
		cmd := exec.Command("unshare", "-U", "--map-user=1000", "--map-group=1000", "--keep-caps", "-m", "sh", "-c",
			`cp /etc/ld.so.cache "$1"; mount --bind "$1" /etc && exec setpriv --ambient-caps -all --inh-caps -all "$2" \
				-test.v -test.run "^$3\$"`, "sh", etc, os.Args[0], t.Name())
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "unshare failed") {
			t.Skip(string(out))
		}
		require.NoError(t, err, string(out))
		require.Contains(t, string(out), "--- PASS")
		return
	}
	require.Equal(t, 1000, os.Geteuid())
	require.Equal(t, "SECRET\n", read(t, file))
	for _, mode := range []string{sandbox.Workspace, sandbox.Strict} {
		c := confined(t, "cat "+file)
		c.Sandbox.Mode = mode
		require.Equal(t, 1, result(t, start(t, c)).Code, read(t, c.Stdout))
	}
}
