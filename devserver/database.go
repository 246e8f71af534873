package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/persistence/sql/sqlplugin"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/schema/sqlite"
)

// durable makes an acknowledged commit survive kill -9 and a power cut.
var durable = map[string]string{"journal_mode": "wal", "synchronous": "full", "busy_timeout": "10000"}

// database is the file behind the server, ready for it: locked, with a schema, namespaces and search attributes.
type database struct {
	sql  *config.SQL
	lock *os.File
}

// openDatabase returns with everything on disk that the server needs. Whatever it creates, it creates in one
// transaction: after a crash the file is either empty or complete.
func openDatabase(ctx context.Context, o options) (*database, error) {
	db := &database{sql: sqlConfig(o)}
	if o.db != "" {
		if err := db.prepare(ctx, o); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if err := settleNamespaces(ctx, db.sql, o); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close releases the file to the next server.
func (db *database) Close() error {
	if db.lock == nil {
		return nil
	}
	return db.lock.Close()
}

// inURI escapes what would end the path in the URI that SQLite is opened with.
var inURI = strings.NewReplacer("%", "%25", "?", "%3f", "#", "%23")

func sqlConfig(o options) *config.SQL {
	c := &config.SQL{PluginName: sqliteplugin.PluginName, DatabaseName: inURI.Replace(o.db)}
	if o.db == "" {
		c.DatabaseName = uuid.NewString()
		c.ConnectAttributes = map[string]string{"mode": "memory", "cache": "shared"}
		return c
	}
	c.MaxConns = o.connections
	c.ConnectAttributes = map[string]string{"mode": "rwc"}
	maps.Copy(c.ConnectAttributes, durable)
	maps.Copy(c.ConnectAttributes, o.pragmas)
	return c
}

func (db *database) prepare(ctx context.Context, o options) error {
	file := o.db
	if _, err := os.Stat(filepath.Dir(file)); err != nil {
		return fmt.Errorf("open database %s: %w; create the folder first", file, err)
	}
	if err := db.acquire(file + ".lock"); err != nil {
		return err
	}
	if err := ensureSchema(ctx, file, o.pragmas["page_size"]); err != nil {
		return fmt.Errorf("open database %s: %w", file, err)
	}
	return nil
}

// acquire refuses a second server on the same file; the kernel drops the lock with the process.
func (db *database) acquire(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("lock database: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("lock %s: another server uses this database (%w); stop it, or choose another --db-filename",
			path, errors.Join(err, f.Close()))
	}
	db.lock = f
	return nil
}

// awaitRemoval returns nil when ctx ends, and an error when the lock file is no longer at its path: nothing of what this
// server writes would last, and another server may use the path.
func (db *database) awaitRemoval(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if db.lock == nil { // in memory
			continue
		}
		held, err := db.lock.Stat()
		now, gone := os.Stat(db.lock.Name())
		if errors.Is(gone, fs.ErrNotExist) || err == nil && gone == nil && !os.SameFile(held, now) {
			return fmt.Errorf("%s was removed: the server ends", db.lock.Name())
		}
	}
}

// ensureSchema creates the tables in an empty file, and refuses a file that another minor version made: nothing
// migrates it. SQLite sets the size of pages with the first write, or never.
func ensureSchema(ctx context.Context, file, pageSize string) (err error) {
	conn, err := sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetMaxOpenConns(1) // the settings are those of a connection
	first := []string{"PRAGMA journal_mode = wal", "PRAGMA synchronous = full"}
	if pageSize != "" {
		first = append([]string{"PRAGMA page_size = " + pageSize}, first...)
	}
	for _, statement := range first {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var mark, tables int
	if err := tx.QueryRowContext(ctx,
		`SELECT (SELECT user_version FROM pragma_user_version), (SELECT count(*) FROM sqlite_master)`).Scan(&mark,
		&tables); err != nil {
		return err
	}
	if tables > 0 {
		return checkMark(mark)
	}
	if err := sqlite.SetupSchemaOnDB(schemaTx{tx: tx}); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", currentMark())); err != nil {
		return err
	}
	return tx.Commit()
}

// currentMark is the server's minor version as the file's user_version: 1.32 is 1032.
func currentMark() int {
	var major, minor int
	if _, err := fmt.Sscanf(headers.ServerVersion, "%d.%d.", &major, &minor); err != nil {
		panic("server version is not a version: " + headers.ServerVersion)
	}
	return major*1000 + minor
}

func checkMark(mark int) error {
	want := currentMark()
	switch mark {
	case want:
		return nil
	case 0:
		return fmt.Errorf("it was not made by this server, so its version is unknown; choose another --db-filename")
	}
	return fmt.Errorf("made by server %d.%d, this is %d.%d, and nothing migrates it; choose another --db-filename",
		mark/1000, mark%1000, want/1000, want%1000)
}

// schemaTx lets the server's own schema set-up run inside one transaction. Set-up calls Exec and nothing else.
type schemaTx struct {
	sqlplugin.AdminDB
	tx *sql.Tx
}

func (s schemaTx) Exec(stmt string, args ...any) error {
	_, err := s.tx.Exec(stmt, args...)
	return err
}
