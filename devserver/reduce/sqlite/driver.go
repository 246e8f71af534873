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

// mostStatements is the number of prepared statements that a connection keeps. Searches of users
// have any number of texts.
const mostStatements = 256

func init() { stdsql.Register(goSQLDriverName, prepared{&sqlite.Driver{}}) }

type prepared struct{ driver.Driver }

func (p prepared) Open(name string) (driver.Conn, error) {
	c, err := p.Driver.Open(name)
	if err != nil {
		return nil, err
	}
	return &cache{connection: c.(connection), kept: map[string]statement{}}, nil
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

// cache is a connection with prepared statements, by text, that are not in use. It does not implement
// [driver.ExecerContext] and [driver.QueryerContext]: package database/sql prepares, executes and closes each
// statement.
type cache struct {
	connection
	kept map[string]statement
}

func (c *cache) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *cache) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	if s, ok := c.kept[query]; ok {
		delete(c.kept, query)
		return &lent{s, c, query}, nil
	}
	s, err := c.connection.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return &lent{s.(statement), c, query}, nil
}

// Close closes the connection with its statements.
func (c *cache) Close() error {
	var errs []error
	for query, s := range c.kept {
		errs = append(errs, s.Close())
		delete(c.kept, query)
	}
	return errors.Join(append(errs, c.connection.Close())...)
}

// keep makes space by closing any other statement.
func (c *cache) keep(query string, s statement) error {
	if c.kept[query] != nil {
		return s.Close()
	}
	var err error
	if len(c.kept) >= mostStatements {
		for other, o := range c.kept {
			delete(c.kept, other)
			err = o.Close()
			break
		}
	}
	c.kept[query] = s
	return err
}

// lent is a statement in use. Close returns it to its connection.
type lent struct {
	statement
	cache *cache
	query string
}

func (l *lent) Close() error { return l.cache.keep(l.query, l.statement) }

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
