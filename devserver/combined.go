package main

import (
	"context"
	stdsql "database/sql"
	"errors"
	"slices"

	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/log/tag"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/persistence"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	"go.temporal.io/server/common/resolver"
)

// combining makes the server's own data stores, but its store of executions writes new events and the state of their
// execution in one transaction. Temporal's store commits them separately, events first, which is twice the commits and
// fsyncs: other databases that it supports have no such transaction.
type combining struct{ database *config.SQL }

// NewFactory is called by the server.
func (j combining) NewFactory(_ config.CustomDatastoreConfig, r resolver.ServiceResolver, cluster string,
	logger log.Logger, handler metrics.Handler, s serialization.Serializer) persistence.DataStoreFactory {
	return &combiningFactory{sql.NewFactory(*j.database, r, cluster, logger, handler, s), logger, s}
}

type combiningFactory struct {
	*sql.Factory
	logger     log.Logger
	serializer serialization.Serializer
}

func (f *combiningFactory) NewExecutionStore() (persistence.ExecutionStore, error) {
	db, err := f.GetDB()
	if err != nil {
		return nil, err
	}
	s, err := sql.NewSQLExecutionStore(db, f.logger, f.serializer)
	return &combiningStore{s, db, f}, err
}

type combiningStore struct {
	persistence.ExecutionStore
	db sqlplugin.DB
	f  *combiningFactory
}

func (s *combiningStore) CreateWorkflowExecution(ctx context.Context,
	r *persistence.InternalCreateWorkflowExecutionRequest,
) (response *persistence.InternalCreateWorkflowExecutionResponse, err error) {
	err = s.combine(func(one persistence.ExecutionStore) (err error) {
		response, err = one.CreateWorkflowExecution(ctx, r)
		return err
	}, r.NewWorkflowNewEvents)
	return response, err
}

func (s *combiningStore) UpdateWorkflowExecution(ctx context.Context,
	r *persistence.InternalUpdateWorkflowExecutionRequest) error {
	return s.combine(func(one persistence.ExecutionStore) error { return one.UpdateWorkflowExecution(ctx, r) },
		r.UpdateWorkflowNewEvents, r.NewWorkflowNewEvents)
}

func (s *combiningStore) ConflictResolveWorkflowExecution(ctx context.Context,
	r *persistence.InternalConflictResolveWorkflowExecutionRequest) error {
	return s.combine(func(one persistence.ExecutionStore) error { return one.ConflictResolveWorkflowExecution(ctx, r) },
		r.CurrentWorkflowEventsNewEvents, r.ResetWorkflowEventsNewEvents, r.NewWorkflowEventsNewEvents)
}

// combine calls write with Temporal's own store on a database whose transactions are one. Temporal's store has a
// transaction for each first batch of events of a branch, and one for the state of the executions, the last.
func (s *combiningStore) combine(write func(persistence.ExecutionStore) error,
	events ...[]*persistence.InternalAppendHistoryNodesRequest) error {
	db := &combined{DB: s.db, parts: 1, logger: s.f.logger}
	for _, r := range slices.Concat(events...) {
		if r.IsNewBranch {
			db.parts++
		}
	}
	one, err := sql.NewSQLExecutionStore(db, s.f.logger, s.f.serializer)
	if err != nil {
		return err
	}
	return db.end(write(one))
}

// combined is the database during one write of the store.
type combined struct {
	sqlplugin.DB
	tx     sqlplugin.Tx // nil before the first write, and after the end
	parts  int          // transactions of the store that have not ended
	logger log.Logger
}

func (j *combined) begin(ctx context.Context) (err error) {
	if j.tx == nil {
		j.tx, err = j.DB.BeginTx(ctx)
	}
	return err
}

// InsertIntoHistoryNode is what the store calls outside its transactions.
func (j *combined) InsertIntoHistoryNode(ctx context.Context, row *sqlplugin.HistoryNodeRow) (stdsql.Result, error) {
	if err := j.begin(ctx); err != nil {
		return nil, err
	}
	return j.tx.InsertIntoHistoryNode(ctx, row)
}

func (j *combined) BeginTx(ctx context.Context) (sqlplugin.Tx, error) {
	if err := j.begin(ctx); err != nil {
		return nil, err
	}
	return &combinedPart{j.tx, j}, nil
}

// end ends a transaction that the store has left open: because it failed, or because this version of it has other
// transactions than those that were counted.
func (j *combined) end(err error) error {
	if j.tx == nil {
		return err
	}
	if err == nil {
		err = errors.New("write an execution: this version of Temporal's store has other transactions; correct the " +
			"number of parts in devserver/combined.go")
	}
	if undone := j.rollback(); undone != nil {
		j.logger.Error("roll back a transaction", tag.Error(undone)) // the caller needs the type of err
	}
	return err
}

func (j *combined) rollback() error {
	tx := j.tx
	j.tx = nil
	return tx.Rollback()
}

// combinedPart is one of the store's transactions.
type combinedPart struct {
	sqlplugin.Tx
	j *combined
}

// Commit commits all parts with the last one.
func (p *combinedPart) Commit() error {
	if p.j.parts--; p.j.parts > 0 {
		return nil
	}
	tx := p.j.tx
	p.j.tx = nil
	return tx.Commit()
}

func (p *combinedPart) Rollback() error { return p.j.rollback() }
