package projector

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// TestMemoryIsOfTheSameBytes: contents are given out once, and only for the file that was written.
func TestMemoryIsOfTheSameBytes(t *testing.T) {
	w := told(t)
	d := claimed(t)
	d.Memory = new(Memory)
	w.project(d, w.last())
	meta, err := d.ReadFile(layout.MetaFile)
	require.NoError(t, err)
	state, err := d.ReadFile(layout.StateFile)
	require.NoError(t, err)

	require.Nil(t, d.Memory.takeMeta(d.Root, append(meta, ' ')), "other bytes")
	require.Nil(t, d.Memory.takeState(d.Root, append(state, ' ')), "other bytes")
	require.Nil(t, d.Memory.takeState(d.Root+"2", state), "another directory")
	require.Nil(t, (*Memory)(nil).takeState(d.Root, state), "no memory")
	require.Equal(t, w.last(), d.Memory.takeMeta(d.Root, meta).Events.Seq)
	require.Equal(t, w.last(), d.Memory.takeState(d.Root, state).LastSeq)
	require.Nil(t, d.Memory.takeMeta(d.Root, meta), "taken")
	require.Nil(t, d.Memory.takeState(d.Root, state), "taken")
}

// TestMemoryIsBounded: it has the latest directories only.
func TestMemoryIsBounded(t *testing.T) {
	m := new(Memory)
	for range 3 * maxRemembered {
		d := At(t.TempDir())
		m.keep(d.Root, remembered{stateRaw: []byte("{}"), state: new(encodable)})
		require.NotNil(t, m.takeState(d.Root, []byte("{}")))
		require.LessOrEqual(t, len(m.runs), maxRemembered)
	}
}

// TestMemoryOfChangedFiles: between two projections another process changes a file. The second one reports and repairs
// it, as without a memory.
func TestMemoryOfChangedFiles(t *testing.T) {
	w := told(t)
	want := contents(t, w.projected(w.last()))
	for name, change := range map[string]func(string) string{
		layout.StateFile: func(s string) string { return strings.Replace(s, `"schemaVersion"`, `"schemaVersioN"`, 1) },
		layout.MetaFile:  func(s string) string { return s[:len(s)/2] },
	} {
		d := claimed(t)
		d.Memory = new(Memory)
		w.project(d, w.last()-1)
		raw, err := d.ReadFile(name)
		require.NoError(t, err)
		write(t, d, name, change(string(raw)))
		require.NotEmpty(t, w.project(d, w.last()).Healed, name)
		for file := range want {
			got, err := d.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, want[file], string(got), "%s after a change to %s", file, name)
		}
	}
}

// TestMemoryAfterAFailedWrite: a projection that fails at any write leaves nothing wrong in memory.
func TestMemoryAfterAFailedWrite(t *testing.T) {
	w := told(t)
	want := contents(t, w.projected(w.last()))
	full := errors.New("no space")
	for fail, more := 0, true; more; fail++ {
		d, count := claimed(t), 0
		d.Memory = new(Memory)
		w.project(d, w.last()-3)
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if count++; count == fail {
				return full
			}
			return nil
		}}
		tail := w.tail(w.last() - 3)
		_, err := d.Project(t.Context(), w.store, w.batch(tail.Seq+1, w.last()))
		if more = count >= fail; fail > 0 && more {
			require.ErrorIs(t, err, full)
		}
		d.Disk = durable.Disk{}
		p, err := d.Project(t.Context(), w.store, w.batch(tail.Seq+1, w.last()))
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
		require.Equal(t, want, contents(t, d), "failed at write %d", fail)
	}
}
