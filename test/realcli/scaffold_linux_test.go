package realcli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/scaffold"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestAgentsOfInitWriteFiles runs the commands of `starter init` with the real programs, in the default sandbox and
// with the default settings of the programs: each runs the command or the tool that its model asks for.
func TestAgentsOfInitWriteFiles(t *testing.T) {
	host := sandbox.Examine()
	if host.Problem != "" {
		t.Skip("there is no sandbox here: " + host.Problem)
	}
	tools := map[string]func(file string) (string, any){
		"claude": func(file string) (string, any) {
			return "Bash", map[string]string{"command": "echo hello >" + file, "description": "Write"}
		},
		"codex": func(file string) (string, any) {
			return "exec_command", map[string]string{"cmd": "echo hello >" + file}
		},
		"gemini": func(file string) (string, any) {
			return "run_shell_command", map[string]string{"command": "echo hello >" + file, "description": "Write"}
		},
	}
	for i, cli := range All() {
		t.Run(cli.Name, func(t *testing.T) {
			t.Parallel()
			a := scaffold.Agents("linux")[i]
			require.Equal(t, cli.Name, a.Name)
			var definition struct {
				Agent struct{ Run []string }
			}
			require.NoError(t, yaml.Unmarshal([]byte(a.YAML), &definition))
			program := installed(t, cli)
			root := t.TempDir()
			named := filepath.Join(root, cli.Name) // the sandbox shows the login of a program by its name
			script := "#!/bin/sh\nexec '" + strings.Join(program, "' '") + "' \"$@\"\n"
			require.NoError(t, os.WriteFile(named, []byte(script), 0o700))
			delivery, home := filepath.Join(root, "call"), filepath.Join(root, "home")
			work := filepath.Join(delivery, "work")
			for _, dir := range []string{work, home} {
				require.NoError(t, os.MkdirAll(dir, 0o700))
			}
			require.NoError(t, os.WriteFile(filepath.Join(delivery, "prompt"), []byte("Write a greeting."), 0o600))
			tool, input := tools[cli.Name](filepath.Join(work, "greeting.txt"))
			api := cli.API(modelapi.Turn{Text: "I write it.", Tool: tool, Input: input},
				modelapi.Turn{Text: "Done.", Times: modelapi.Always})
			t.Cleanup(api.Close)
			require.NoError(t, cli.WriteHome(home, api.URL))
			defaultTrust(t, home)
			self, err := os.Executable()
			require.NoError(t, err)
			p, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
			require.NoError(t, err)
			env := append(cli.Environ(api.URL), "PATH="+os.Getenv("PATH"), "HOME="+home, "GEMINI_MODEL=gemini-2.5-flash")
			c := agent.Command{
				Argv: append([]string{named}, definition.Agent.Run[1:]...), Environment: env,
				Env: []string{"CODEX_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GEMINI_MODEL"},
				Dir: work, Prompt: filepath.Join(delivery, "prompt"), Stdout: filepath.Join(delivery, "stdout"),
				Stderr: filepath.Join(delivery, "stderr"), Mark: delivery, Timeout: time.Minute,
				Sandbox: &sandbox.Call{Held: sandbox.Held{Mode: sandbox.Workspace, Network: []string{sandbox.Internet, strings.TrimPrefix(api.URL, "http://")}},
					Bwrap: host.Bwrap, Delivery: delivery, Supervisor: []string{self, supervisor.Verb}, Read: []string{named, filepath.Dir(program[len(program)-1])}},
			}
			stdout := printed(t, p, c)
			require.Contains(t, string(stdout), "Done.")
			written, err := os.ReadFile(filepath.Join(work, "greeting.txt"))
			require.NoError(t, err, "%s", stdout)
			require.Equal(t, "hello\n", string(written))
		})
	}
}

// defaultTrust removes what Gemini CLI does not have by default: trust in every folder.
func defaultTrust(t *testing.T, home string) {
	t.Helper()
	path := filepath.Join(home, ".gemini", "settings.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		return // another program
	}
	text := strings.Replace(string(raw), `, "folderTrust": {"enabled": false}`, "", 1)
	require.NotEqual(t, string(raw), text)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}
