//go:build ignore

package sqlite

import (
	"context"
	stdsql "database/sql"
	"database/sql/driver"
	"errors"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// goSQLDriverName is the driver of modernc.org/sqlite whose connections keep their prepared statements: otherwise
// SQLite parses the text of each statement again each time that the server executes it.
const goSQLDriverName = "sqlite-prepared"

// mostStatements is the number of prepared statements that a connection keeps. The server has about a hundred;
// searches of users have more.
const mostStatements = 256

func init() { stdsql.Register(goSQLDriverName, prepared{&sqlite.Driver{}}) }

type prepared struct{ driver.Driver }

func (p prepared) Open(name string) (driver.Conn, error) {
	c, err := p.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &keeper{connection: c.(connection), kept: map[string]statement{}}, nil
}

type connection interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// keeper is a connection with prepared statements, by text, that nobody uses now. It does not execute statements
// itself, so that package database/sql prepares, executes and closes each one.
type keeper struct {
	connection
	kept map[string]statement
}

func (k *keeper) Prepare(query string) (driver.Stmt, error) {
	return k.PrepareContext(context.Background(), query)
}

func (k *keeper) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if s, ok := k.kept[query]; ok {
		delete(k.kept, query)
		return &lent{s, k, query}, nil
	}
	s, err := k.connection.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &lent{s.(statement), k, query}, nil
}

// Close closes the connection with its statements.
func (k *keeper) Close() error {
	var errs []error
	for query, s := range k.kept {
		errs = append(errs, s.Close())
		delete(k.kept, query)
	}
	return errors.Join(append(errs, k.connection.Close())...)
}

// keep makes room by closing any other statement.
func (k *keeper) keep(query string, s statement) error {
	if k.kept[query] != nil {
		return s.Close()
	}
	var err error
	if len(k.kept) >= mostStatements {
		for other, o := range k.kept {
			delete(k.kept, other)
			err = o.Close()
			break
		}
	}
	k.kept[query] = s
	return err
}

// lent is a statement in use. Close returns it to its connection.
type lent struct {
	statement
	keeper *keeper
	query  string
}

func (l *lent) Close() error { return l.keeper.keep(l.query, l.statement) }

// IsDupEntryError reports whether a row with the same key exists.
func (*db) IsDupEntryError(err error) bool {
	const constraint = sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY |
		sqlite3.SQLITE_CONSTRAINT_UNIQUE
	var refused *sqlite.Error
	return errors.As(err, &refused) && refused.Code()&constraint != 0
}

// isTableExistsError reports whether the schema is there already.
func isTableExistsError(err error) bool {
	var refused *sqlite.Error
	return errors.As(err, &refused) && strings.HasPrefix(refused.Error(), "SQL logic error: table ") &&
		strings.HasSuffix(refused.Error(), " already exists (1)")
}
