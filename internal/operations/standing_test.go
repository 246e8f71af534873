package operations

import (
	"testing"

	"github.com/stretchr/testify/require"

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
