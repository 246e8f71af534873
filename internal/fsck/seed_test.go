package fsck_test

import (
	"context"
	"errors"
	"io/fs"
	"testing"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/rundir"
)

func TestArtifact(t *testing.T) {
	seed := "<html>seed</html>"
	for _, row := range []struct {
		name string
		send func(*story)
		hurt func(*testing.T, projector.Dir)
		want rundir.Artifact
	}{
		{"before its first pass", (*story).start, func(*testing.T, projector.Dir) {},
			rundir.Artifact{File: "artifact.html", Seed: []byte(seed), Now: []byte(seed)}},
		{"after two passes, from the backup", (*story).twoPasses, func(*testing.T, projector.Dir) {},
			rundir.Artifact{File: "artifact.html", Seed: []byte(seed), Now: []byte("<html>0011</html>")}},
		{"edited by hand", (*story).twoPasses, func(t *testing.T, d projector.Dir) {
			write(t, d, "artifact.html",
				"mine")
		},
			rundir.Artifact{File: "artifact.html", Seed: []byte(seed), Now: []byte("mine")}},
		{"gone", (*story).twoPasses, func(t *testing.T, d projector.Dir) { remove(t, d, "artifact.html") },
			rundir.Artifact{File: "artifact.html", Seed: []byte(seed), Absent: true}},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newStory(t)
			row.send(s)
			s.send()
			d := projector.At(t.TempDir())
			for _, b := range s.batches {
				_, err := d.Project(context.Background(), s.blobs, b)
				require.NoError(t, err)
			}
			row.hurt(t, d)
			got, err := d.Artifact()
			require.NoError(t, err)
			require.Equal(t, row.want, got)
		})
	}
}

func TestArtifactWithoutItsSeed(t *testing.T) {
	s := newStory(t)
	s.start()
	s.send()
	d := projector.At(t.TempDir())
	_, err := d.Project(context.Background(), s.blobs, s.batches[0])
	require.NoError(t, err)
	write(t, d, "artifact.html", "mine")
	_, err = d.Artifact()
	require.True(t, errors.Is(err, fs.ErrNotExist), "%v", err)
	_, err = projector.At(t.TempDir()).Artifact()
	require.ErrorIs(t, err, rundir.ErrNoArtifact)
}
