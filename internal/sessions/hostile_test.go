package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/sessions"
)

// TestHostileFilesAreNotAdopted: an agent can write into the folders of its program. What it puts in the place of a
// conversation is neither listed nor adopted, and nothing outside is read.
func TestHostileFilesAreNotAdopted(t *testing.T) {
	conversation := claudeAsk + "\n" + claudeDone + "\n"
	for name, attack := range map[string]func(t *testing.T, path, outside string){
		"a link to a file": func(t *testing.T, path, outside string) {
			require.NoError(t, os.Symlink(filepath.Join(outside, "other.jsonl"), path))
		},
		"a link to a folder": func(t *testing.T, path, outside string) {
			require.NoError(t, os.Symlink(outside, path))
		},
		"a pipe":   func(t *testing.T, path, _ string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) },
		"a folder": func(t *testing.T, path, _ string) { require.NoError(t, os.Mkdir(path, 0o700)) },
		"a project that is a link": func(t *testing.T, path, outside string) {
			require.NoError(t, os.RemoveAll(filepath.Dir(path)))
			require.NoError(t, os.Symlink(outside, filepath.Dir(path)))
			require.NoError(t, os.WriteFile(filepath.Join(outside, id+".jsonl"), []byte(conversation), 0o600))
		},
		"a sparse file larger than memory": func(t *testing.T, path, _ string) {
			require.NoError(t, os.WriteFile(path, []byte(conversation), 0o600))
			require.NoError(t, os.Truncate(path, 1<<40))
		},
		"no line of a conversation": func(t *testing.T, path, _ string) {
			require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("[", 1<<20)), 0o600))
		},
		"no folder": func(t *testing.T, path, _ string) {
			text := strings.ReplaceAll(conversation, `"cwd":"/work/one",`, "")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		},
		"a folder that is no text": func(t *testing.T, path, _ string) {
			text := strings.ReplaceAll(conversation, `"cwd":"/work/one",`, `"cwd":["/work/one"],`)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, path := write(t, "claude")
			outside, state := t.TempDir(), t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(outside, "other.jsonl"), []byte(conversation), 0o600))
			require.NoError(t, os.Remove(path))
			attack(t, path, outside)
			_, err := p.Adopt(state, "run-1", id)
			require.Error(t, err)
			require.NoDirExists(t, filepath.Join(state, "sessions", "run-1"))
			_, err = p.Find(id)
			require.Error(t, err)
			if name == "a sparse file larger than memory" {
				return // it is listed by what its beginning contains
			}
			all, err := p.List(func(string) bool { return true })
			require.NoError(t, err)
			require.Empty(t, all)
		})
	}
}

// TestHostileValues: what a file claims about costs, times and limits is bounded.
func TestHostileValues(t *testing.T) {
	for name, row := range map[string]struct {
		lines []string
		holds func(t *testing.T, c sessions.Conversation)
	}{
		"negative tokens": {[]string{claudeAsk, strings.ReplaceAll(claudeDone, ":20", ":-20")}, func(t *testing.T, c sessions.Conversation) {
			require.Zero(t, c.Usage[0].Tokens.Input)
		}},
		"a negative total": {[]string{claudeAsk, strings.Replace(claudeCost, "0.5", "-5", 1)}, func(t *testing.T, c sessions.Conversation) {
			require.Zero(t, c.USD)
		}},
		"a message without end": {[]string{strings.Replace(claudeAsk, "It is wrong.", strings.Repeat("x", 8<<20), 1)},
			func(t *testing.T, c sessions.Conversation) { require.LessOrEqual(t, len(c.First), 8<<10) }},
		"a time that is none": {[]string{strings.Replace(claudeAsk, "2026-12-01T13", "99999-12-01T13", 1)},
			func(t *testing.T, c sessions.Conversation) { require.Zero(t, c.At) }},
		"a process that is none": {[]string{claudeAsk}, func(t *testing.T, c sessions.Conversation) {
			require.Equal(t, "/work/one", c.Folder)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p, path := write(t, "claude", row.lines...)
			described := filepath.Join(filepath.Dir(filepath.Dir(filepath.Dir(path))), "sessions")
			require.NoError(t, os.MkdirAll(described, 0o700))
			for name, text := range map[string]string{"a": `{"pid":-1,"sessionId":"` + id + `"}`, "b": `{"pid":0,"sessionId":"` + id + `"}`,
				"c": `{"pid":1e300,"sessionId":"` + id + `"}`, "d": "[", "e": `{"pid":"1","sessionId":"` + id + `"}`} {
				require.NoError(t, os.WriteFile(filepath.Join(described, name+".json"), []byte(text), 0o600))
			}
			c, err := p.Find(id)
			require.NoError(t, err)
			row.holds(t, c)
			by, err := p.OpenIn(c)
			require.NoError(t, err)
			require.Nil(t, by)
			require.True(t, c.At.Before(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)))
		})
	}
}
