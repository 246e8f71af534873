package live_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/live"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = f.WriteString(text)
	require.NoError(t, errors.Join(err, f.Close()))
}

func TestOutputIsShownAsPlainLines(t *testing.T) {
	for name, row := range map[string]struct {
		reply, output string
		want          []string
	}{
		"lines, without empty ones": {adapter.Text, "one\n\n  two\r\nthree", []string{"one", "  two", "three"}},
		"nothing":                   {adapter.Text, "", nil},
		"an envelope returns its answer": {adapter.ClaudeJSON, `{"type":"result","result":"first\nsecond","usage":{}}`,
			nil}, // at its end
		"escapes move no cursor": {adapter.Text, "\x1b[2J\x1b[31mred\x1b[0m \x07bell \x1b]0;title\x07",
			[]string{"[2J[31mred[0m bell ]0;title"}},
		"a stream hides none either": {adapter.ClaudeStream, assistant("m1", `{"type":"text","text":"a\u001b[2Jb\u202ed"}`),
			[]string{"a[2Jbd"}},
		"a progress line written over": {adapter.Text, "10%\r20%\r", []string{"10%", "20%"}},
		"no text":                      {adapter.Text, "a\xff\xfeb", []string{"a\uFFFDb"}},
		"a reply that is not known":    {"", "text", []string{"text"}},
		"a line without end":           {adapter.Text, strings.Repeat("ä", 3000) + "!", nil},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "stdout")
			write(t, file, row.output)
			v, err := live.NewReader(file, row.reply).Read()
			require.NoError(t, err)
			if row.want == nil {
				require.Equal(t, strings.TrimPrefix(row.output, `{"type":"result","result":"first\nsecond","usage":{}}`),
					strings.Join(v.Lines, "")+v.Partial)
				return
			}
			if v.Partial != "" {
				v.Lines = append(v.Lines, v.Partial)
			}
			require.Equal(t, row.want, v.Lines)
		})
	}
}

// assistant is an event of claude with one block.
func assistant(id, block string) string {
	return `{"type":"assistant","message":{"id":"` + id + `","model":"m","content":[` + block +
		`],"usage":{"input_tokens":1000,"output_tokens":234}}}` + "\n"
}

// TestGrowingStream reads an output in pieces that are cut anywhere: each piece is read once, tools come and go.
func TestGrowingStream(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	now := time.Unix(1000, 0)
	r := live.NewReader(file, adapter.ClaudeStream)
	r.Now = func() time.Time { return now }
	read := func(text string) live.View {
		t.Helper()
		write(t, file, text)
		v, err := r.Read()
		require.NoError(t, err)
		return v
	}
	_, err := r.Read()
	require.ErrorIs(t, err, os.ErrNotExist)
	v := read(`{"type":"system","subtype":"init","session_id":"s-1","model":"m"}` + "\n")
	require.Empty(t, v.Lines)
	require.Equal(t, run.CostUnknown, v.Known)
	require.Equal(t, "s-1", v.Session)

	call := assistant("m1", `{"type":"text","text":"I look.\nThen I act."},{"type":"tool_use","id":"t1","name":"Bash",`+
		`"input":{"command":"go test ./..."}}`)
	v = read(call[:50])
	require.Zero(t, v.New)
	v = read(call[50:])
	require.Equal(t, []string{"I look.", "Then I act.", "→ Bash go test ./..."}, v.Lines)
	require.Equal(t, 3, v.New)
	require.Equal(t, "Bash go test ./... (12s) · 1 request · ≥ 1,234 tokens", v.Text(now.Add(12*time.Second)))

	v = read(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true}]}}` + "\n")
	require.Equal(t, "✗ Bash go test ./...", v.Lines[len(v.Lines)-1])
	require.Equal(t, 1, v.New)
	require.Equal(t, "1 request · ≥ 1,234 tokens", v.Text(now))

	v = read(assistant("m2", `{"type":"text","text":"Done."}`))
	require.Equal(t, "Done.", v.Partial)
	require.Equal(t, "2 requests · ≥ 2,468 tokens", v.Text(now))
	v = read(`{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"s-1",` +
		`"total_cost_usd":0.5,"usage":{"input_tokens":2000,"output_tokens":500}}` + "\n")
	require.Zero(t, v.New, "the result repeats the text")
	require.Equal(t, "2 requests · 2,500 tokens", v.Text(now))
	v.Usage.Input, v.Usage.Output = 0, 0
	require.Equal(t, "2 requests", v.Text(now), "of a command")
}

func TestOnlyTheEndIsKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	write(t, file, strings.Repeat("a line\n", 10_000)+"the end\n")
	v, err := live.NewReader(file, adapter.Text).Read()
	require.NoError(t, err)
	require.Len(t, v.Lines, 200)
	require.Equal(t, "the end", v.Lines[199])
	require.Equal(t, 10_001, v.New)
}

// TestReaderDoesNotWaitForPipe: the agent may have put one in the place of its output.
func TestReaderDoesNotWaitForPipe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	require.NoError(t, syscall.Mkfifo(file, 0o600))
	_, err := live.NewReader(file, adapter.Text).Read()
	require.EqualError(t, err, file+" is a named pipe")
}

// TestCallsAreReadOnceEach reads two calls, of which one starts another delivery and the other ends.
func TestCallsAreReadOnceEach(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"a": filepath.Join(dir, "a-1"), "b": filepath.Join(dir, "b-1")}
	calls := live.Calls{File: func(call string) (string, error) {
		if files[call] == "" {
			return "", errors.New("nothing here")
		}
		return files[call], nil
	}, Hide: func(text string) string { return strings.ReplaceAll(text, "secret", "<hidden>") }}
	flights := []view.InFlightCall{{Call: "a", Reply: adapter.Text}, {Call: "b", Reply: adapter.Text}, {Call: "c"}}
	write(t, files["a"], "from a\n")
	write(t, files["b"], "secret from b\n")
	out := calls.Read(flights)
	require.Equal(t, []string{"from a"}, out[0].Lines)
	require.Equal(t, []string{"<hidden> from b"}, out[1].Lines)
	require.EqualError(t, out[2].Err, "nothing here")
	write(t, files["a"], "more\n")
	files["b"] = filepath.Join(dir, "b-2")
	out = calls.Read(flights)
	require.Equal(t, []string{"from a", "more"}, out[0].Lines)
	require.Equal(t, 1, out[0].New)
	require.ErrorIs(t, out[1].Err, os.ErrNotExist)
	require.Empty(t, calls.Read(nil))
	require.Equal(t, 2, calls.Read(flights)[0].New, "a call that is read again after it ended is read from the beginning")
}

// TestToolsThatRunAtOnce: when one of them ends, the others still run.
func TestToolsThatRunAtOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "stdout")
	r := live.NewReader(file, adapter.ClaudeStream)
	tool := func(id, command string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"Bash","input":{"command":"` + command + `"}}`
	}
	ends := func(id string) string {
		return `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"` + id + `"}]}}` + "\n"
	}
	read := func(text string) string {
		write(t, file, text)
		v, err := r.Read()
		require.NoError(t, err)
		return v.Tool
	}
	require.Contains(t, read(assistant("m1", tool("t1", "make")+","+tool("t2", "sleep"))), "sleep")
	require.Contains(t, read(ends("t1")), "sleep")
	require.Empty(t, read(ends("t2")))
}
