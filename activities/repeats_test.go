package activities

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
)

// toolLines are a call of a tool and its result, as claude prints them.
func toolLines(id, command, result string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":"m-%[1]s","content":[{"type":"tool_use","id":"%[1]s","name":"Bash",`+
		`"input":{"command":%[2]q}}]}}`+"\n"+`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%[1]s",`+
		`"content":%[3]q}]}}`+"\n", id, command, result)
}

// repeated20 are 20 equal calls.
func repeated20() (out string) {
	for i := range maxRepeats {
		out += toolLines(fmt.Sprint("t-", i), "npm test", "1 failed")
	}
	return out
}

func TestAgentThatRepeatsItself(t *testing.T) {
	folder, start := t.TempDir(), time.Now().Add(time.Minute)
	file := filepath.Join(folder, "file")
	at := func(when time.Time) {
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		require.NoError(t, os.Chtimes(file, when, when))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(folder, ".git"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, ".git", "index"), nil, 0o600))
	sub := `{"type":"assistant","parent_tool_use_id":"task","message":{"id":"m","content":[{"type":"tool_use","id":"s","name":"Read","input":{}}]}}` + "\n"
	for name, row := range map[string]struct {
		before  string // read when the worker began to watch
		output  string
		changed time.Duration // of the file, since the start
		stuck   bool
	}{
		"the same 20 times":  {output: toolLines("a", "ls", "file") + repeated20(), changed: -time.Hour, stuck: true},
		"19 times":           {output: repeated20()[len(toolLines("t-0", "npm test", "1 failed")):], changed: -time.Hour},
		"another result":     {output: repeated20() + toolLines("x", "npm test", "0 failed"), changed: -time.Hour},
		"another command":    {output: repeated20() + toolLines("x", "ls", "file"), changed: -time.Hour},
		"a file has changed": {output: repeated20(), changed: time.Hour},
		"a subagent works":   {output: repeated20() + sub, changed: -time.Hour},
		"before the worker":  {before: repeated20(), changed: -time.Hour},
		"partly before it":   {before: toolLines("a", "npm test", "1 failed"), output: repeated20(), changed: -time.Hour},
		"a call that still runs": {output: repeated20() + `{"type":"assistant","message":{"id":"m","content":[{"type":"tool_use",` +
			`"id":"y","name":"Bash","input":{"command":"sleep 60"}}]}}` + "\n", changed: -time.Hour, stuck: true},
	} {
		t.Run(name, func(t *testing.T) {
			at(start.Add(row.changed))
			r := newRepeats(adapter.ClaudeStream)
			r.take([]byte(row.before), time.Time{})
			require.False(t, r.stuck(folder))
			half := len(row.output) / 3
			r.take([]byte(row.output[:half]), start)
			r.take([]byte(row.output[half:]), start.Add(time.Second))
			require.Equal(t, row.stuck, r.stuck(folder))
		})
	}
	require.Nil(t, newRepeats(adapter.Text))
	require.Nil(t, newRepeats(adapter.ClaudeJSON), "its output comes at the end")
}

// TestTranscriptsWithEqualCalls: claude has run its tests more than 20 times, with edits between them, and with other
// results.
func TestTranscriptsWithEqualCalls(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.jsonl")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		equal := map[string]int{}
		for _, f := range newRepeats(adapter.ClaudeStream).parser.Parse(raw) {
			if f.Kind == adapter.KindTool && f.State == adapter.ToolStarted {
				equal[f.Name+f.Digest]++
			}
		}
		r := newRepeats(adapter.ClaudeStream)
		for chunk := range slices.Chunk(raw, 512) {
			r.take(chunk, time.Now())
			require.False(t, r.stuck(t.TempDir()), name)
		}
		most := 0
		for _, n := range equal {
			most = max(most, n)
		}
		require.Greater(t, most, maxRepeats, name)
	}
}
