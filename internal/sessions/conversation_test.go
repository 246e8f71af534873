package sessions_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/limits"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/run"
)

const at = `"timestamp":"2026-12-01T13:11:48.069Z","cwd":"/work/one","sessionId":"` + id + `"`

// lines of claude.
const (
	claudeMode  = `{"type":"permission-mode","permissionMode":"bypassPermissions","sessionId":"` + id + `"}`
	claudeTree  = `{"type":"worktree-state","worktreeSession":{"path":"/work/one"},"sessionId":"` + id + `"}`
	claudeAsk   = `{"parentUuid":null,"uuid":"a","type":"user","message":{"role":"user","content":"Fix the total.\nIt is wrong."},` + at + `}`
	claudeClear = `{"parentUuid":"a","uuid":"a2","type":"user","message":{"content":"<command-name>/clear</command-name>"},` + at + `}`
	claudeTool  = `{"parentUuid":"a","uuid":"b","type":"assistant","message":{"id":"m1","model":"claude-opus-5","stop_reason":"tool_use",` +
		`"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash"}],"usage":{"input_tokens":10,"output_tokens":5}},` + at + `}`
	claudeResult = `{"parentUuid":"b","uuid":"c","type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]},` + at + `}`
	claudeDone   = `{"parentUuid":"c","uuid":"d","type":"assistant","message":{"id":"m2","model":"claude-opus-5","stop_reason":"end_turn",` +
		`"content":[{"type":"text","text":"Done: \u001b]52;c;aGk=\u0007it was \u202ewrong."}],"usage":{"input_tokens":20,"output_tokens":7}},` + at + `}`
	claudeLimit = `{"parentUuid":"c","uuid":"e","type":"assistant","message":{"id":"m3","model":"<synthetic>","content":[{"type":"text",` +
		`"text":"You've hit your 5-hour limit · resets 1:13pm (UTC)"}],"usage":{"input_tokens":0}},"quotaLimits":{"status":"rejected",` +
		`"resetsAt":1796130828},"error":"rate_limit","isApiErrorMessage":true,"apiErrorStatus":429,` + at + `}`
	claudeFail = `{"parentUuid":"c","uuid":"e","type":"assistant","message":{"id":"m3","content":[{"type":"text","text":"API Error: 400"}]},` +
		`"error":"invalid_request","isApiErrorMessage":true,"apiErrorStatus":400,` + at + `}`
	claudeStop = `{"parentUuid":"c","uuid":"f","type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]},` + at + `}`
	claudeSide = `{"parentUuid":"z","uuid":"y","isSidechain":true,"type":"assistant","message":{"id":"m9","stop_reason":"tool_use","content":` +
		`[{"type":"tool_use","id":"t9"}]},` + at + `}`
	claudeSideAsk = `{"parentUuid":"z","uuid":"x","isSidechain":true,"type":"user","message":{"content":"Search."},` + at + `}`
	claudeCost    = `{"type":"cost-state","sessionId":"` + id + `","totalCostUSD":0.5}`
)

func codexLine(kind, payload string) string {
	return `{"timestamp":"2026-12-01T13:11:48.069Z","type":"` + kind + `","payload":` + payload + `}`
}

var (
	codexMeta   = codexLine("session_meta", `{"id":"`+id+`","cwd":"/work/one"}`)
	codexModel  = codexLine("turn_context", `{"cwd":"/work/one","model":"gpt-5.5"}`)
	codexTurn   = codexLine("event_msg", `{"type":"task_started"}`)
	codexAsk    = codexLine("event_msg", `{"type":"item_completed","item":{"type":"UserMessage","content":[{"type":"text","text":"Fix the total."}]}}`)
	codexOld    = codexLine("event_msg", `{"type":"user_message","message":"Fix the total."}`)
	codexEnv    = codexLine("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>"}]}`)
	codexItem   = codexLine("response_item", `{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix the total."}]}`)
	codexTool   = codexLine("response_item", `{"type":"function_call","call_id":"c1","name":"exec_command"}`)
	codexResult = codexLine("response_item", `{"type":"function_call_output","call_id":"c1","output":"x"}`)
	codexUsed   = codexLine("token_usage_record", `{"usage":{"input_tokens":10,"output_tokens":5}}`)
	codexDone   = codexLine("event_msg", `{"type":"task_complete","last_agent_message":"Done."}`)
	codexAbort  = codexLine("event_msg", `{"type":"turn_aborted","reason":"interrupted"}`)
	codexFull   = codexLine("event_msg", `{"type":"token_count","rate_limits":{"primary":{"used_percent":100,"resets_at":1796130828}}}`)
	codexLimit  = codexLine("event_msg", `{"type":"task_complete","error":{"message":"You’ve hit your usage limit. Try again later.","codex_error_info":"usage_limit_exceeded"}}`)
	codexFail   = codexLine("event_msg", `{"type":"task_complete","error":{"message":"bad request","codex_error_info":{"other":{"status":400}}}}`)
)

// write writes the conversation of a program into a new home.
func write(t *testing.T, name string, lines ...string) (sessions.Program, string) {
	t.Helper()
	p, home := program(t, name)
	path := filepath.Join(home, stored[name][0].name)
	require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return p, path
}

func TestConversationEndsAsItsFileRecords(t *testing.T) {
	reset := time.Unix(1796130828, 0).UTC()
	for name, row := range map[string]struct {
		program string
		lines   []string
		ended   run.Ending
		kind    limits.Kind
		until   time.Time
	}{
		"claude, answered":             {"claude", []string{claudeAsk, claudeTool, claudeResult, claudeDone, claudeMode}, "", "", time.Time{}},
		"claude, a command afterwards": {"claude", []string{claudeAsk, claudeTool, claudeResult, claudeDone, claudeClear}, "", "", time.Time{}},
		"claude, in a tool":            {"claude", []string{claudeAsk, claudeTool}, run.EndedInTool, "", time.Time{}},
		"claude, after a tool":         {"claude", []string{claudeAsk, claudeTool, claudeResult}, run.EndedEarly, "", time.Time{}},
		"claude, before an answer":     {"claude", []string{claudeAsk}, run.EndedEarly, "", time.Time{}},
		"claude, in a subagent":        {"claude", []string{claudeAsk, claudeTool, claudeSide}, run.EndedInTool, "", time.Time{}},
		"claude, a subagent is ended":  {"claude", []string{claudeAsk, claudeTool, claudeSide, claudeResult, claudeDone}, "", "", time.Time{}},
		"claude, a subagent asks":      {"claude", []string{claudeAsk, claudeTool, claudeResult, claudeDone, claudeSideAsk}, "", "", time.Time{}},
		"claude, limit":                {"claude", []string{claudeAsk, claudeTool, claudeResult, claudeLimit}, run.EndedByLimit, limits.Plan, reset},
		"claude, limit and later":      {"claude", []string{claudeAsk, claudeLimit, claudeAsk, claudeDone}, "", "", time.Time{}},
		"claude, error":                {"claude", []string{claudeAsk, claudeTool, claudeResult, claudeFail}, run.EndedByError, "", time.Time{}},
		"claude, interrupted":          {"claude", []string{claudeAsk, claudeTool, claudeStop}, run.EndedByUser, "", time.Time{}},
		"codex, answered":              {"codex", []string{codexMeta, codexTurn, codexAsk, codexTool, codexResult, codexDone}, "", "", time.Time{}},
		"codex, without events":        {"codex", []string{codexMeta, codexEnv, codexItem}, "", "", time.Time{}},
		"codex, in a tool":             {"codex", []string{codexMeta, codexTurn, codexAsk, codexTool}, run.EndedInTool, "", time.Time{}},
		"codex, after a tool":          {"codex", []string{codexMeta, codexTurn, codexOld, codexTool, codexResult}, run.EndedEarly, "", time.Time{}},
		"codex, limit":                 {"codex", []string{codexMeta, codexTurn, codexAsk, codexFull, codexLimit}, run.EndedByLimit, limits.Plan, reset},
		"codex, limit without a time":  {"codex", []string{codexMeta, codexTurn, codexAsk, codexLimit}, run.EndedByLimit, limits.Plan, time.Time{}},
		"codex, error":                 {"codex", []string{codexMeta, codexTurn, codexAsk, codexFail}, run.EndedByError, "", time.Time{}},
		"codex, interrupted":           {"codex", []string{codexMeta, codexTurn, codexAsk, codexTool, codexAbort}, run.EndedByUser, "", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := write(t, row.program, row.lines...)
			c, err := p.Find(id)
			require.NoError(t, err)
			require.Equal(t, row.ended, c.Ended)
			require.Equal(t, row.kind, c.Limit.Kind)
			require.Equal(t, row.until, c.Limit.Until)
			require.Equal(t, "/work/one", c.Folder)
			require.True(t, strings.HasPrefix(c.First, "Fix the total."), c.First)
			require.Equal(t, time.Date(2026, 12, 1, 13, 11, 48, 69e6, time.UTC), c.At)
			require.Zero(t, c.Damaged)
		})
	}
}

// TestConversationIsShownWithoutControls: what a file contains cannot control a terminal, and the texts are bounded.
func TestConversationIsShownWithoutControls(t *testing.T) {
	long := strings.Replace(claudeAsk, "It is wrong.", strings.Repeat("ä", 20_000), 1)
	p, _ := write(t, "claude", claudeMode, long, claudeTool, claudeResult, claudeDone)
	c, err := p.Find(id)
	require.NoError(t, err)
	require.Equal(t, "Done: ]52;c;aGk=it was wrong.", c.Last)
	require.LessOrEqual(t, len(c.First), 8<<10)
	require.True(t, strings.HasPrefix(c.First, "Fix the total.\nää"))
}

func TestConversationCosts(t *testing.T) {
	p, _ := write(t, "claude", claudeAsk, claudeTool, claudeTool, claudeResult, claudeDone)
	c, err := p.Find(id)
	require.NoError(t, err)
	require.Len(t, c.Usage, 1)
	require.Equal(t, run.Tokens{Input: 30, Output: 12}, c.Usage[0].Tokens, "a message has several entries")
	require.Zero(t, c.USD)
	p, _ = write(t, "claude", claudeAsk, claudeTool, claudeCost, claudeResult, claudeDone)
	c, err = p.Find(id)
	require.NoError(t, err)
	require.Equal(t, 0.5, c.USD)
	require.Equal(t, run.Tokens{Input: 20, Output: 7}, c.Usage[0].Tokens, "what the total does not contain")
	p, _ = write(t, "codex", codexMeta, codexModel, codexTurn, codexAsk, codexUsed, codexUsed)
	c, err = p.Find(id)
	require.NoError(t, err)
	require.Equal(t, "gpt-5.5", c.Usage[0].Model)
	require.Equal(t, run.Tokens{Input: 20, Output: 10}, c.Usage[0].Tokens)
}

// TestAdoptedCopyLeavesOutWhatIsNotTheConversation: settings of the terminal, and damaged lines, after which the chain of
// messages is whole again. The original is as it was.
func TestAdoptedCopyLeavesOutWhatIsNotTheConversation(t *testing.T) {
	state := t.TempDir()
	p, path := write(t, "claude", claudeMode, claudeTree, claudeAsk, "\x00\x00", claudeTool[:40], claudeResult, claudeDone, claudeCost,
		`{"unknown":1}`, claudeDone[:100])
	before, err := os.ReadFile(path)
	require.NoError(t, err)
	a, err := p.Adopt(state, "run-1", id)
	require.NoError(t, err)
	require.Equal(t, 3, a.Damaged)
	require.Equal(t, run.Ending(""), a.Ended)
	require.Equal(t, disk.Digest(before), a.Digest)
	copied, err := os.ReadFile(filepath.Join(state, "sessions", a.File))
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(copied)), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, claudeAsk, lines[0])
	require.Contains(t, lines[1], `"parentUuid":"a"`, "the message that it followed is damaged")
	require.Equal(t, claudeDone, lines[2])
	after, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, before, after)
	same, err := p.Unchanged(a)
	require.NoError(t, err)
	require.True(t, same)
	require.NoError(t, os.WriteFile(path, append(before, '\n'), 0o600))
	same, err = p.Unchanged(a)
	require.NoError(t, err)
	require.False(t, same)

	p, _ = write(t, "codex", codexMeta, codexTurn, codexAsk, codexTool[:20], codexDone)
	a, err = p.Adopt(state, "run-2", id)
	require.NoError(t, err)
	copied, err = os.ReadFile(filepath.Join(state, "sessions", a.File))
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{codexMeta, codexTurn, codexAsk, codexDone, ""}, "\n"), string(copied))

	p, _ = write(t, "codex", "\x00\x00", codexMeta[:30])
	_, err = p.Adopt(state, "run-3", id)
	require.ErrorIs(t, err, sessions.ErrDamaged)
	require.NoFileExists(t, filepath.Join(state, "sessions", "run-3", id))
	_, err = p.Find(id)
	require.ErrorIs(t, err, sessions.ErrDamaged)
}

// TestListReadsBeginningAndEnd of large files, and none of other folders.
func TestListReadsBeginningAndEnd(t *testing.T) {
	middle := strings.Repeat(strings.Replace(claudeDone, "Done", strings.Repeat("x", 10_000), 1)+"\n", 500)
	p, path := write(t, "claude", claudeAsk, middle, claudeTool)
	all, err := p.List(func(folder string) bool { return folder == "/work/one" })
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "Fix the total.\nIt is wrong.", all[0].First)
	require.Equal(t, run.EndedInTool, all[0].Ended)
	require.Less(t, all[0].Entries, 300)
	require.Zero(t, all[0].Damaged, "cut lines are not damaged")
	all, err = p.List(func(string) bool { return false })
	require.NoError(t, err)
	require.Empty(t, all)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink("/etc/passwd", path))
	all, err = p.List(func(string) bool { return true })
	require.NoError(t, err)
	require.Empty(t, all)
	all, err = sessions.Program{Name: "codex", Environ: []string{"HOME=" + t.TempDir()}}.List(func(string) bool { return true })
	require.NoError(t, err)
	require.Empty(t, all)
}

// TestOpenConversation: the process is named until it has ended; another process with its number is not.
func TestOpenConversation(t *testing.T) {
	claude, path := write(t, "claude", claudeAsk, claudeDone)
	codex, rollout := write(t, "codex", codexMeta, codexTurn, codexAsk, codexDone)
	held, err := os.Open(rollout)
	require.NoError(t, err)
	sleeper := exec.Command("sleep", "600")
	sleeper.ExtraFiles = []*os.File{held}
	require.NoError(t, sleeper.Start())
	t.Cleanup(func() { _ = sleeper.Process.Kill() })
	require.NoError(t, held.Close())
	described := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(path))), "sessions", "1.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(described), 0o700))
	describe := func(session, start string) {
		text := fmt.Sprintf(`{"pid":%d,"sessionId":%q,"procStart":%q}`, sleeper.Process.Pid, session, start)
		require.NoError(t, os.WriteFile(described, []byte(text), 0o600))
	}
	open := func(p sessions.Program) int {
		c, err := p.Find(id)
		require.NoError(t, err)
		by, err := p.OpenIn(c)
		require.NoError(t, err)
		if by == nil {
			return 0
		}
		return by.PID
	}
	describe(id, "")
	require.Equal(t, sleeper.Process.Pid, open(claude))
	require.Equal(t, sleeper.Process.Pid, open(codex))
	describe("another", "")
	require.Zero(t, open(claude))
	describe(id, "1")
	require.Zero(t, open(claude), "the number is that of another process by now")
	describe(id, "")
	id, err := process.Of(sleeper.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, sleeper.Process.Kill())
	require.NoError(t, id.AwaitEnd(t.Context()))
	require.Zero(t, open(claude), "it is a zombie")
	require.Zero(t, open(codex))
	_ = sleeper.Wait()
}

// FuzzConversation: no file crashes the reader, and what it shows is bounded and plain.
func FuzzConversation(f *testing.F) {
	for _, text := range []string{claudeAsk + "\n" + claudeTool, codexMeta + "\n" + codexTurn + "\n" + codexLimit, "{", `{"message":{"content":[[]]}}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"claude", "codex"} {
			p, path := program(t, name)
			require.NoError(t, os.WriteFile(filepath.Join(path, stored[name][0].name), []byte(text), 0o600))
			a, err := p.Adopt(t.TempDir(), "run-1", id)
			if err == nil {
				require.NotEmpty(t, a.Folder)
			}
			require.Equal(t, sessions.Plain(a.First), a.First)
			require.LessOrEqual(t, len(a.Last), 400)
		}
	})
}

// TestServerOfCodexIsNoTerminal: it keeps the file open when its terminal is gone.
func TestServerOfCodexIsNoTerminal(t *testing.T) {
	folder := t.TempDir()
	start := func(dir string, files []*os.File, args ...string) int {
		cmd := exec.Command("sh", append([]string{"-c", "read x", "/opt/codex"}, args...)...)
		cmd.Dir, cmd.ExtraFiles = dir, files
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		return cmd.Process.Pid
	}
	meta := strings.Replace(codexMeta, "/work/one", folder, 1)
	p, path := write(t, "codex", meta, codexTurn, codexAsk, codexDone)
	held, err := os.Open(path)
	require.NoError(t, err)
	server := start(t.TempDir(), []*os.File{held}, "app-server")
	require.NoError(t, held.Close())
	open := func() int {
		c, err := p.Find(id)
		require.NoError(t, err)
		by, err := p.OpenIn(c)
		require.NoError(t, err)
		if by == nil {
			return 0
		}
		return by.PID
	}
	require.Zero(t, open())
	require.NoError(t, os.WriteFile(path, []byte(meta+"\n"+codexTurn+"\n"), 0o600))
	require.Equal(t, server, open(), "it still works")
	require.NoError(t, os.WriteFile(path, []byte(meta+"\n"+codexTurn+"\n"+codexDone+"\n"), 0o600))
	terminal := start(folder, nil)
	require.Equal(t, terminal, open())
}
