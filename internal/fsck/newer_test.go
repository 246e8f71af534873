package fsck_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// TestNewerDirectoryIsNotWritten lets a newer release write each file with a version. No writer of this release changes
// the directory, also where the newer form looks like damage.
func TestNewerDirectoryIsNotWritten(t *testing.T) {
	for name, row := range map[string]struct{ file, from, to, want string }{
		"claim":              {layout.ClaimFile, `"version": 1`, `"version": 2`, "run.json has version 2"},
		"shape of the claim": {layout.ClaimFile, `"version": 1`, `"version": 2, "host": 7`, "run.json has version 2"},
		"meta":               {layout.MetaFile, `"version": 1`, `"version": 2`, "meta.json has version 2"},
		"shape of meta":      {layout.MetaFile, `"version": 1`, `"version": 2, "events": 7`, "meta.json has version 2"},
		"state":              {layout.MetaFile, `"version": 2`, `"version": 3`, "the state in meta.json has version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t)
			s.twoPasses()
			s.send()
			d := written(t, s)
			s.add(run.KindRunPaused, run.RunPaused{Reason: run.UserRequested})
			s.send()
			raw := look(t, d)[row.file]
			changed := strings.Replace(raw, row.from, row.to, 1)
			require.NotEqual(t, raw, changed)
			write(t, d, row.file, changed)
			before := look(t, d)

			_, err := d.Project(t.Context(), s.blobs, s.batches[len(s.batches)-1])
			require.ErrorContains(t, err, row.want+", and this program (devel) knows up to ")
			require.Equal(t, before, look(t, d))
			_, err = fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Blobs: s.blobs})
			require.ErrorContains(t, err, row.want)
			require.ErrorContains(t, d.Remove(), row.want)
			_, err = projector.Lock(t.Context(), d.Dir, "test")
			require.ErrorContains(t, err, row.want)
			require.Equal(t, before, look(t, d))
		})
	}
}
