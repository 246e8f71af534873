package environ_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/environ"
)

func handed(t *testing.T, state, by string, variables ...string) (undo func() error) {
	t.Helper()
	undo, err := environ.Save(state, environ.Environment{
		RunID: "run-1", By: by, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Variables: variables,
	})
	require.NoError(t, err)
	return undo
}

func fileOf(state string) string { return filepath.Join(state, "environ", "run-1.json") }

func variables(t *testing.T, state string) []string {
	t.Helper()
	e, err := environ.Load(state, "run-1")
	require.NoError(t, err)
	return e.Variables
}

func TestEnvironmentIsPrivate(t *testing.T) {
	state := t.TempDir()
	handed(t, state, "start", "A=1", "PATH=/bin")
	for path, mode := range map[string]fs.FileMode{filepath.Dir(fileOf(state)): fs.ModeDir | 0o700,
		fileOf(state): 0o600} {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Equal(t, mode, info.Mode(), path)
	}
	e, err := environ.Load(state, "run-1")
	require.NoError(t, err)
	require.Equal(t, environ.Environment{
		Version: 1, RunID: "run-1", By: "start", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Variables: []string{"A=1", "PATH=/bin"},
	}, e)

	require.NoError(t, os.Chmod(fileOf(state), 0o640))
	_, err = environ.Load(state, "run-1")
	require.ErrorIs(t, err, environ.ErrNotPrivate)
}

func TestForeignEnvironmentIsNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the owner of a file")
	}
	state := t.TempDir()
	handed(t, state, "start", "A=1")
	require.NoError(t, os.Chown(fileOf(state), 12345, 12345))
	_, err := environ.Load(state, "run-1")
	require.ErrorIs(t, err, environ.ErrNotPrivate)
}

func TestUndo(t *testing.T) {
	state := t.TempDir()
	undo := handed(t, state, "start", "A=1")
	again := handed(t, state, "resume", "A=2")
	require.NoError(t, undo())
	require.Equal(t, []string{"A=2"}, variables(t, state), "it was replaced meanwhile")
	require.NoError(t, again())
	require.Equal(t, []string{"A=1"}, variables(t, state))
	require.NoError(t, undo())
	require.NoFileExists(t, fileOf(state), "there was none before")
	require.NoError(t, undo())
}

func TestExpire(t *testing.T) {
	state := t.TempDir()
	require.NoError(t, environ.Expire(state, "run-1", time.Now()), "there is none")
	handed(t, state, "start", "A=1")
	require.NoError(t, environ.Expire(state, "run-1", time.Now().Add(time.Hour)))
	require.Equal(t, []string{"A=1"}, variables(t, state))
	handed(t, state, "resume", "A=1")
	require.NoError(t, environ.Expire(state, "run-1", time.Now().Add(-time.Hour)))
	_, err := environ.Load(state, "run-1")
	require.ErrorIs(t, err, fs.ErrNotExist)
	ids, err := environ.Runs(state)
	require.NoError(t, err)
	require.Equal(t, []string{"run-1"}, ids)
	require.NoError(t, environ.Remove(state, "run-1"))
	require.NoError(t, environ.Remove(state, "run-1"))
	require.NoFileExists(t, fileOf(state))
}

func TestInvalidEnvironment(t *testing.T) {
	state := t.TempDir()
	for _, id := range []string{"", "notice/run-1/7", "../run-1", ".hidden", "run-2"} {
		_, err := environ.Load(state, id)
		require.ErrorIs(t, err, fs.ErrNotExist, id)
		require.NoError(t, firstOf(environ.Runs(state)))
	}
	handed(t, state, "start", "A=1")
	for _, text := range []string{"{", `{"version":2,"variables":["A=1"]}`} {
		require.NoError(t, os.WriteFile(fileOf(state), []byte(text), 0o600))
		_, err := environ.Load(state, "run-1")
		require.ErrorContains(t, err, "run-1.json")
	}
}

func firstOf(_ []string, err error) error { return err }

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "agent")
	require.NoError(t, os.WriteFile(program, nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), nil, 0o600))
	t.Chdir(filepath.Dir(dir))
	open := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(open, "agent"), nil, 0o700))
	require.NoError(t, os.Chmod(open, 0o777))
	for _, row := range []struct {
		name, path, program, want string
	}{
		{"found", "/nowhere:" + dir, "agent", program},
		{"not in this PATH", "/nowhere", "agent", ""},
		{"no program", dir, "text", ""},
		{"a folder that is not absolute", filepath.Base(dir), "agent", ""},
		{"a path", "/nowhere", program, program},
		{"a path in the current folder", dir, "/proc/self/cwd/" + filepath.Base(dir) + "/agent", ""},
		{"a relative path", dir, "./" + filepath.Base(dir) + "/agent", ""},
		{"the current folder", "/proc/self/cwd/" + filepath.Base(dir), "agent", ""},
		{"a folder that others can write", open, "agent", ""},
		{"another entry has it too", open + ":" + dir, "agent", program},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := environ.LookPath(row.program, []string{"OTHER=1", "PATH=" + row.path})
			require.Equal(t, row.want == "", err != nil, "%v", err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestMerge(t *testing.T) {
	env := []string{"A=1", "B=2"}
	require.Equal(t, env, environ.Merge(t.Context(), env))
	require.Equal(t, []string{"B=2", "A=3", "C=4"},
		environ.Merge(environ.WithVariables(t.Context(), []string{"A=3", "C=4"}), env))
}
