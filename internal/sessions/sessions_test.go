package sessions_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/sessions"
)

const id = "0b1c2d3e-0000-4000-8000-000000000001"

// stored are files as the programs store them, for calls in /work/one.
var stored = map[string][]struct{ name, text string }{
	"claude": {{".claude/projects/-work-one/" + id + ".jsonl", `{"cwd":"/work","sessionId":"` + id + `"}
{"cwd":"/work/one","sessionId":"` + id + `"}
{"type":"cost-state","sessionId":"` + id + `","totalCostUSD":3}
`}},
	"codex": {{".codex/sessions/2026/01/02/rollout-2026-01-02T03-04-05-" + id + ".jsonl", `{"payload":{"id":"` + id + `"}}
`}},
	"gemini": {
		{".gemini/tmp/one/chats/session-2026-01-02T03-04-0b1c2d3e.jsonl", `{"sessionId":"` + id + `","more":"text"}` + "\n"},
		{".gemini/tmp/one/chats/session-2026-01-02T03-05-0b1c2d3e.jsonl", "{}\n"},
		{".gemini/tmp/one/.project_root", "/work/one"},
	},
}

func program(t *testing.T, name string) (sessions.Program, string) {
	t.Helper()
	home := t.TempDir()
	for _, f := range stored[name] {
		path := filepath.Join(home, f.name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(f.text), 0o600))
	}
	return sessions.Program{Name: name, Environ: []string{"HOME=" + home}}, home
}

// TestCopyOfKeptSession: the kept file stays as it was, and each copy has its own id.
func TestCopyOfKeptSession(t *testing.T) {
	for name, at := range map[string]struct{ copy, directory string }{
		"claude": {".claude/projects/-work-two/ID.jsonl", "/work/one"},
		"codex":  {".codex/sessions/passbook-work-two/2000/01/01/rollout-2000-01-01T00-00-00-ID.jsonl", ""},
		"gemini": {".gemini/tmp/passbook-work-two/chats/session-2000-01-01T00-00-ID8.jsonl", "/work/one"},
	} {
		t.Run(name, func(t *testing.T) {
			p, home := program(t, name)
			dir, err := p.Directory(id)
			require.NoError(t, err)
			require.Equal(t, at.directory, dir)
			state := t.TempDir()
			kept, err := p.Keep(state, "run-1", id)
			require.NoError(t, err)
			original := filepath.Join(home, stored[name][0].name)
			require.NoError(t, os.Remove(original))
			first, err := p.CopyKept(state, kept, id, "/work/two")
			require.NoError(t, err)
			second, err := p.CopyKept(state, kept, id, "/work/two")
			require.NoError(t, err)
			require.NotEqual(t, first.ID, second.ID)
			pattern := strings.NewReplacer("ID8", first.ID[:8], "ID", first.ID).Replace(at.copy)
			found, err := filepath.Glob(filepath.Join(home, pattern))
			require.NoError(t, err)
			require.Equal(t, []string{first.Path}, found)
			text, err := os.ReadFile(first.Path)
			require.NoError(t, err)
			require.NotContains(t, string(text), id)
			require.NotContains(t, string(text), "cost-state")
			want := strings.ReplaceAll(stored[name][0].text, id, first.ID)
			require.Equal(t, want[:40], string(text)[:40])
			_, err = p.Directory(first.ID)
			require.True(t, err == nil || name == "claude", "its content is of another directory")
			require.NoError(t, p.RemoveCopy(first))
			require.NoError(t, p.RemoveCopy(first))
			_, err = p.Directory(first.ID)
			require.ErrorIs(t, err, sessions.ErrNone)
			info, err := os.Stat(filepath.Join(state, "sessions", kept))
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
			require.NoError(t, sessions.Remove(state, "run-1"))
			_, err = p.CopyKept(state, kept, id, "/work/two")
			require.ErrorIs(t, err, sessions.ErrNone)
		})
	}
}

// TestLinksAreNotFollowed: an agent can write into the folders of its program, and nothing outside is read or written.
func TestLinksAreNotFollowed(t *testing.T) {
	p, home := program(t, "claude")
	state, outside := t.TempDir(), t.TempDir()
	kept, err := p.Keep(state, "run-1", id)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(outside, filepath.Join(home, ".claude/projects/-work-two")))
	_, err = p.CopyKept(state, kept, id, "/work/two")
	require.Error(t, err)
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	path := filepath.Join(home, stored["claude"][0].name)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(secret, path))
	_, err = p.Keep(state, "run-2", id)
	require.ErrorIs(t, err, sessions.ErrNone)
}

func TestInvalidNamesAreRefused(t *testing.T) {
	p, _ := program(t, "codex")
	for _, bad := range []string{"", "../x", "a/b", "--all", "a*"} {
		_, err := p.Directory(bad)
		require.ErrorIs(t, err, sessions.ErrID, bad)
	}
	for _, run := range []string{"", "..", "a/b", "."} {
		_, err := p.Keep(t.TempDir(), run, id)
		require.Error(t, err, run)
	}
	_, err := p.CopyKept(t.TempDir(), "../../etc/passwd", id, "/work")
	require.ErrorIs(t, err, sessions.ErrID)
	_, err = sessions.Program{Name: "codex"}.Directory(id)
	require.ErrorContains(t, err, "HOME is not set")
}
