package projector

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// TestMemoryIsOfTheSameBytes: contents are given out once, and only for the file that was written.
func TestMemoryIsOfTheSameBytes(t *testing.T) {
	w := working(t)
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

// TestMemoryIsBounded: it has the latest directories only, and large states displace those of other runs.
func TestMemoryIsBounded(t *testing.T) {
	m := new(Memory)
	for range 3 * maxRemembered {
		d := At(t.TempDir())
		m.keep(d.Root, remembered{stateRaw: []byte("{}"), state: new(encodable)})
		require.NotNil(t, m.takeState(d.Root, []byte("{}")))
		require.LessOrEqual(t, len(m.runs), maxRemembered)
	}
	m = new(Memory)
	large, huge := make([]byte, maxBytes/2), make([]byte, maxBytes+1)
	for i, want := range []int{1, 2, 1, 2} {
		m.keep(strconv.Itoa(i), remembered{stateRaw: large, state: new(encodable)})
		require.Len(t, m.runs, want)
	}
	m.keep("huge", remembered{stateRaw: huge, state: new(encodable)})
	require.Len(t, m.runs, 1)
	require.NotNil(t, m.takeState("huge", huge))
}

// TestMemoryOfAChangedLongRun: with more records than are written for every batch, a change to state.json is found by
// the next batch that writes it, and another size at once.
func TestMemoryOfAChangedLongRun(t *testing.T) {
	w := working(t)
	w.settle(numbered(2, "report"), "page 2")
	w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S2", AtPass: 2, USD: 2})
	checkpoint := w.last()
	w.begin(numbered(3, "report"), "page 1")
	w.settle(numbered(3, "report"), "page 3")
	w.add(run.KindCheckpointCreated, run.CheckpointCreated{ID: "cp-S3", AtPass: 3, USD: 3})
	for name, row := range map[string]struct {
		change func(string) string
		found  int64
	}{
		"a letter":  {func(s string) string { return strings.Replace(s, `"schemaVersion"`, `"schemaVersioN"`, 1) }, w.last()},
		"its size":  {func(s string) string { return s + " " }, checkpoint + 1},
		"its bytes": {func(s string) string { return strings.Repeat("x", len(s)) }, w.last()},
		"nothing":   {func(s string) string { return s }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d := claimed(t)
			d.FullRecords, d.Memory = 1, new(Memory)
			w.project(d, checkpoint)
			raw, err := d.ReadFile(layout.StateFile)
			require.NoError(t, err)
			write(t, d, layout.StateFile, row.change(string(raw)))
			var found int64
			for last := checkpoint + 1; last <= w.last(); last++ {
				p, err := d.Project(t.Context(), w.store, w.batch(last, last))
				require.NoError(t, err)
				if len(p.Healed) > 0 && found == 0 {
					found = last
				}
			}
			require.Equal(t, row.found, found)
			plain := claimed(t)
			plain.FullRecords = 1
			w.project(plain, w.last())
			want, err := plain.ReadFile(layout.StateFile)
			require.NoError(t, err)
			got, err := d.ReadFile(layout.StateFile)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		})
	}
}

// TestMemoryAfterAFailedWrite: a projection that fails at any write leaves nothing wrong in memory.
func TestMemoryAfterAFailedWrite(t *testing.T) {
	w := working(t)
	want := contents(t, w.projected(w.last()))
	full := errors.New("no space")
	for fail, more := 0, true; more; fail++ {
		d, count := claimed(t), 0
		d.Memory = new(Memory)
		w.project(d, w.last()-3)
		d.Disk = disk.Disk{Hook: func(disk.Step) error {
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
		d.Disk = disk.Disk{}
		p, err := d.Project(t.Context(), w.store, w.batch(tail.Seq+1, w.last()))
		require.NoError(t, err)
		require.Equal(t, run.ProjectionWritten, p.Outcome)
		require.Equal(t, want, contents(t, d), "failed at write %d", fail)
	}
}
