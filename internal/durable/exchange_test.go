package durable_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

// TestExchange gives two folders each other's names, or leaves both as they were.
func TestExchange(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "staging", "new"), filepath.Join(dir, "site")
	for path, text := range map[string]string{a: "new", b: "old"} {
		require.NoError(t, os.MkdirAll(path, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(path, "f"), []byte(text), 0o600))
	}
	spare := filepath.Join(dir, "staging", "spare")
	var steps []string
	record := func(s durable.Step) error { steps = append(steps, string(s.Op)+" "+filepath.Base(s.Path)); return nil }

	require.ErrorIs(t, durable.Disk{Hook: faultAt(0, "fail")}.Exchange(a, b, spare), errInjected)
	require.Equal(t, map[string]string{"staging/": "", "staging/new/": "", "staging/new/f": "new", "site/": "",
		"site/f": "old"}, look(t, dir))

	require.NoError(t, durable.Disk{Hook: record}.Exchange(a, b, spare))
	require.Equal(t, map[string]string{"staging/": "", "staging/new/": "", "staging/new/f": "old", "site/": "",
		"site/f": "new"}, look(t, dir))
	require.Contains(t, steps, "exchange site")
	require.Equal(t, []string{"sync folder staging", "sync folder " + filepath.Base(dir)}, steps[len(steps)-2:])
	require.Error(t, durable.Disk{}.Exchange(filepath.Join(dir, "nothing"), b, spare))
	require.Equal(t, "new", look(t, dir)["site/f"])
}

// TestSettleTree syncs every file, and every folder for its names; links lead nowhere.
func TestSettleTree(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "x", "empty"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x", "f"), []byte("1"), 0o400))
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "link")))
	var steps []string
	disk := durable.Disk{Hook: func(s durable.Step) error {
		rel, err := filepath.Rel(dir, s.Path)
		steps = append(steps, string(s.Op)+" "+rel)
		return err
	}}
	require.NoError(t, disk.SettleTree(dir))
	require.Equal(t, []string{"sync folder .", "sync folder x", "sync folder x/empty", "sync x/f"}, steps)
	require.ErrorIs(t, durable.Disk{Hook: faultAt(3, "fail")}.SettleTree(dir), errInjected)
}
