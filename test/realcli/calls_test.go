package realcli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
)

// form is one way to call a command line: what its adapter reads.
type form struct {
	adapter string
	cli     CLI
	args    []string
	tool    string // that runs a shell command
	command string // name of its argument
}

func forms() map[string]form {
	claude := []string{"-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash", "--output-format"}
	codex := []string{"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
	gemini := []string{"-m", "gemini-2.5-pro", "--approval-mode", "yolo", "--skip-trust", "-o"}
	all := map[string]form{}
	for _, f := range []form{
		{adapter.ClaudeStream, Claude(), slices.Concat(claude, []string{
			"stream-json", "--verbose", "--include-partial-messages"}), "Bash", "command"},
		{adapter.ClaudeJSON, Claude(), slices.Concat(claude, []string{"json"}), "Bash", "command"},
		{adapter.CodexJSONL, Codex(), codex, "exec_command", "cmd"},
		{adapter.GeminiStream, Gemini(), slices.Concat(gemini, []string{"stream-json"}), "run_shell_command", "command"},
		{adapter.GeminiJSON, Gemini(), slices.Concat(gemini, []string{"json"}), "run_shell_command", "command"},
	} {
		all[f.adapter] = f
	}
	return all
}

// shell is a turn that runs a command.
func (f form) shell(text, command string, usage modelapi.Tokens) modelapi.Turn {
	return modelapi.Turn{Text: text, Usage: usage, Tool: f.tool,
		Input: map[string]string{f.command: command, "description": "Run"}}
}

// place is where the calls of a test run.
type place struct {
	form
	t          *testing.T
	root       string
	home, work string
	api        *modelapi.API
	calls      int
}

func (f form) start(t *testing.T, turns ...modelapi.Turn) *place {
	t.Helper()
	p := &place{form: f, t: t, root: t.TempDir(), api: f.cli.API(turns...)}
	t.Cleanup(p.api.Close)
	p.home, p.work = filepath.Join(p.root, "home"), filepath.Join(p.root, "work")
	for _, dir := range []string{p.home, p.work} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, exec.Command("git", "init", "-q", p.work).Run())
	require.NoError(t, f.cli.WriteHome(p.home, p.api.URL))
	return p
}

// outcome is what a call left.
type outcome struct {
	exit           agent.Exit
	stdout, stderr string
}

// call calls the program as Passbook does. until is nil, or returns when the call is to be ended; it gets the file of
// its standard output.
func (p *place) call(args []string, until func(stdout string)) outcome {
	p.t.Helper()
	program := installed(p.t, p.cli)
	p.calls++
	delivery := filepath.Join(p.root, "call", string(rune('0'+p.calls)))
	require.NoError(p.t, os.MkdirAll(delivery, 0o700))
	prompt := filepath.Join(delivery, "prompt")
	require.NoError(p.t, os.WriteFile(prompt, []byte("Do what was described.\n"), 0o600))
	environment := append(p.cli.Environ(p.api.URL), "PATH="+os.Getenv("PATH"), "HOME="+p.home, "TMPDIR="+delivery)
	var names []string
	for _, pair := range environment {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	self, err := os.Executable()
	require.NoError(p.t, err)
	s, err := supervisor.Start([]string{self, supervisor.Verb}, delivery, nil)
	require.NoError(p.t, err)
	child, err := agent.Start(s, agent.Command{
		Argv: slices.Concat(program, args), Env: names, Environment: environment, Dir: p.work, Prompt: prompt,
		Stdout: filepath.Join(delivery, "stdout"), Stderr: filepath.Join(delivery, "stderr"), Mark: delivery,
		Timeout: 2 * time.Minute,
	})
	require.NoError(p.t, err)
	if until != nil {
		until(filepath.Join(delivery, "stdout"))
		require.NoError(p.t, child.Kill("end of test"))
	}
	exit, err := child.Result()
	require.NoError(p.t, err)
	return outcome{exit, p.file(delivery, "stdout"), p.file(delivery, "stderr")}
}

// saved reports whether a file of the home, such as a session, contains a text.
func (p *place) saved(text string) (found bool) {
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".jsonl" {
			return nil // what the program is removing
		}
		data, err := os.ReadFile(path)
		found = found || err == nil && bytes.Contains(data, []byte(text))
		return nil
	})
	return found && err == nil
}

func (p *place) file(names ...string) string {
	data, err := os.ReadFile(filepath.Join(names...))
	require.NoError(p.t, err)
	return string(data)
}

// prices are those of models without a reported cost.
var prices = price.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}

func (p *place) read(o outcome) (agent.Reply, *agent.Failure) {
	return agent.ReadReply(p.adapter, []byte(o.stdout), o.exit, o.stderr, agent.Prices{Own: &prices}, 100)
}

// counted returns the tokens that the model API reported.
func (p *place) counted() (sum run.Tokens) {
	for _, e := range p.api.Log() {
		sum.Input += int64(e.Input)
		sum.Output += int64(e.Output)
		sum.CacheRead += int64(e.CacheRead)
		sum.CacheWrite += int64(e.CacheWrite)
	}
	return sum
}

// requireCost requires that a reply has the tokens that the model API counted, and their cost. If known is not exact,
// the reply may have fewer, and must not be exact.
func (p *place) requireCost(r agent.Reply, o outcome, known run.CostKnown) {
	p.t.Helper()
	counted := p.counted()
	if known == run.CostExact {
		require.Equal(p.t, run.CostExact, r.Known, "%+v", r)
		require.Equal(p.t, counted, r.Tokens)
	}
	require.False(p.t, known != run.CostExact && r.Known == run.CostExact, "%+v, counted %+v", r, counted)
	require.LessOrEqual(p.t, r.Tokens.Input, counted.Input)
	require.LessOrEqual(p.t, r.Tokens.CacheRead, counted.CacheRead)
	require.LessOrEqual(p.t, r.Tokens.CacheWrite, counted.CacheWrite)
	cut := func(e modelapi.Entry) bool { return e.Outcome == modelapi.Cut }
	if !slices.ContainsFunc(p.api.Log(), cut) { // claude may estimate the output of an answer that was cut off
		require.LessOrEqual(p.t, r.Tokens.Output, counted.Output)
	}
	if r.Known != run.CostUnknown {
		require.InDelta(p.t, cmp.Or(dollars(o.stdout), prices.Cost(r.Tokens)), r.CostUSD, 1e-6)
	}
}

// dollars returns the cost that claude reports, or 0.
func dollars(stdout string) (usd float64) {
	for line := range strings.Lines(stdout) {
		var result struct {
			CostUSD float64 `json:"total_cost_usd"`
		}
		if json.Unmarshal([]byte(line), &result) == nil {
			usd = max(usd, result.CostUSD)
		}
	}
	return usd
}
