package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestAtHome tells a directory that was moved from one that was copied.
func TestAtHome(t *testing.T) {
	claim := run.Claim{Version: 1, RunID: "r1"}
	for name, tt := range map[string]struct {
		become func(t *testing.T, home string) (now string)
		copied bool
	}{
		"where it was": {become: func(_ *testing.T, home string) string { return home }},
		"moved": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			return home + "-moved"
		}},
		"copied": {copied: true, become: func(t *testing.T, home string) string {
			require.NoError(t, os.CopyFS(home+"-copied", os.DirFS(home)))
			return home + "-copied"
		}},
		"another name of the same": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Symlink(home, home+"-link"))
			return home + "-link"
		}},
		"moved, and its place is another run's": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			require.NoError(t, projector.At(home).Take(run.Claim{Version: 1, RunID: "r2"}))
			return home + "-moved"
		}},
		"moved, and its place is free": {become: func(t *testing.T, home string) string {
			require.NoError(t, os.Rename(home, home+"-moved"))
			require.NoError(t, os.Mkdir(home, 0o755))
			return home + "-moved"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			state, home := t.TempDir(), filepath.Join(t.TempDir(), "home")
			require.NoError(t, projector.At(home).Take(claim))
			require.NoError(t, AtHome(state, claim, projector.At(home)), "not remembered")
			require.NoError(t, Index(state, "r1", home))
			now := tt.become(t, home)
			err := AtHome(state, claim, projector.At(now))
			if !tt.copied {
				require.NoError(t, err)
				return
			}
			require.Equal(t, &CopyError{Dir: now, RunID: "r1", Home: home}, err)
			require.ErrorContains(t, err, "starter resume "+home)
		})
	}
}
