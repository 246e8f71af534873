package fsck_test

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/object"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// turnsIn returns turn, step and call of each row of a file.
func turnsIn(t *testing.T, d projector.Dir, file string) (out []string) {
	t.Helper()
	type row struct {
		Turn int    `json:"turn"`
		Step string `json:"step"`
		Call string `json:"call"`
	}
	rows, skipped, err := rundir.Rows[row](d.Dir, file)
	require.NoError(t, err)
	require.Zero(t, skipped)
	for _, r := range rows {
		out = append(out, fmt.Sprintln(r.Turn, r.Step, r.Call))
	}
	return out
}

// TestRowsNameTheirTurn: a turn is a settled pass that outputs the artifact or changes (requirement 004). Its failed
// attempts have its number, and calls of other roles have that of the turn before.
func TestRowsNameTheirTurn(t *testing.T) {
	s := newStory(t)
	s.start()
	s.pass(1)
	s.pass(2) // a report
	s.begin(about(3), 1)
	s.fail(about(3), 1)
	s.begin(about(3), 2)
	s.end(about(3), "ok", 2)
	s.send()
	d := written(t, s)
	require.Equal(t, []string{
		fmt.Sprintln(1, "001", s.call(about(1), 1)), fmt.Sprintln(1, "002", s.call(about(2), 1)),
		fmt.Sprintln(2, "003", s.call(about(3), 1)), fmt.Sprintln(2, "003", s.call(about(3), 2)),
	}, turnsIn(t, d, layout.TracesFile))
	require.Equal(t, []string{"1 001 \n", "2 003 \n"}, turnsIn(t, d, layout.ProvenanceFile))
	require.Empty(t, check(t, d).Issues)
}

// TestRowsOfARunOnATreeNameTheirSnapshot: after a revert too, the number is that of snapshots/turn-N.
func TestRowsOfARunOnATreeNameTheirSnapshot(t *testing.T) {
	s := newStory(t)
	s.worksOn("")
	changed := func(n int, tree string) {
		s.turn(n, "ok", tree)
		s.add(run.KindWorkspaceUpdated, run.WorkspaceUpdated{Step: "turns/1", Call: fmt.Sprintf("call %d", n),
			Tree: s.blobs.keep(tree), Changed: 1, Files: []run.FileChange{{Path: "file.txt", Kind: "changed"}}})
	}
	changed(1, "tree 1")
	to := s.state
	changed(2, "tree 2")
	s.revert(to)
	changed(2, "another tree 2")
	s.send()
	d := written(t, s)
	require.Equal(t, []string{"1 turns/1 call 1\n", "2 turns/1 call 2\n", "3 turns/1 call 2\n"},
		turnsIn(t, d, layout.ProvenanceFile))
	require.Equal(t, snapshotOf(t, s, "another tree 2"), look(t, d)[layout.SnapshotManifest(3)])
}

// TestEarlierReleasesCountedNoTurnsOfAnArtifact: a run that one of them started continues with the right number.
func TestEarlierReleasesCountedNoTurnsOfAnArtifact(t *testing.T) {
	s := newStory(t)
	s.start()
	for n := 1; n <= 2; n++ {
		s.pass(n)
	}
	s.begin(about(3), 1)
	s.fail(about(3), 1)
	s.begin(about(3), 2)
	s.end(about(3), "ok", 2)
	s.send()
	d, sent := written(t, s), len(s.batches)

	raw, err := os.ReadFile(d.Path(layout.StateFile))
	require.NoError(t, err)
	old := regexp.MustCompile(`\n *"turns": 2,`).ReplaceAll(raw, nil)
	require.NotEqual(t, raw, old)
	require.NoError(t, os.WriteFile(d.Path(layout.StateFile), old, 0o644))
	m, err := d.Meta()
	require.NoError(t, err)
	m.Records, m.Digest = rundir.MarkOf(old), ""
	raw, err = layout.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(d.Path(layout.MetaFile), object.Sealed(raw, layout.Digest(raw)), 0o644))
	require.Empty(t, check(t, d).Issues)

	s.pass(5)
	s.send()
	project(t, d, s, s.batches[sent:]...)
	require.Equal(t, []string{"1 001 \n", "2 003 \n", "3 005 \n"}, turnsIn(t, d, layout.ProvenanceFile))
	require.NoDirExists(t, d.Path(layout.TornDir), "nothing was rebuilt")
}
