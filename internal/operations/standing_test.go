package operations

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/run"
)

// A run is gone only from the server that it was started on; hosted Temporal is known by its namespace.
func TestLostWorkflowIsGoneOnItsOwnServerOnly(t *testing.T) {
	for _, row := range []struct {
		name    string
		hosted  bool
		claimed string // cluster in run.json
		want    run.Liveness
	}{
		{"its cluster", false, "this", run.LiveGone},
		{"another cluster", false, "other", run.LiveUnknown},
		{"its namespace, by a client that is told the cluster", false, "the namespace", run.LiveGone},
		{"its namespace", true, "the namespace", run.LiveGone},
		{"another namespace", true, "other", run.LiveUnknown},
		{"a cluster that is not disclosed", true, "this", run.LiveUnknown},
		{"none recorded", true, "", run.LiveGone},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Operator{Client: &fakeTemporal{cluster: fakeCluster{hosted: row.hosted}}, Namespace: "default"}
			got := o.EffectiveStatus(t.Context(), run.Claim{RunID: "lost", Namespace: "default", Cluster: row.claimed},
				run.Running)
			require.Equal(t, row.want, got.Liveness, got.Detail)
		})
	}
}

// A server whose database was lost is another cluster at the same address: a resume needs no force there.
func TestLostDatabaseLeavesTheRunGone(t *testing.T) {
	o := Operator{Client: &fakeTemporal{}, Namespace: "default", Address: "temporal:7233"}
	claim := run.Claim{RunID: "lost", Namespace: "default", Cluster: "before", Address: "temporal:7233"}
	got := o.EffectiveStatus(t.Context(), claim, run.Running)
	require.Equal(t, run.LiveGone, got.Liveness)
	require.Contains(t, got.Detail, "the Temporal database was lost")
	require.NoError(t, mayReopen(run.State{Status: run.Running, Checkpoint: &run.CheckpointRef{ID: "cp-1"}}, got,
		Reopening{}))
	claim.Address = "other:7233"
	require.Equal(t, run.LiveUnknown, o.EffectiveStatus(t.Context(), claim, run.Running).Liveness)
}

func TestClaimNamesTheNamespaceOfHostedTemporal(t *testing.T) {
	for hosted, want := range map[bool]string{false: "this", true: "the namespace"} {
		id, err := Operator{Client: &fakeTemporal{cluster: fakeCluster{hosted: hosted}},
			Namespace: "default"}.cluster(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, id)
	}
}

// The end of a run is in its journal before its workflow closes. Who read the journal before the end and asked Temporal
// after it must not report an interrupted run.
func TestRunThatEndsWhileItIsReadIsNotInterrupted(t *testing.T) {
	for name, read := range map[string]func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error){
		"one run": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			r, s, err := o.Describe(t.Context(), projector.At(filepath.Join(root, "a")))
			require.Equal(t, run.Done, s.Status)
			return r.EffectiveStatus, err
		},
		"its journal": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			now, s, err := o.Observe(t.Context(), projector.At(filepath.Join(root, "a")), run.Claim{RunID: "a"})
			require.Equal(t, run.Done, now.State.Status)
			return s, err
		},
		"the list": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			rows, lost, err := Here(t.TempDir(), root)
			require.NoError(t, err)
			l, err := o.List(t.Context(), rows, lost, Filter{})
			require.Len(t, l.Runs, 1)
			return l.Runs[0].EffectiveStatus, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "a")
			wrote(t, dir, "a", "small", "running")
			f := &fakeTemporal{attributes: true, described: map[string]enumspb.WorkflowExecutionStatus{"a": completed}}
			f.describing = func() {
				f.describing = nil
				require.NoError(t, os.RemoveAll(dir))
				wrote(t, dir, "a", "small", "done")
			}
			s, err := read(t, Operator{Client: f, Namespace: "default"}, root)
			require.NoError(t, err)
			require.Equal(t, run.Done, s.Status)
		})
	}
}
