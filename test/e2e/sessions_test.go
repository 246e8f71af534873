package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
	"github.com/passbook-run/passbook/test/realcli"
)

var (
	sessionKills  = flag.Int("session.kills", 0, "kills of each program in TestKilledAgentsContinue")
	sessionRandom = flag.Int("session.random", 8, "kills of TestSessionsSurviveRandomKills")
)

// realAgent is a real command line with its own model API and home.
type realAgent struct {
	t    *testing.T
	api  *modelapi.API
	argv []string // of the agent in a definition

	program []string
}

// newRealAgent installs a command line if it is missing. Its model calls the shell tool in each turn, and then answers.
func newRealAgent(t *testing.T, cli realcli.CLI, tool, argument string, flags ...string) *realAgent {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := cli.Install(ctx); err != nil {
		t.Skip(err)
	}
	program, err := cli.Argv()
	if err != nil {
		t.Skip(err)
	}
	var turns []modelapi.Turn
	for i := range max(6, 5**sessionKills-4) { // each kill waits for two answers, and more may come until it is gone
		turns = append(turns, modelapi.Turn{Text: "I work.", Tool: tool, Delay: 200 * time.Millisecond,
			Input: map[string]string{argument: fmt.Sprintf("echo %d >>work.txt; sleep 0.1", i), "description": "Work"}})
	}
	a := &realAgent{t: t, api: cli.API(append(turns, modelapi.Turn{Text: "All is done."})...)}
	t.Cleanup(a.api.Close)
	a.api.ByResults()
	root := t.TempDir()
	home := filepath.Join(root, "home")
	require.NoError(t, os.MkdirAll(home, 0o700))
	a.program, a.argv = program, append([]string{filepath.Join(root, cli.Name)}, flags...)
	require.NoError(t, a.shim(cli, home))
	return a
}

// shim points the command line at the API and a home.
func (a *realAgent) shim(cli realcli.CLI, home string) error {
	script := "#!/bin/sh\nexport HOME=" + home + "\nexport " + strings.Join(cli.Environ(a.api.URL), "\nexport ") +
		"\nexec " + strings.Join(a.program, " ") + ` "$@"` + "\n"
	return errors.Join(cli.WriteHome(home, a.api.URL), os.WriteFile(a.argv[0], []byte(script), 0o700))
}

func yamlWords(words []string) string {
	var all []string
	for _, w := range words {
		all = append(all, strconv.Quote(w))
	}
	return strings.Join(all, ", ")
}

// definition writes a pipeline of one pass, and returns its file.
func (a *realAgent) definition(dir, reply, onInterrupt string) string {
	a.t.Helper()
	for name, text := range map[string]string{"task.md": "Do the work.\n", "pipeline.yaml": fmt.Sprintf(`pipeline: session
agent: {run: [%s], reply: %s, on_interrupt: %s}
limits: {timeout: 2m, attempts: 20, backoff: {first: 10ms, max: 20ms}}
roles: {worker: {prompt: task.md, gives: report}}
stages: [{name: work, steps: [{role: worker}]}]
`, yamlWords(a.argv), reply, onInterrupt)} {
		require.NoError(a.t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return filepath.Join(dir, "pipeline.yaml")
}

// answered returns how many requests of the conversation the API has answered.
func (a *realAgent) answered() int {
	n := 0
	for _, e := range a.api.Log() {
		if e.Turn > 0 && e.Outcome == modelapi.Completed {
			n++
		}
	}
	return n
}

// repeated returns how many answered requests were sent again: the model gets no further than before.
func (a *realAgent) repeated() int {
	n, most := 0, -1
	for _, e := range a.api.Log() {
		if e.Turn == 0 {
			continue
		}
		if e.Results <= most {
			n++
		}
		if e.Outcome == modelapi.Completed {
			most = max(most, e.Results)
		}
	}
	return n
}

// supervised returns the supervisor of the running call, or zero if there is none.
func (h *environment) supervised() process.Identity {
	living, err := supervisor.Running(filepath.Join(h.state(), "scratch"))
	require.NoError(h.t, err)
	if len(living) == 0 {
		return process.Identity{}
	}
	return living[len(living)-1].Process
}

// endAgent kills the agent of a supervisor, and not the supervisor.
func endAgent(id process.Identity) {
	_ = exec.Command("pkill", "-KILL", "-P", strconv.Itoa(id.PID)).Run() // it may have ended
}

// realAgentRow is a real command line, with its shell tool and flags.
type realAgentRow struct {
	cli            realcli.CLI
	tool, argument string
	reply          string
	flags          []string
}

func realAgents() []realAgentRow {
	return []realAgentRow{
		{realcli.Claude(), "Bash", "command", "claude-stream", []string{"-p", "--output-format", "stream-json", "--verbose",
			"--include-partial-messages", "--allowedTools", "Bash"}},
		{realcli.Codex(), "exec_command", "cmd", "codex-jsonl", []string{"exec", "--json", "--skip-git-repo-check",
			"--dangerously-bypass-approvals-and-sandbox"}},
		{realcli.Gemini(), "run_shell_command", "command", "gemini-stream", []string{"-m", "gemini-2.5-pro",
			"--approval-mode", "yolo", "--skip-trust", "-o", "stream-json"}},
	}
}

// TestKilledAgentsContinue kills calls of the real command lines at random moments: the agent, or its supervisor with
// it. Each call continues its session, so the model is asked again for at most one answer per kill. It runs in the
// exhaustive form only: TestRealAgentsContinueSessionsOfRoles kills each program once.
func TestKilledAgentsContinue(t *testing.T) {
	if *sessionKills == 0 {
		t.Skip("part of make test-all")
	}
	t.Parallel()
	for _, row := range realAgents() {
		t.Run(row.cli.Name, func(t *testing.T) {
			t.Parallel()
			a := newRealAgent(t, row.cli, row.tool, row.argument, row.flags...)
			h := newEnv(t)
			dir := h.dir("run")
			h.starter("run", "--config", a.definition(h.root, row.reply, "continue"), "--output-dir", dir, "--detach")
			a.killAtRandom(h, *sessionKills)
			untilDone(t, dir, a.answered)
			require.Contains(t, string(read(t, dir+"/_orchestrator/passes/pass-001/raw-output.txt")), "All is done.")
			t.Logf("%s: %d requests, %d sent again", row.cli.Name, len(a.api.Log()), a.repeated())
			require.LessOrEqual(t, a.repeated(), *sessionKills)
			require.NotEmpty(t, of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd)[0].ResumedFrom)
			h.noAgents()
		})
	}
}

// untilDone waits until a run is done, as long as it gets further.
func untilDone(t *testing.T, dir string, progress func() int) {
	t.Helper()
	whileFurther(t, "the run is done", func() bool { return statusIs(dir, run.Done) }, progress)
}

// whileFurther waits until something holds, as long as the progress grows.
func whileFurther(t *testing.T, what string, holds func() bool, progress func() int) {
	t.Helper()
	for !holds() {
		before := progress()
		until(t, fmt.Sprintf("%s, or the progress is more than %d", what, before), func() bool {
			return holds() || progress() > before
		})
	}
}

// killAtRandom kills the call of a run that often, each time after it has progressed.
func (a *realAgent) killAtRandom(h *environment, kills int) {
	a.t.Helper()
	for n := range kills {
		before := a.answered()
		var id process.Identity
		until(a.t, "the call progresses", func() bool {
			id = h.supervised()
			return id.PID != 0 && a.answered() >= before+2
		})
		after(time.Duration(rand.Int63n(int64(300 * time.Millisecond)))) // anywhere in an answer or a tool
		if n%2 == 0 {
			endAgent(id)
		} else {
			_ = syscall.Kill(id.PID, syscall.SIGKILL)
		}
		until(a.t, "it is gone", func() bool { return h.supervised() != id })
	}
}

// replayed is a program like claude. Its model needs 200 ms for each of ten answers; the session is stored with each.
const replayed = `#!/bin/sh
[ "$1" = --version ] && exec echo 2.1.330
cat >/dev/null
dir=DIR id= n=0
while [ $# -gt 0 ]; do [ "$1" = --resume ] && id=$2; shift; done
if [ -n "$id" ]; then n=$(cat "$dir/session-$id") || exit 1; else id=s-$$-$(date +%N); fi
printf '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\n' "$id"
while [ "$n" -lt 10 ]; do
	echo "$id $n" >>"$dir/asked"
	sleep 0.2
	printf '{"type":"assistant","message":{"id":"m-%s-%s","model":"m","content":[],' "$id" "$n"
	echo '"usage":{"input_tokens":10,"output_tokens":5}}}'
	n=$((n+1))
	echo "$n" >"$dir/session-$id.new" && mv "$dir/session-$id.new" "$dir/session-$id"
done
printf '{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"%s",' "$id"
echo '"total_cost_usd":0.01,"usage":{"input_tokens":100,"output_tokens":50}}'
echo "$id done" >>"$dir/asked"
`

// TestSessionsSurviveRandomKills kills agents, supervisors, workers and servers at random moments of a run. Every pass
// has one session from its beginning to its answer, no answered call is repeated, and each kill costs at most one
// request to the model.
func TestSessionsSurviveRandomKills(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	program := filepath.Join(h.root, "claude")
	require.NoError(t, os.WriteFile(program, []byte(strings.ReplaceAll(replayed, "DIR", h.root)), 0o700))
	passes := max(2, *sessionRandom/2)
	for name, text := range map[string]string{"task.md": "Do the work.\n", "pipeline.yaml": fmt.Sprintf(`pipeline: session
agent: {run: [%s], reply: claude-stream}
limits: {timeout: 2m, attempts: 20, backoff: {first: 10ms, max: 20ms}}
roles: {worker: {prompt: task.md, gives: report}}
stages: [{name: work, steps: [%s]}]
`, program, strings.TrimSuffix(strings.Repeat("{role: worker}, ", passes), ", "))} {
		require.NoError(t, os.WriteFile(filepath.Join(h.root, name), []byte(text), 0o600))
	}
	dir := h.dir("run")
	h.starter("run", "--config", filepath.Join(h.root, "pipeline.yaml"), "--output-dir", dir, "--detach")
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	kills := map[string]int{}
	for range *sessionRandom {
		var id process.Identity
		until(t, "a call runs", func() bool { id = h.supervised(); return id.PID != 0 || statusIs(dir, run.Done) })
		if id.PID == 0 {
			break
		}
		after(time.Duration(random.Int63n(int64(600 * time.Millisecond)))) // anywhere in a call
		switch n := random.Intn(8); {
		case n == 0:
			kills["server"]++
			h.kill(h.server())
			h.starter("server", "start")
		case n < 3:
			kills["worker"]++
			h.kill(h.worker())
			h.starter("server", "start")
		case n < 5:
			kills["supervisor"]++
			_ = syscall.Kill(id.PID, syscall.SIGKILL)
		default:
			kills["agent"]++
			endAgent(id)
		}
	}
	untilDone(t, dir, func() int { return len(of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd)) })
	sum, again := 0, 0
	seen, sessions, done := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(string(read(t, filepath.Join(h.root, "asked")))) {
		session, n, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case n == "done":
			require.False(t, done[session], "an answered call was repeated")
			done[session] = true
		case seen[line]:
			again++
		}
		seen[line], sessions[session] = true, true
	}
	for _, n := range kills {
		sum += n
	}
	t.Logf("%v: %d passes, %d sessions, %d requests sent again", kills, passes, len(sessions), again)
	require.Len(t, done, passes)
	require.LessOrEqual(t, len(sessions)-passes, kills["agent"]+kills["supervisor"], "killed before it had a session")
	require.LessOrEqual(t, again, sum)
	h.noAgents()
}
