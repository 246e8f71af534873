package fsck_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// amended is a run whose definition was amended after its first pass. seq is that of the amendment.
func amended(t testing.TB) (s *story, seq int64) {
	s = newStory(t)
	s.start()
	s.pass(1)
	inputs, err := json.Marshal(rundir.Inputs{Version: 1,
		Files: []rundir.InputFile{{Path: "corpus/a.md", Digest: s.blobs.keep("an amended corpus").Digest}}})
	require.NoError(t, err)
	next := run.PlanRef{Definition: s.blobs.keep("stages: [] # amended\n").Digest,
		Plan: s.blobs.keep(`{"version":1}`).Digest, Policy: s.blobs.keep(`{"agents":[]}`).Digest,
		Inputs: s.blobs.keep(string(inputs)).Digest, ConfigHash: "fedcba9876543210"}
	s.add(run.KindRunAmended, run.RunAmended{New: next, Terms: run.PlanTerms{TotalPasses: 4}, By: "op"})
	seq = s.state.Seq
	s.pass(2)
	s.phase = ""
	s.add(run.KindRunEnd, run.RunEnd{Status: run.Cancelled})
	s.send()
	return s, seq
}

// TestAmendedFilesAreCheckedAndRestored hurts what an amendment left, and restores it by a repair, and by a rebuild if
// the directory is lost.
func TestAmendedFilesAreCheckedAndRestored(t *testing.T) {
	ctx := context.Background()
	s, seq := amended(t)
	d := written(t, s)
	require.Empty(t, check(t, d).Issues)
	want, folder := look(t, d), layout.AmendedDir(seq)
	require.Equal(t, "an amended corpus", want[folder+"/inputs/corpus/a.md"])
	for _, name := range []string{"pipeline.yaml", "plan.json", "policy.json", "inputs.json", "inputs/corpus/a.md"} {
		file := filepath.Join(folder, name)
		require.Contains(t, want, file)
		for how, hurt := range map[string]func(projector.Dir) error{
			"missing":            func(d projector.Dir) error { return os.Remove(d.Path(file)) },
			"changed":            func(d projector.Dir) error { return os.WriteFile(d.Path(file), []byte("changed"), 0o644) },
			"without its folder": func(d projector.Dir) error { return os.RemoveAll(d.Path(folder)) },
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				c := projector.At(filepath.Join(t.TempDir(), "run"))
				require.NoError(t, os.CopyFS(c.Root, os.DirFS(d.Root)))
				require.NoError(t, hurt(c))
				require.Contains(t, codesOf(check(t, c)), fsck.DerivedFileDamaged)
				_, err := fsck.Repair(ctx, c, fsck.RepairOptions{Blobs: s.blobs, Now: noon, By: "tests", Apply: true})
				require.NoError(t, err)
				require.Empty(t, check(t, c).Issues)
				require.Equal(t, want[file], look(t, c)[file])
			})
		}
	}
	lost := projector.At(filepath.Join(t.TempDir(), "run"))
	_, err := lost.Rebuild(ctx, s.blobs, projector.Source{Claim: claim(), Batches: s.batches})
	require.NoError(t, err)
	same(t, want, look(t, lost), "rebuilt from history")
}
