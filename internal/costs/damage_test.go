package costs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestDamagedFileIsRestored: what cannot be read is reported, kept, and restored from the store before the next call is
// reserved. Nothing counts as zero.
func TestDamagedFileIsRestored(t *testing.T) {
	for _, row := range []struct {
		name     string
		hurt     func(data []byte) []byte
		lines    int
		restored int
	}{
		{"a line of zeros", func(data []byte) []byte {
			at := bytes.IndexByte(data, '\n')
			return append(make([]byte, at), data[at:]...)
		}, 1, 1},
		{"a changed byte", func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"kind":"cost"`),
				[]byte(`"kind":"cosT"`), 1)
		}, 1, 0},
		{"a missing line", func(data []byte) []byte { return data[bytes.IndexByte(data, '\n')+1:] }, 1, 1},
		{"an empty file", func([]byte) []byte { return []byte{} }, 1, 2},
		{"another file", func([]byte) []byte { return []byte("hello\n") }, 1, 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHost(t)
			for id, usd := range map[string]float64{"r/1": 2, "r/2": 3} {
				require.Nil(t, h.reserve(id, Budget{}))
				h.claim(id, 1, true)
				h.answer(id, 1, exact(usd))
				h.settled(id)
			}
			data, err := os.ReadFile(h.file())
			require.NoError(t, err)
			hurt := row.hurt(data)
			require.NoError(t, os.WriteFile(h.file(), hurt, 0o600))

			reader := h.program()
			found, err := reader.Damages(h.now.Add(-time.Hour))
			require.NoError(t, err)
			require.Equal(t, []Damage{{Day: "2026-11-25", File: h.file(), Lines: row.lines, Open: true}}, found)
			same, err := os.ReadFile(h.file())
			require.NoError(t, err)
			require.Equal(t, hurt, same, "reading changes nothing")

			h.Ledger = h.program()
			require.NotNil(t, h.reserve("r/3", Budget{USD: 6.9}), "5.00 are used, and the mean is 2.50")
			require.Nil(t, h.reserve("r/3", Budget{USD: 7.6}))
			require.InDelta(t, 5, h.used().USD, 1e-9)
			kept := filepath.Join(h.dir, folder, damaged, "2026-11-25.1"+suffix)
			require.Equal(t, []Damage{{Day: "2026-11-25", File: kept, Lines: row.lines, Restored: row.restored}}, h.damages())
			same, err = os.ReadFile(kept)
			require.NoError(t, err)
			require.Equal(t, hurt, same)
		})
	}
}

// TestRemovedFileIsRestored: a program that has read a file does not take its absence for an empty day.
func TestRemovedFileIsRestored(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	h.answer("r/1", 1, exact(2))
	h.settled("r/1")
	require.NoError(t, os.Remove(h.file()))
	require.NotNil(t, h.reserve("r/2", Budget{USD: 3}))
	require.InDelta(t, 2, h.used().USD, 1e-9)
}

// TestInterruptedWriteLosesNothing: the beginning of a line that an interrupted write left was never confirmed.
func TestInterruptedWriteLosesNothing(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	h.claim("r/1", 1, true)
	h.answer("r/1", 1, exact(2))
	h.settled("r/1")
	data, err := os.ReadFile(h.file())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.file(), append(data, `{"n":3,"at":"20`...), 0o600))
	for _, l := range []*Ledger{h.Ledger, h.program()} {
		h.Ledger = l
		found, err := l.Damages(h.now.Add(-time.Hour))
		require.NoError(t, err)
		require.Empty(t, found)
		require.InDelta(t, 2, h.used().USD, 1e-9)
	}
	require.Nil(t, h.reserve("r/2", Budget{USD: 9}))
	require.Empty(t, h.damages())
	require.Equal(t, 1, h.since(h.now.Add(-time.Hour)).Reserved.Calls)
}

func TestNewerFileIsRefused(t *testing.T) {
	h := newHost(t)
	require.Nil(t, h.reserve("r/1", Budget{}))
	data, err := os.ReadFile(h.file())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.file(), bytes.Replace(data, []byte(`"v":1`), []byte(`"v":2`), 1), 0o600))
	_, err = h.program().Today()
	require.ErrorIs(t, err, errNewer)
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"n":1,"v":1,"at":"2026-11-25T10:00:00.000Z","kind":"reserved","reserved":{"call":"r/1"}}`))
	f.Add([]byte(`{"n":2,"v":1,"at":"2026-11-25T10:00:00.000Z","kind":"cost","of":{"call":"r/1"},"part":"e"}`))
	f.Fuzz(func(_ *testing.T, line []byte) {
		if r, err := decode(line); err == nil {
			newDay("2026-11-25").apply(r)
		}
	})
}
