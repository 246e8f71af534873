package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestReceivedPlansNeedTrust executes the plan of a directory only if its run is known on this machine: recorded, or
// started on the server with the key of this host.
func TestReceivedPlansNeedTrust(t *testing.T) {
	w := newHost(t)
	ours, err := grants.Load(config.Settings{StateDir: w.state})
	require.NoError(t, err)
	theirs, err := grants.Load(config.Settings{StateDir: t.TempDir()})
	require.NoError(t, err)
	for verb, args := range map[string][]string{
		"resume": nil, "revert": {"--to", "cp-1"}, "fork": {"--detach"}, "replay": {"--detach"},
	} {
		for _, trusted := range []bool{true, false} {
			id := fmt.Sprintf("7777-%s-%v", verb, trusted)
			dir := filepath.Join(w.root, id)
			w.run(t, "small.yaml", dir, id, run.Failed)
			require.NoError(t, os.Remove(filepath.Join(w.state, "runs", id)))
			d, call := projector.At(dir), append([]string{verb, dir}, args...)
			_, code := w.here("status", dir)
			require.Zero(t, code, "it can be read")
			_, code = w.here("pause", dir)
			require.NotZero(t, code)
			require.NoFileExists(t, filepath.Join(w.state, "runs", id), "a message does not make it known")
			w.refusesUnknown(t, id, dir, call)
			w.temporal.remember(id, d, theirs)
			w.refusesUnknown(t, id, dir, call)
			if verb == "revert" {
				continue // this server reverts nothing
			}
			if trusted {
				call = append(call, "--trust")
			} else {
				w.temporal.remember(id, d, ours)
			}
			started := w.temporal.count()
			output, code := w.here(call...)
			require.Zero(t, code, output)
			require.Equal(t, started+1, w.temporal.count())
		}
	}
}

// refusesUnknown requires that a verb refuses a directory and changes nothing.
func (w *host) refusesUnknown(t *testing.T, id, dir string, call []string) {
	t.Helper()
	before, started := w.files(t, w.root), w.temporal.count()
	output, code := w.here(call...)
	require.Equal(t, 2, code, output)
	require.Contains(t, output, "this machine has recorded no run "+id)
	require.Contains(t, output, "add --trust. To see the commands: cat "+filepath.Join(dir, "_orchestrator/plan.json"))
	require.Equal(t, before, w.files(t, w.root))
	require.Equal(t, started, w.temporal.count())
}
