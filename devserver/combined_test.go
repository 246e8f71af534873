package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	persistencespb "go.temporal.io/server/api/persistence/v1"
	"go.temporal.io/server/chasm"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
)

// stored is a database with one shard, and what the tests read from it.
type stored struct {
	*combiningStore
	t *testing.T
}

func newStored(t *testing.T) stored {
	t.Helper()
	db, err := openDatabase(t.Context(), options{db: filepath.Join(t.TempDir(), "t.db"), retention: retention})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	db.sql.TaskScanPartitions = 1
	f := combining{db.sql}.NewFactory(config.CustomDatastoreConfig{}, resolver.NewNoopResolver(), clusterName,
		log.NewNoopLogger(), metrics.NoopMetricsHandler, serialization.NewSerializer())
	t.Cleanup(f.Close)
	shards, err := f.NewShardStore()
	require.NoError(t, err)
	_, err = shards.GetOrCreateShard(t.Context(), &persistence.InternalGetOrCreateShardRequest{ShardID: 1,
		CreateShardInfo: func() (int64, *commonpb.DataBlob, error) { return 1, blob("shard"), nil }})
	require.NoError(t, err)
	store, err := f.NewExecutionStore()
	require.NoError(t, err)
	return stored{store.(*combiningStore), t}
}

func blob(text string) *commonpb.DataBlob {
	return &commonpb.DataBlob{EncodingType: enumspb.ENCODING_TYPE_PROTO3, Data: []byte(text)}
}

// nodes returns the number of batches of events in the database.
func (s stored) nodes(branch *persistencespb.HistoryBranch) int {
	s.t.Helper()
	rows, err := s.db.RangeSelectFromHistoryNode(s.t.Context(), sqlplugin.HistoryNodeSelectFilter{ShardID: 1,
		TreeID: parsed(s.t, branch.TreeId), BranchID: parsed(s.t, branch.BranchId), MinNodeID: 1, MinTxnID: 1 << 60,
		MaxNodeID: 1 << 60, PageSize: 100, MetadataOnly: true})
	require.NoError(s.t, err)
	return len(rows)
}

func parsed(t *testing.T, id string) []byte {
	u, err := uuid.Parse(id)
	require.NoError(t, err)
	return u[:]
}

func events(branch *persistencespb.HistoryBranch, node int64) []*persistence.InternalAppendHistoryNodesRequest {
	return []*persistence.InternalAppendHistoryNodesRequest{{ShardID: 1, BranchInfo: branch, IsNewBranch: node == 1,
		TreeInfo: blob("tree"), Node: persistence.InternalHistoryNode{NodeID: node, TransactionID: node,
			PrevTransactionID: node - 1, Events: blob("events")}}}
}

func execution(run string) persistence.InternalWorkflowSnapshot {
	return persistence.InternalWorkflowSnapshot{NamespaceID: namespaceOfTest, WorkflowID: "w", RunID: run,
		ExecutionInfoBlob: blob("info"), ExecutionStateBlob: blob("state"), NextEventID: 2, DBRecordVersion: 1,
		ExecutionState: &persistencespb.WorkflowExecutionState{RunId: run, CreateRequestId: "r",
			State: 1, Status: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}
}

const namespaceOfTest = "32049b68-7872-4094-8e63-d0dd59896a83"

func create(run string, rangeID int64, e []*persistence.InternalAppendHistoryNodesRequest,
) *persistence.InternalCreateWorkflowExecutionRequest {
	return &persistence.InternalCreateWorkflowExecutionRequest{ShardID: 1, RangeID: rangeID,
		ArchetypeID: chasm.WorkflowArchetypeID, Mode: persistence.CreateWorkflowModeBrandNew,
		NewWorkflowSnapshot: execution(run), NewWorkflowNewEvents: e}
}

func update(run string, version int64, e []*persistence.InternalAppendHistoryNodesRequest,
) *persistence.InternalUpdateWorkflowExecutionRequest {
	x := execution(run)
	return &persistence.InternalUpdateWorkflowExecutionRequest{ShardID: 1, RangeID: 1,
		ArchetypeID: chasm.WorkflowArchetypeID, Mode: persistence.UpdateWorkflowModeUpdateCurrent, UpdateWorkflowNewEvents: e,
		UpdateWorkflowMutation: persistence.InternalWorkflowMutation{NamespaceID: x.NamespaceID, WorkflowID: x.WorkflowID,
			RunID:             run,
			ExecutionInfo:     &persistencespb.WorkflowExecutionInfo{NamespaceId: x.NamespaceID, WorkflowId: "w"},
			ExecutionInfoBlob: x.ExecutionInfoBlob, ExecutionState: x.ExecutionState,
			ExecutionStateBlob: x.ExecutionStateBlob, NextEventID: 3, DBRecordVersion: version}}
}

// TestEventsAndStateAreOneTransaction: a failure after the events were inserted leaves no events.
func TestEventsAndStateAreOneTransaction(t *testing.T) {
	s, run := newStored(t), uuid.NewString()
	branch := &persistencespb.HistoryBranch{TreeId: run, BranchId: uuid.NewString()}

	_, err := s.CreateWorkflowExecution(t.Context(), create(run, 7, events(branch, 1)))
	require.IsType(t, &persistence.ShardOwnershipLostError{}, err)
	require.Zero(t, s.nodes(branch))
	_, err = s.CreateWorkflowExecution(t.Context(), create(run, 1, events(branch, 1)))
	require.NoError(t, err)
	require.Equal(t, 1, s.nodes(branch))

	err = s.UpdateWorkflowExecution(t.Context(), update(run, 9, events(branch, 2)))
	require.IsType(t, &persistence.WorkflowConditionFailedError{}, err)
	require.Equal(t, 1, s.nodes(branch))
	require.NoError(t, s.UpdateWorkflowExecution(t.Context(), update(run, 2, events(branch, 2))))
	require.Equal(t, 2, s.nodes(branch))
	require.NoError(t, s.UpdateWorkflowExecution(t.Context(), update(run, 3, nil)))
}

// TestIncompleteTransactionsAreErrors: a version of the store with another number of transactions writes nothing.
func TestIncompleteTransactionsAreErrors(t *testing.T) {
	s, run := newStored(t), uuid.NewString()
	branch := &persistencespb.HistoryBranch{TreeId: run, BranchId: uuid.NewString()}
	first := events(branch, 1)
	err := s.combine(func(one persistence.ExecutionStore) error {
		return one.AppendHistoryNodes(t.Context(), first[0])
	}, first)
	require.ErrorContains(t, err, "this version of Temporal's store has other transactions")
	require.Zero(t, s.nodes(branch))
	require.NoError(t, s.combine(func(persistence.ExecutionStore) error { return nil }), "nothing to write")

	// A cancelled write ends its transaction: the only connection is free again.
	refused := errors.New("refused")
	ctx, cancel := context.WithCancel(t.Context())
	err = s.combine(func(one persistence.ExecutionStore) error {
		require.NoError(t, one.AppendHistoryNodes(ctx, events(branch, 2)[0]))
		cancel()
		return refused
	})
	require.Same(t, refused, err, "the server needs the type of the error")
	require.Zero(t, s.nodes(branch))
}
