package fsck_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/durable"
)

// long is a directory whose state.json lags from the second record on.
func long(t testing.TB) projector.Dir {
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	d.FullRecords = 1
	require.NoError(t, d.Take(claim()))
	return d
}

func TestLaggingStateReadsAsCurrent(t *testing.T) {
	s := whole(t)
	plain, lagging := projector.At(filepath.Join(t.TempDir(), "run")), long(t)
	require.NoError(t, plain.Take(claim()))
	lags := 0
	for _, b := range s.batches {
		project(t, plain, s, b)
		project(t, lagging, s, b)
		want, err := records.State(plain.Dir)
		require.NoError(t, err)
		got, err := records.State(lagging.Dir)
		require.NoError(t, err)
		require.Equal(t, want, got, "after event %d", b.First)
		m, err := lagging.Meta()
		require.NoError(t, err)
		if m.Behind != nil {
			lags++
		}
	}
	require.Greater(t, lags, 3, "state.json stays behind between checkpoints")
	same(t, look(t, plain), look(t, lagging), "at the end nothing differs")
}

func TestLaggingDirectoryIsCompleteAfterAnyStop(t *testing.T) {
	s := whole(t)
	want := look(t, written(t, s))
	n := 5 // a batch in the middle, while state.json lags
	for k := 0; ; k++ {
		d := long(t)
		project(t, d, s, s.batches[:n]...)
		calls := -1
		d.Disk = durable.Disk{Hook: func(durable.Step) error {
			if calls++; calls >= k {
				return errStop
			}
			return nil
		}}
		_, err := d.Project(context.Background(), s.blobs, s.batches[n])
		d.Disk = durable.Disk{}
		project(t, d, s, s.batches[n:]...)
		same(t, want, look(t, d), fmt.Sprintf("stopped before step %d", k))
		if err == nil {
			return
		}
	}
}

func TestLaggingDirectoryWithoutStateIsRebuilt(t *testing.T) {
	s := whole(t)
	want := look(t, written(t, s))
	d := long(t)
	project(t, d, s, s.batches[:6]...)
	require.NoError(t, os.Remove(d.Path(layout.StateFile)))
	project(t, d, s, s.batches[6:]...)
	same(t, want, look(t, d), "state.json was removed")
}
