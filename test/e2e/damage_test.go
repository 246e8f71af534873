package e2e_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestChangedLineIsReportedAndRepaired changes one byte of an old line while a run is paused. The run records it and
// completes, its workflow closes, each command names the damage, and a repair restores the line from the store.
func TestChangedLineIsReportedAndRepaired(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.spoil(slow("3", "2"))
	dir := h.dir("run")
	a := h.attach("run", "--config", tiny(), "--output-dir", dir)
	h.mid("003")
	a.interrupt()
	require.Zero(t, a.wait(), a.output())

	path := filepath.Join(dir, rundir.EventsFile)
	whole := read(t, path)
	lines := bytes.SplitAfter(whole, []byte("\n"))
	lines[2] = bytes.Replace(lines[2], []byte(`"kind":"p`), []byte(`"kind":"q`), 1)
	require.NotEqual(t, whole, bytes.Join(lines, nil))
	require.NoError(t, os.WriteFile(path, bytes.Join(lines, nil), 0o600))

	const damage = "events.jsonl, line 3, is not what was written"
	require.Contains(t, h.starter("resume", dir), damage)
	h.finish(dir)
	until(t, "its workflow closes", func() bool { return h.status(dir).EffectiveStatus.Liveness == run.LiveClosed })
	events := eventsOf(t, dir)
	recorded := of[run.JournalDamage](events, run.KindJournalDamaged)
	require.Len(t, recorded, 1)
	require.EqualValues(t, 3, recorded[0].Line)
	require.Equal(t, run.KindRunEnd, events[len(events)-1].Kind)
	for _, verb := range []string{"status", "diagnose", "check", "watch", "logs"} {
		output, _ := h.try(verb, dir)
		require.Contains(t, output, damage, verb)
	}
	require.Contains(t, h.starter("list"), damage)
	require.Contains(t, h.starter("report", dir, "--out", "-"), damage)

	output, code := h.try("repair-state", "--apply", dir)
	require.Zero(t, code, output)
	require.True(t, bytes.HasPrefix(read(t, path), whole), "the line is restored")
	h.undisturbed(dir, 1)
	output, code = h.try("status", dir)
	require.Zero(t, code, output)
	require.Contains(t, output, "; repaired")
}
