package activities

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/agent"
)

// TestNextDeliveryIgnoresWhatAgentPrepared: the name of the next attempt's directory can be guessed.
func TestNextDeliveryIgnoresWhatAgentPrepared(t *testing.T) {
	const next = `next=$(dirname "$(dirname "$PWD")" | sed 's/_g0.002.1.-.1/_g0.002.1.-.2/'); `
	for name, prepare := range map[string]string{
		"named pipes": `mkdir -p "$next/1/work"; cd "$next/1"; mkfifo prompt.md stdout stderr worker.json; `,
		"a symlink":   `mkdir ../trap; ln -s "$(dirname "$PWD")/trap" "$next"; `,
		"a file":      `touch "$next"; `,
	} {
		t.Run(name, func(t *testing.T) {
			h := plain(t, "sh "+next+prepare+"echo Done.")
			h.accepted()
			h.in.Call = strings.Replace(h.in.Call, "-.1", "-.2", 1)
			t.Setenv(playing, "sh echo Again.")
			h.accepted()
			require.Equal(t, 2, h.started())
			h.noScratch()
		})
	}
}

// TestPipesAsRecordsDoNotBlockStop: neither the cause that the supervisor reads nor the file that the worker writes
// can block, whatever the agent puts there.
func TestPipesAsRecordsDoNotBlockStop(t *testing.T) {
	for _, names := range []string{"stop.json", "stop.json.new", "supervisor.json worker.json exit.json"} {
		t.Run(names, func(t *testing.T) {
			h := plain(t, "sh cd ..; rm -f "+names+"; mkfifo "+names+"; touch \"$"+folder+"/ready\"; exec sleep 600")
			ctx, cancel := context.WithCancelCause(t.Context())
			done := h.begin(ctx, h.acts)
			h.await(func() bool { _, err := os.Stat(filepath.Join(h.dir, "ready")); return err == nil })
			cancel(temporal.NewCanceledError())
			require.Error(t, (<-done).err)
		})
	}
}

// TestPipesAsRecordsDoNotBlockTakeover: another worker finds the call of a dead one.
func TestPipesAsRecordsDoNotBlockTakeover(t *testing.T) {
	for _, name := range []string{"worker.json", "environ.json", "supervisor.json", "exit.json", "stdout"} {
		t.Run(name, func(t *testing.T) {
			h := plain(t, "sh echo Again.")
			h.leave(gone(t), gone(t), "From beyond.\n")
			dir := h.deliveryDir()
			if name != "exit.json" {
				h.exited(dir, agent.Exit{})
			}
			require.NoError(t, os.RemoveAll(filepath.Join(dir, name)))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, name), 0o600))
			h.result()
			h.noScratch()
		})
	}
}

func TestLimitsOfDefinitionAreEnforced(t *testing.T) {
	for name, row := range map[string]odd{
		"stdout": {play: "sh head -c 2000000 /dev/zero", outcome: "output-truncated",
			message: "agent printed more than 1MB; its output is cut off there (limits.output)"},
		"artifact": {play: "sh truncate -s 2M page.html; echo Done.", outcome: "output-no-artifact",
			message: "page.html is larger than 1MB (limits.output)"},
		"silence": {play: "sh echo Begun.; sleep 60", outcome: "claude-p-timeout",
			message: "agent printed nothing for too long (limits.idle)"},
	} {
		t.Run(name, func(t *testing.T) {
			h := plain(t, row.play)
			limit := "output: 1MB"
			if name == "silence" {
				limit = "idle: 300ms"
			}
			h.define("roles:", "limits: {"+limit+"}\nroles:")
			h.builder()
			res := h.result()
			require.Equal(t, row.outcome, res.Outcome)
			require.Contains(t, res.Message, row.message)
			if res.Output != nil {
				require.LessOrEqual(t, res.Output.Size, int64(1e6))
			}
		})
	}
}
