package workflows_test

import (
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/rundir"
)

var record = flag.Bool("record", false, "record the histories of testdata/histories afresh")

func TestRecord(t *testing.T) {
	if !*record {
		t.Skip("histories are recorded with -record only")
	}
	starter := filepath.Join(t.TempDir(), "starter")
	output(t, nil, "go", "build", "-o", starter, "../starter")
	commit := strings.TrimSpace(output(t, nil, "git", "rev-parse", "--short", "HEAD"))
	require.NoError(t, os.MkdirAll(histories, 0o755))
	for name, show := range map[string]func(t *testing.T) []*historypb.History{
		"tiny": func(t *testing.T) []*historypb.History { return runAndShow(t, starter, nil) },
		"tiny-cut": func(t *testing.T) []*historypb.History {
			return runAndShow(t, starter, []string{"PASSBOOK_CONTINUE_AFTER=9"})
		},
		"tiny-reopened": func(t *testing.T) []*historypb.History { return reopenAndShow(t, starter) },
		"review":        func(t *testing.T) []*historypb.History { return reviewAndShow(t, starter) },
		"scheduled":     func(t *testing.T) []*historypb.History { return scheduleAndShow(t, starter) },
		"limited":       func(t *testing.T) []*historypb.History { return limitAndShow(t, starter) },
		"account":       func(t *testing.T) []*historypb.History { return accountAndShow(t, starter) },
	} {
		t.Run(name, func(t *testing.T) {
			all := show(t)
			old, err := filepath.Glob(filepath.Join(histories, name+"-[0-9]-*.json.gz"))
			require.NoError(t, err)
			for _, path := range old {
				require.NoError(t, os.Remove(path))
			}
			for i, h := range all {
				keep(t, filepath.Join(histories, fmt.Sprintf("%s-%d-%s.json.gz", name, i+1, commit)), h)
			}
		})
	}
}

// limitAndShow gives the history of a run that waits for a rate limit, a usage limit whose fallback answers, and a
// usage limit that an operator does not wait for.
func limitAndShow(t *testing.T, starter string) []*historypb.History {
	t.Helper()
	ctx, root := context.Background(), t.TempDir()
	state, dir := filepath.Join(root, "state"), filepath.Join(root, "run")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	const definition = "pipeline: limited\nagent: {run: [scripted], env: [PASSBOOK_FAULTS]}\nagents:\n  other: {run: " +
		"[scripted], env: [PASSBOOK_FAULTS]}\nlimits: {wait: {first: 100ms}}\nroles:\n  reader: {prompt: read.md, gives: " +
		"report}\n  lucky: {prompt: read.md, gives: report, limits: {fallback: [other]}}\nstages:\n  - name: read\n" +
		"    steps: [{role: reader}, {role: lucky}, {role: reader}]\n"
	const faults = "- {at: 1, do: rate_limit}\n- {at: 2, do: is_error, text: \"You've hit your limit · resets in 3h\"}\n" +
		"- {at: 3, do: is_error, text: \"You've hit your limit · resets in 3h\"}\n"
	for name, text := range map[string]string{"p.yaml": definition, "read.md": "Read.\n", "faults.yaml": faults} {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	env := []string{"PASSBOOK_STATE_DIR=" + state, "PASSBOOK_FAULTS=" + filepath.Join(root, "faults.yaml")}
	output(t, env, starter, "run", "--config", filepath.Join(root, "p.yaml"), "--output-dir", dir, "--detach")
	await(t, dir, func(m rundir.Meta) bool {
		return m.State.Limited != nil && m.State.Passes.LastSettled == 2
	})
	output(t, env, starter, "resume", dir, "--now")
	c := dialed(t, state)
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	require.NoError(t, c.GetWorkflow(ctx, claim.RunID, "").Get(ctx, nil))
	return []*historypb.History{show(t, c, claim.RunID, "")}
}

// scheduleAndShow gives the histories of what a schedule has started: of a run that came to its end, of one that
// was cancelled with it, and of a start that was refused.
func scheduleAndShow(t *testing.T, starter string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	state, definition := filepath.Join(root, "state"), filepath.Join(root, "pipeline.yaml")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	const asks = "pipeline: scheduled\nagent: {run: [scripted]}\nroles:\n  worker: {prompt: prompt.md, gives: " +
		"report}\nstages:\n  - name: work\n    steps:\n      - ask: Shall we?\n      - role: worker\n"
	for name, text := range map[string]string{definition: asks, filepath.Join(root, "prompt.md"): "Work.\n"} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	env := []string{"PASSBOOK_STATE_DIR=" + state, "PASSBOOK_RUN_ROOT=" + filepath.Join(root, "runs")}
	output(t, env, starter, "schedule", "create", "nightly", "--cron", "0 2 * * *", "--config", definition, "--paused")
	c := dialed(t, state)
	var all []*historypb.History
	for n, finish := range []func(dir string){
		func(dir string) { output(t, env, starter, "decide", dir, "--action", "halt") },
		func(string) { require.NoError(t, c.CancelWorkflow(ctx, newest(t, c), "")) },
	} {
		output(t, env, starter, "schedule", "trigger", "nightly")
		dirs, err := filepath.Glob(filepath.Join(root, "runs", "nightly-*"))
		require.NoError(t, err)
		require.Len(t, dirs, n+1)
		await(t, dirs[n], func(m rundir.Meta) bool { _, open := m.State.Asks(); return open })
		finish(dirs[n])
		_ = c.GetWorkflow(ctx, newest(t, c), "").Get(ctx, nil) // the history is what counts
		all = append(all, show(t, c, newest(t, c), ""))
	}
	require.NoError(t, os.Remove(definition))
	require.NoError(t, c.ScheduleClient().GetHandle(ctx, "nightly").Trigger(ctx, client.ScheduleTriggerOptions{}))
	require.Eventually(t, func() bool {
		return !strings.HasSuffix(all[1].Events[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId(),
			newest(t, c))
	}, time.Minute, 20*time.Millisecond)
	require.Error(t, c.GetWorkflow(ctx, newest(t, c), "").Get(ctx, nil))
	return append(all, show(t, c, newest(t, c), ""))
}

// newest is the id of the newest workflow of the schedule.
func newest(t *testing.T, c client.Client) string {
	t.Helper()
	d, err := c.ScheduleClient().GetHandle(context.Background(), "nightly").Describe(context.Background())
	require.NoError(t, err)
	require.NotEmpty(t, d.Info.RecentActions)
	return d.Info.RecentActions[len(d.Info.RecentActions)-1].StartWorkflowResult.WorkflowID
}

// reopenAndShow gives the histories of a run that was cancelled in a call and went on in a second epoch.
func reopenAndShow(t *testing.T, starter string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	state, dir, faults := t.TempDir(), filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "faults.yaml")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	require.NoError(t, os.WriteFile(faults, []byte("- {at: 5, do: slow, seconds: 600}\n"), 0o600))
	env := []string{"PASSBOOK_STATE_DIR=" + state, "PASSBOOK_FAULTS=" + faults}
	output(t, env, starter, "run", "--config", "../examples/corpus/corpus-tiny.yaml", "--output-dir", dir, "--detach")
	c := dialed(t, state)
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	await(t, dir, func(m rundir.Meta) bool { return m.State.Passes.LastSettled == 4 && len(m.State.InFlight) == 1 })
	require.Eventually(t, func() bool { // the slow call has begun, so the next one will be quick
		begun, err := os.ReadFile(faults + ".attempts")
		return err == nil && strings.HasSuffix(strings.TrimSpace(string(begun)), "005")
	}, time.Minute, 20*time.Millisecond)
	first, err := c.DescribeWorkflow(ctx, claim.RunID, "")
	require.NoError(t, err)
	require.NoError(t, c.CancelWorkflow(ctx, claim.RunID, ""))
	require.Error(t, c.GetWorkflow(ctx, claim.RunID, "").Get(ctx, nil))
	output(t, env, starter, "resume", dir)
	require.NoError(t, c.GetWorkflow(ctx, claim.RunID, "").Get(ctx, nil))
	return []*historypb.History{show(t, c, claim.RunID, first.WorkflowExecution.RunID), show(t, c, claim.RunID, "")}
}

// reviewAndShow gives the history of a run on a git repository that asks at a gate, at the end of its loop, and
// about its delivery.
func reviewAndShow(t *testing.T, starter string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	root := t.TempDir()
	state, dir, source, steer := filepath.Join(root, "state"), filepath.Join(root, "run"),
		filepath.Join(root, "source"), filepath.Join(root, "steer")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	require.NoError(t, os.CopyFS(source, os.DirFS("../test/e2e/testdata/review")))
	definition := filepath.Join(source, "pipeline.yaml")
	raw, err := os.ReadFile(definition)
	require.NoError(t, err)
	for name, text := range map[string]string{
		definition: strings.ReplaceAll(string(raw), "AGENT",
			filepath.Join(source, "agent.sh")),
		filepath.Join(source, "work.txt"):    "line 1\n",
		filepath.Join(steer, "breaks"):       "",
		filepath.Join(steer, "verdicts"):     "rejected\nrejected\nrejected\nrejected\n",
		filepath.Join(root, "git", "config"): "[user]\n\tname = Test\n\temail = test@localhost\n",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
	env := []string{"PASSBOOK_STATE_DIR=" + state, "GIT_CONFIG_GLOBAL=" + filepath.Join(root, "git", "config"),
		"PASSBOOK_SANDBOX_MODE=none"} // the agent writes to the steer folder
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "Begin"}} {
		output(t, env, "git", append([]string{"-C", source}, args...)...)
	}
	output(t, env, starter, "run", "--config", definition, "--output-dir", dir, "--task", "Add a line, steer="+steer,
		"--detach")
	for n, action := range []string{"continue_with_waiver", "continue", "approve"} {
		await(t, dir, func(m rundir.Meta) bool {
			_, open := m.State.Asks()
			return open &&
				len(decisions(t, dir)) == n
		})
		output(t, env, starter, "decide", dir, "--action", action, "--feedback", "it is known")
	}
	c := dialed(t, state)
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	require.NoError(t, c.GetWorkflow(ctx, claim.RunID, "").Get(ctx, nil))
	return []*historypb.History{show(t, c, claim.RunID, "")}
}

// decisions are the files of what was decided so far.
func decisions(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "phase_handoff_decisions", "*.json"))
	require.NoError(t, err)
	return files
}

// await waits until the directory of a run says so.
func await(t *testing.T, dir string, there func(rundir.Meta) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		m, err := rundir.At(dir).Meta()
		return err == nil && there(m)
	}, time.Minute, 20*time.Millisecond)
}

// dialed is a client of the server that a state directory records.
func dialed(t *testing.T, state string) client.Client {
	t.Helper()
	st, err := local.Read(state)
	require.NoError(t, err)
	require.NotNil(t, st.Server)
	trust, err := st.Server.TLS(certs.CLI)
	require.NoError(t, err)
	c, err := client.Dial(client.Options{HostPort: st.Server.Address,
		ConnectionOptions: client.ConnectionOptions{TLS: trust}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v", name, args)
	return string(out)
}

// runAndShow gives the histories of all executions of one run.
func runAndShow(t *testing.T, starter string, settings []string) []*historypb.History {
	t.Helper()
	ctx := context.Background()
	state, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	t.Cleanup(func() { _, _ = local.Stop(ctx, state, 20*time.Second) })
	output(t, append(settings, "PASSBOOK_STATE_DIR="+state), starter, "demo", "--tiny", "--output-dir", dir)
	c := dialed(t, state)
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	last := show(t, c, claim.RunID, "")
	var all []*historypb.History
	next := last.Events[0].GetWorkflowExecutionStartedEventAttributes().FirstExecutionRunId
	for next != "" {
		h := show(t, c, claim.RunID, next)
		all = append(all, h)
		next = h.Events[len(h.Events)-1].GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
	}
	return all
}

func show(t *testing.T, c client.Client, workflowID, runID string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	it := c.GetWorkflowHistory(context.Background(), workflowID, runID, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		require.NoError(t, err)
		h.Events = append(h.Events, e)
	}
	return h
}

func keep(t *testing.T, path string, h *historypb.History) {
	t.Helper()
	raw, err := temporalproto.CustomJSONMarshalOptions{Indent: "  "}.Marshal(h)
	require.NoError(t, err)
	f, err := os.Create(path)
	require.NoError(t, err)
	z := gzip.NewWriter(f)
	_, err = z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, f.Close())
}
