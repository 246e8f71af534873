package blobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func opened(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "file://"+t.TempDir())
	require.NoError(t, err)
	return s
}

// TestBlobCountsCharacters and bytes, and its bytes are read back.
func TestBlobCountsCharacters(t *testing.T) {
	s := opened(t)
	b, err := blobs.Put(t.Context(), s, []byte("äöü\n"))
	require.NoError(t, err)
	require.Equal(t, []int{7, 4}, []int{int(b.Size), b.Chars})
	raw, err := blobs.Get(t.Context(), s, b.Digest)
	require.NoError(t, err)
	require.Equal(t, "äöü\n", string(raw))
}

// TestVersionHasItsFiles: the plan, and the digests of what was given to the run.
func TestVersionHasItsFiles(t *testing.T) {
	s := opened(t)
	given := rundir.Inputs{Files: []rundir.InputFile{{Path: "prompt.md", Digest: "d1"}}}
	raw, err := json.Marshal(given)
	require.NoError(t, err)
	inputs, err := blobs.Put(t.Context(), s, raw)
	require.NoError(t, err)
	plan, err := blobs.Put(t.Context(), s, []byte(`{"pipeline":"p"}`))
	require.NoError(t, err)
	v, err := blobs.Version(run.PlanRef{Plan: plan.Digest, Inputs: inputs.Digest}, blobs.FromStore(t.Context(), s))
	require.NoError(t, err)
	require.Equal(t, "p", v.Plan.Pipeline)
	require.Equal(t, given.Digests(), v.Files)
	require.NotEmpty(t, v.Files)
	away := errors.New("the store is away")
	_, err = blobs.Version(run.PlanRef{Plan: plan.Digest, Inputs: plan.Digest}, func(name, _ string) ([]byte, error) {
		if name == rundir.InputsFile {
			return nil, away
		}
		return []byte("{}"), nil
	})
	require.ErrorIs(t, err, away)
}

// TestCheckpointIsVerified: the blobs that it refers to are compared with the store.
func TestCheckpointIsVerified(t *testing.T) {
	s := opened(t)
	page, err := blobs.Put(t.Context(), s, []byte("page"))
	require.NoError(t, err)
	store := func(id string, artifact run.Blob) {
		raw, err := json.Marshal(run.Checkpoint{Version: run.CheckpointVersion, RunID: "r", ID: id, Seq: 4,
			State: run.State{Version: run.StateVersion, RunID: "r", Seq: 4, Status: run.Running, Artifact: &artifact}})
		require.NoError(t, err)
		name := fmt.Sprintf("checkpoints/r/%012d.%.16s.%s", 4, disk.Digest(raw), id)
		require.NoError(t, blobs.Of(s).Name(t.Context(), name, raw))
	}
	store("cp-good", page)
	store("cp-bad", run.Blob{Digest: strings.Repeat("0", 64), Size: 4})
	c, err := blobs.Checkpoint(t.Context(), s, "r", "cp-good")
	require.NoError(t, err)
	require.Equal(t, "cp-good", c.ID)
	require.Equal(t, int64(4), c.Seq)
	_, err = blobs.Checkpoint(t.Context(), s, "r", "cp-bad")
	require.ErrorIs(t, err, disk.ErrDamaged)
	require.ErrorContains(t, err, "checkpoint cp-bad is damaged: artifact integrity check failed")
	_, err = blobs.Checkpoint(t.Context(), s, "r", "cp-none")
	require.Error(t, err)
}
