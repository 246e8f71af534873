package operations

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestStoresThatADirectoryNames opens the configured store, and those of recorded runs; another one only with trust.
func TestStoresThatADirectoryNames(t *testing.T) {
	state, home := t.TempDir(), t.TempDir()
	url := func(name string) string { return "file://" + filepath.Join(home, name) }
	dir := projector.At(filepath.Join(home, "run"))
	require.NoError(t, dir.Take(run.Claim{Version: 1, RunID: "recorded", Store: url("recorded")}))
	require.NoError(t, Index(state, "recorded", dir.Root))
	received := projector.At(filepath.Join(home, "received"))
	require.NoError(t, received.Take(run.Claim{Version: 1, RunID: "received", Store: url("foreign")}))

	allowed := Stores{Configured: url("configured"), StateDir: state}
	ctx := WithStores(t.Context(), allowed)
	for _, name := range []string{"configured", "recorded"} {
		s, err := OpenStore(ctx, url(name))
		require.NoError(t, err, name)
		require.NoError(t, s.Close())
	}
	_, err := OpenStore(ctx, url("foreign"))
	var refused *StoreError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "if you trust the directory, add --trust, or name the store: --store")
	_, err = os.Stat(filepath.Join(home, "foreign"))
	require.ErrorIs(t, err, os.ErrNotExist, "a refused store is not created")

	allowed.Trust = true
	for _, ctx := range []context.Context{WithStores(t.Context(), allowed), t.Context()} {
		s, err := OpenStore(ctx, url("foreign"))
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
}

// TestDirectoriesOfOtherUsersAreRefused finds a directory of another user only with trust, and never writes there.
func TestDirectoriesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := projector.At(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, dir.Take(run.Claim{Version: 1, RunID: "theirs"}))
	for _, name := range []string{"", "run.json"} {
		require.NoError(t, os.Chown(dir.Path(name), 54321, 54321))
	}
	_, err := Find(t.TempDir(), dir.Root, false)
	require.ErrorContains(t, err, "open run directory "+dir.Root+": it belongs to user 54321; run the command as 54321")
	require.ErrorContains(t, err, "--trust")

	d, err := Find(t.TempDir(), dir.Root, true)
	require.NoError(t, err)
	claim, err := d.Claim()
	require.NoError(t, err)
	require.Equal(t, "theirs", claim.RunID)
	_, err = projector.Lock(t.Context(), d.Dir, "test")
	require.ErrorContains(t, err, "it belongs to user 54321")
	require.ErrorContains(t, d.Inside().WriteFile(d.Path("meta.json"), nil, 0o600), "it belongs to user 54321")
	require.NoFileExists(t, d.Path("meta.json"))
	require.NoFileExists(t, d.Path("run.lock"))
}
