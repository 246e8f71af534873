package activities

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/run"
)

// fakeClaude keeps what it was given at each start, and then does what the test wrote for that start.
const fakeClaude = `#!/bin/sh
d=$ACTIVITIES_TEST_FOLDER
n=$(($(ls "$d" | grep -c '^started-') + 1))
echo "$*" > "$d/args-$n"; cat > "$d/prompt-$n"; pwd > "$d/pwd-$n"; : > "$d/started-$n"
sid=s-1
session() { sid=$1; printf '{"type":"system","subtype":"init","session_id":"%s","model":"m"}\n' "$1"; }
request() { printf '{"type":"assistant","message":{"id":"%s","model":"m","content":[],"usage":{"input_tokens":10,"output_tokens":5}}}\n' "$1"; }
answer() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","session_id":"%s","total_cost_usd":0.25,"usage":{"input_tokens":10,"output_tokens":5}}\n' "$1" "$sid"; }
refuse() { echo "No conversation found with session ID: s-1" >&2; printf '{"type":"result","subtype":"error_during_execution","is_error":true,"num_turns":0,"session_id":"s-1","total_cost_usd":0,"usage":{"input_tokens":0,"output_tokens":0}}\n'; exit 1; }
. "$d/play-$n"
`

// claude is a harness whose agent does at each start what plays say.
func claude(t *testing.T, plays ...string) *harness {
	t.Helper()
	h := newHarness(t, "")
	program := filepath.Join(h.dir, "bin", "claude")
	folders(filepath.Dir(program))
	require.NoError(t, os.WriteFile(program, []byte(fakeClaude), 0o700))
	for i, play := range plays {
		h.play(i+1, play)
	}
	h.define(adapter.ClaudeJSON, adapter.ClaudeStream)
	h.runAgent(program)
	return h
}

// play writes what the agent does at a start.
func (h *harness) play(start int, text string) {
	h.t.Helper()
	write(filepath.Join(h.dir, fmt.Sprint("play-", start)), text+"\n")
}

// startTime is a time in which this machine starts the agent many times over: limits in tests end no start.
func (h *harness) startTime() time.Duration {
	h.t.Helper()
	dir := h.t.TempDir()
	write(filepath.Join(dir, "play-1"), "session s-1\n")
	program, _, _ := strings.Cut(h.agent, ",")
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "ACTIVITIES_TEST_FOLDER="+dir)
	begun := time.Now()
	require.NoError(h.t, cmd.Run())
	return max(500*time.Millisecond, 40*time.Since(begun)).Round(time.Millisecond)
}

// given is what a start was given: args, prompt or pwd.
func (h *harness) given(what string, start int) string {
	h.t.Helper()
	return strings.TrimSpace(read(h.t, filepath.Join(h.dir, fmt.Sprintf("%s-%d", what, start))))
}

// again asks for the next try of the same question.
func (h *harness) again() {
	h.in.Attempt++
	h.in.Call = strings.TrimSuffix(h.in.Call, ".1") + fmt.Sprint(".", h.in.Attempt)
}

// continued requires that a start continued session s-1, in the directory of another start, with this prompt.
func (h *harness) continued(start, from int, prompt string) {
	h.t.Helper()
	require.Equal(h.t, "--resume s-1 --fork-session", h.given("args", start))
	require.Equal(h.t, h.given("pwd", from), h.given("pwd", start))
	require.Contains(h.t, h.given("prompt", start), prompt)
	require.Contains(h.t, h.given("prompt", start), "Give the whole answer")
}

const (
	begin  = "session s-1; request m1; echo begun > notes.txt; sleep 600"
	ended  = "session s-1; request m1; echo begun > notes.txt; kill -9 $$"
	finish = `session s-1; request m2; answer "$(cat notes.txt)"`
	anew   = `session s-2; request m2; answer "$(ls | grep -c notes)"`
)

// TestLateCallIsAskedToFinish ends a call after four fifths of its time, and continues it for the rest.
func TestLateCallIsAskedToFinish(t *testing.T) {
	h := claude(t, begin, finish)
	h.in.TimeoutMS = 15 * h.startTime().Milliseconds() // the second delivery has a fifth of it
	res := h.accepted()
	require.Equal(t, "s-1", res.ResumedFrom)
	h.continued(2, 1, "nearly up")
	require.Equal(t, "begun", h.text(res.Reply.Digest))
	require.Equal(t, run.Tokens{Input: 10, Output: 5}, res.Spend.Tokens)
	require.Equal(t, run.CostExact, res.Spend.Known)
	require.Len(t, res.Superseded, 1)
	require.Equal(t, run.Tokens{Input: 10, Output: 5}, res.Superseded[0].Spend.Tokens, "of the first delivery")
	require.Equal(t, 1, res.Superseded[0].Ended)
	require.Equal(t, h.ledger().Call, res.Superseded[0].Call)
	require.Equal(t, 2, h.started())
	h.noScratch()
}

// TestNextTryContinuesTheSession interrupts a call in several ways; the next try continues it.
func TestNextTryContinuesTheSession(t *testing.T) {
	for name, row := range map[string]struct {
		plays   []string
		limits  string
		outcome run.Category
		prompt  string
	}{
		"timeout": {[]string{begin, "session s-1; sleep 600", finish}, "", run.CategoryAgentTimeout,
			"You were interrupted: the time limit was reached."},
		"silence": {[]string{begin, finish}, "limits: {idle: %s}\n", run.CategoryAgentTimeout,
			"You were interrupted: you printed nothing for too long."},
		"a signal": {[]string{ended, finish}, "", run.CategoryAgentExit, "You were interrupted: your process was ended."},
	} {
		t.Run(name, func(t *testing.T) {
			h := claude(t, row.plays...)
			start := h.startTime()
			h.define("roles:", strings.Replace(row.limits, "%s", (8*start).String(), 1)+"roles:") // of the next try too
			if h.in.TimeoutMS = 5 * start.Milliseconds(); row.limits != "" {
				h.in.TimeoutMS = time.Hour.Milliseconds()
			}
			res := h.result()
			require.Equal(t, row.outcome, res.Outcome, res.Message)
			h.again()
			h.in.TimeoutMS = time.Minute.Milliseconds()
			res = h.accepted()
			require.Equal(t, "s-1", res.ResumedFrom)
			h.continued(len(row.plays), 1, row.prompt)
			h.noScratch()
		})
	}
}

// TestLostCallContinuesItsSession kills supervisor and agent: the next delivery of the same call continues, also if
// another worker makes it.
func TestLostCallContinuesItsSession(t *testing.T) {
	for name, other := range map[string]bool{"same worker": false, "another worker": true} {
		t.Run(name, func(t *testing.T) {
			h := claude(t, begin, finish)
			h.loseAfter("notes.txt")
			acts := h.acts
			if other {
				_, id := running(t)
				acts = h.workerAs(id)
			}
			res := h.acceptedOf(acts)
			require.Equal(t, "s-1", res.ResumedFrom)
			require.Len(t, res.Superseded, 1, "the lost delivery is counted once")
			require.Equal(t, run.Tokens{Input: 10, Output: 5}, res.Superseded[0].Spend.Tokens)
			h.continued(2, 1, "You were interrupted: your process was ended.")
			h.noScratch()
		})
	}
}

// TestInstructionContinuesTheSession interrupts a call as an operator does, and asks with the instruction in the
// prompt: the agent continues its session in its folder, and its prompt is the instruction only.
func TestInstructionContinuesTheSession(t *testing.T) {
	for name, row := range map[string]struct {
		now  []string
		last string
		from string
	}{
		"the session continues":      {[]string{"Use tabs."}, finish, "s-1"},
		"another call's instruction": {nil, anew, ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := claude(t, begin, row.last)
			ctx, end := context.WithCancelCause(context.Background())
			done := h.begin(ctx, h.acts)
			h.awaitFile("notes.txt")
			end(temporal.NewCanceledError())
			require.Error(t, (<-done).err)
			h.in.Prompt, h.in.Steering = h.put("# Instructions\n\nUse tabs.\n\nDo it.\n"), row.now
			res := h.accepted()
			require.Equal(t, row.from, res.ResumedFrom)
			require.Equal(t, 2, h.started())
			if row.from == "" {
				require.Contains(t, h.given("prompt", 2), "Do it.")
				return
			}
			h.continued(2, 1, "An operator interrupted you with an instruction:\n\nUse tabs.\n")
			require.NotContains(t, h.given("prompt", 2), "Do it.")
			h.noScratch()
		})
	}
}

// loseAfter makes a call, and kills its supervisor and agent when the agent has written a file.
func (h *harness) loseAfter(written string) {
	h.t.Helper()
	done := h.begin(context.Background(), h.acts)
	h.awaitFile(written)
	require.Error(h.t, h.lose(done))
}

// awaitFile waits until the agent of the first delivery has written a file.
func (h *harness) awaitFile(name string) {
	h.t.Helper()
	path := filepath.Join(h.deliveryDir(), calls.WorkDir, name)
	h.await(func() bool { info, err := os.Stat(path); return err == nil && info.Size() > 0 })
}

// TestSessionThatCannotBeContinuedIsRestarted: the call is made anew, with its own prompt, in an empty directory.
func TestSessionThatCannotBeContinuedIsRestarted(t *testing.T) {
	for name, row := range map[string]struct {
		begin   string
		second  string // the start that is refused; empty: none
		restart bool
		before  func(*harness)
	}{
		"the agent refuses":       {begin: ended, second: "refuse"},
		"no session was reported": {begin: "echo begun > notes.txt; kill -9 $$"},
		"an option as session":    {begin: strings.Replace(ended, "s-1", "--all", 1)},
		"its directory is gone": {begin: ended, before: func(h *harness) {
			require.NoError(h.t, os.RemoveAll(h.given("pwd", 1)))
		}},
		"another host": {begin: ended, before: func(h *harness) { h.acts.cfg.Host = "there" }},
		"switched off": {begin: ended, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			plays := []string{row.begin, anew}
			if row.second != "" {
				plays = []string{row.begin, row.second, anew}
			}
			h := claude(t, plays...)
			if row.restart {
				h.define(", env: [", ", on_interrupt: restart, env: [")
			}
			res := h.result()
			require.Equal(t, run.CategoryAgentExit, res.Outcome, res.Message)
			if row.before != nil {
				row.before(h)
			}
			h.again()
			res = h.accepted()
			require.Empty(t, res.ResumedFrom)
			last := len(plays)
			require.Empty(t, h.given("args", last))
			require.Equal(t, "Do it.", h.given("prompt", last))
			require.NotEqual(t, h.given("pwd", 1), h.given("pwd", last))
			require.Equal(t, last, h.started())
			if row.before == nil && row.second != "" {
				h.noScratch()
			}
		})
	}
}

// TestToolUsesAreReported lists the tool calls of a stream without secrets, and counts those that are not listed.
func TestToolUsesAreReported(t *testing.T) {
	var play strings.Builder
	play.WriteString("session s-1; cat <<'END'\n")
	for i := range run.MaxToolUses + 2 {
		fmt.Fprintf(&play, `{"type":"assistant","message":{"id":"m%d","model":"m","content":[{"type":"tool_use","id":"t%d",`+
			`"name":"Bash","input":{"command":"say open-sesame %d"}}]}}`+"\n", i, i, i)
	}
	play.WriteString(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t0","is_error":true},` +
		`{"type":"tool_result","tool_use_id":"t1"}]}}` + "\nEND\nanswer Done.")
	h := claude(t, play.String())
	h.secret = "open-sesame"
	res := h.result()
	require.NotNil(t, res.Tools)
	require.Equal(t, run.MaxToolUses+2, res.Tools.Count)
	require.Len(t, res.Tools.First, run.MaxToolUses)
	for i, state := range []string{"failed", "ok", "started"} {
		require.Equal(t, fmt.Sprintf("say <hidden> %d", i), res.Tools.First[i].Input)
		require.Equal(t, state, res.Tools.First[i].State)
	}
}
