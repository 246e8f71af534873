package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/test/modelapi"
)

// TestRealAgentsContinueSessionsOfRoles has three roles take turns, each with a real command line. In its second and
// third call each knows what it answered before, and is billed for that call only. The first call of each is killed
// while a tool runs: what it cost until then is counted once, in tokens and in USD.
func TestRealAgentsContinueSessionsOfRoles(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	home := h.dir("home")
	require.NoError(t, os.Mkdir(home, 0o700))
	h.env = append(h.env, "HOME="+home, "XDG_CACHE_HOME="+cacheHome(t))
	usage := []modelapi.Tokens{{Input: 1234, Output: 567, CacheRead: 890}, {Input: 11, Output: 22, CacheRead: 9000},
		{Input: 333, Output: 44, CacheRead: 5}}
	killed := modelapi.Tokens{Input: 4321, Output: 765, CacheRead: 98}
	apis := map[string]*modelapi.API{}
	var agents, roles, steps strings.Builder
	for _, row := range realAgents() {
		a := newRealAgent(t, row.cli, row.tool, row.argument, row.flags...)
		a.api.Close()
		a.api = row.cli.API()
		t.Cleanup(a.api.Close)
		turns := []modelapi.Turn{{Text: "I begin.", Tool: row.tool, Usage: killed, Input: map[string]string{
			row.argument: "touch begun-" + row.cli.Name + "; sleep 60", "description": "Begin"}}}
		for i, u := range usage {
			turns = append(turns, modelapi.Turn{Text: fmt.Sprintf("Answer %d of %s.", i+1, row.cli.Name), Usage: u})
		}
		a.api.Script(turns...)
		require.NoError(t, a.shim(row.cli, home))
		apis[row.cli.Name] = a.api
		if row.cli.Name == "codex" {
			a.argv = append(a.argv, "-m", "gpt-5.5")
		}
		fmt.Fprintf(&agents, "  %s: {run: [%s], reply: %s}\n", row.cli.Name, yamlWords(a.argv), row.reply)
		fmt.Fprintf(&roles, "  %s: {prompt: task.md, gives: report, agent: %[1]s, session: continue}\n", row.cli.Name)
		fmt.Fprintf(&steps, "{role: %s}, ", row.cli.Name)
	}
	all := strings.TrimSuffix(strings.Repeat(steps.String(), len(usage)), ", ")
	for name, text := range map[string]string{"task.md": "Do the work.\n",
		"pipeline.yaml": "pipeline: conversation\nagents:\n" + agents.String() +
			"limits: {timeout: 2m, attempts: 3, backoff: {first: 10ms, max: 20ms}}\nroles:\n" +
			roles.String() + "stages: [{name: work, steps: [" + all + "]}]\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(h.root, name), []byte(text), 0o600))
	}
	dir := h.dir("run")
	h.starter("run", "--config", filepath.Join(h.root, "pipeline.yaml"), "--output-dir", dir, "--detach")
	for _, row := range realAgents() {
		var id process.Identity
		until(t, "the tool of "+row.cli.Name+" runs", func() bool {
			found, err := filepath.Glob(filepath.Join(h.state(), "scratch", "*", "*", "work", "begun-"+row.cli.Name))
			id = h.supervised()
			return err == nil && len(found) > 0 && id.PID != 0
		})
		if row.cli.Name == "gemini" {
			require.NoError(t, syscall.Kill(id.PID, syscall.SIGKILL))
		} else {
			endAgent(id)
		}
	}
	untilDone(t, dir, func() int { return len(of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd)) })
	requireCounted(t, dir, apis)
	n := map[string]int{}
	before := map[string]string{}
	for _, end := range of[run.PassEnd](eventsOf(t, dir), run.KindPassEnd) {
		i := n[end.Role]
		n[end.Role]++
		require.Empty(t, end.Validation.Warnings)
		require.NotNil(t, end.Session)
		require.True(t, i == 0 && end.ResumedFrom != "" || before[end.Role] == end.ResumedFrom, "%s, call %d", end.Role, i+1)
		before[end.Role] = end.Session.ID
		want := run.Tokens{Input: int64(usage[i].Input), Output: int64(usage[i].Output), CacheRead: int64(usage[i].CacheRead)}
		require.Equal(t, want, end.Spend.Tokens, "%s, call %d", end.Role, i+1)
		require.True(t, end.Role != "claude" || end.Spend.Known == run.CostExact, "codex names no model")
		asked, _ := apis[end.Role].Asked()
		require.Len(t, asked, 1+len(usage))
		for k := range usage {
			require.Equal(t, k < i, strings.Contains(string(asked[1+i].Body), fmt.Sprintf("Answer %d of %s.", k+1, end.Role)),
				"%s, call %d knows answer %d", end.Role, i+1, k+1)
		}
	}
	require.Equal(t, map[string]int{"claude": 3, "codex": 3, "gemini": 3}, n)
	for name, flags := range map[string]string{"claude": " -p", "gemini": " --skip-trust -m gemini-2.5-pro"} {
		session := regexp.MustCompile(`(?m)^Session: +(.+)  # ` + name + `$`)
		command := session.FindStringSubmatch(h.starter("status", "-v", dir))[1]
		cmd := exec.Command("sh", "-c", command+flags)
		cmd.Stdin, cmd.Env = strings.NewReader("What did you answer?"), append(os.Environ(), h.env...)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		asked, _ := apis[name].Asked()
		require.Contains(t, string(asked[4].Body), fmt.Sprintf("Answer 3 of %s.", name))
	}
}

// requireCounted requires that a run has all tokens that the model APIs counted, and that they cost what the prices of
// the models say. claude reports the amount for each call.
func requireCounted(t *testing.T, dir string, apis map[string]*modelapi.API) {
	t.Helper()
	got := map[string]run.Spend{}
	events := eventsOf(t, dir)
	for _, at := range of[run.PassAttempt](events, run.KindPassAttempt) {
		if at.Spend != nil {
			got[at.Role] = got[at.Role].Plus(*at.Spend)
		}
	}
	for _, end := range of[run.PassEnd](events, run.KindPassEnd) {
		require.True(t, end.Role != "claude" || !end.Spend.Estimated && len(end.Spend.Prices) == 0, "its own figure")
		got[end.Role] = got[end.Role].Plus(end.Spend)
	}
	for name, api := range apis {
		var sum run.Spend
		for _, e := range api.Log() {
			p, known := price.Known().Find(e.Model)
			require.True(t, known, "%s: model %s", name, e.Model)
			tokens := run.Tokens{Input: int64(e.Input), Output: int64(e.Output), CacheRead: int64(e.CacheRead),
				CacheWrite: int64(e.CacheWrite)}
			sum = sum.Plus(run.Spend{Tokens: tokens, USD: p.Cost(tokens)})
		}
		require.Equal(t, sum.Tokens, got[name].Tokens, name)
		require.InDelta(t, sum.USD, got[name].USD, 1e-6, name)
	}
}
