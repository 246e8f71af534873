package realcli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestAgentsByNameWriteFiles runs the agents that definitions name with the real programs, in the default sandbox and
// with the default settings of the programs: each runs the command or the tool that its model asks for, and its requests
// have the model and the effort that the definition chooses.
func TestAgentsByNameWriteFiles(t *testing.T) {
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
	choices := map[string]struct {
		choice pipeline.Choice
		body   string
	}{
		"claude": {pipeline.Choice{Model: "claude-opus-4-6", Effort: "low"}, `"effort":"low"`},
		"codex":  {pipeline.Choice{Model: "gpt-5.1-codex", Effort: "high"}, `"effort":"high"`},
		"gemini": {pipeline.Choice{Model: "gemini-2.5-pro"}, ""},
	}
	for i, cli := range All() {
		t.Run(cli.Name, func(t *testing.T) {
			t.Parallel()
			preset := pipeline.Presets()[i]
			require.Equal(t, cli.Name, preset.Name)
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
			env := append(cli.Environ(api.URL), "PATH="+os.Getenv("PATH"), "HOME="+home)
			c := agent.Command{
				Argv: append([]string{named}, preset.Argv(choices[cli.Name].choice)[1:]...), Environment: env,
				Env: []string{"CODEX_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
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
			asked, _ := api.Asked()
			require.Equal(t, choices[cli.Name].choice.Model, asked[len(asked)-1].Model)
			require.Contains(t, string(asked[len(asked)-1].Body), choices[cli.Name].body)
		})
	}
}

// TestCodexIsHeldByItsOwnSandbox on a host that offers none: its command writes into the folder of the call and nowhere
// else.
func TestCodexIsHeldByItsOwnSandbox(t *testing.T) {
	i := slices.IndexFunc(All(), func(c CLI) bool { return c.Name == "codex" })
	cli := All()[i]
	program := installed(t, cli)
	preset, _ := pipeline.PresetOf("codex")
	argv, alone := pipeline.Agent{Use: "codex", Run: preset.Argv(pipeline.Choice{})}.Alone("linux")
	require.True(t, alone)
	root, err := os.MkdirTemp("/var/tmp", "passbook-codex-") // codex lets commands write to TMPDIR and /tmp
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	delivery, home, outside := filepath.Join(root, "call"), filepath.Join(root, "home"), filepath.Join(root, "outside")
	work := filepath.Join(delivery, "work")
	for _, dir := range []string{work, home, outside} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(delivery, "prompt"), []byte("Write a greeting."), 0o600))
	command := "echo hello >greeting.txt; echo hello >" + outside + "/greeting.txt"
	api := cli.API(modelapi.Turn{Text: "I write it.", Tool: "exec_command", Input: map[string]string{"cmd": command}},
		modelapi.Turn{Text: "Done.", Times: modelapi.Always})
	t.Cleanup(api.Close)
	require.NoError(t, cli.WriteHome(home, api.URL))
	self, err := os.Executable()
	require.NoError(t, err)
	p, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(t, err)
	stdout := printed(t, p, agent.Command{
		Argv: append(program, argv[1:]...), Env: []string{"CODEX_API_KEY"}, Dir: work,
		Environment: append(cli.Environ(api.URL), "PATH="+os.Getenv("PATH"), "HOME="+home),
		Prompt:      filepath.Join(delivery, "prompt"), Stdout: filepath.Join(delivery, "stdout"),
		Stderr: filepath.Join(delivery, "stderr"), Mark: delivery, Timeout: time.Minute,
	})
	require.Contains(t, string(stdout), "Done.")
	require.FileExists(t, filepath.Join(work, "greeting.txt"), "%s", stdout)
	require.NoFileExists(t, filepath.Join(outside, "greeting.txt"), "%s", stdout)
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
