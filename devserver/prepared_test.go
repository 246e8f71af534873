package main

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStatementsArePreparedOnce uses the driver of the reduced server.
func TestStatementsArePreparedOnce(t *testing.T) {
	const name = "sqlite-prepared"
	require.True(t, slices.Contains(sql.Drivers(), name), "test with the GOWORK of devserver/reduce")
	db, err := sql.Open(name, "file:"+filepath.Join(t.TempDir(), "t.db"))
	require.NoError(t, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	kept := func() (n int) {
		t.Helper()
		c, err := db.Conn(t.Context())
		require.NoError(t, err)
		defer c.Close()
		require.NoError(t, c.Raw(func(driver any) error {
			n = reflect.ValueOf(driver).Elem().FieldByName("kept").Len()
			return nil
		}))
		return n
	}
	exec := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		require.NoError(t, err)
	}
	exec("CREATE TABLE a (k INTEGER PRIMARY KEY, v TEXT)")
	before := kept()
	const insert = "INSERT INTO a VALUES (?, ?)"
	for i := range 10 {
		exec(insert, i, fmt.Sprint("v", i))
	}
	require.Equal(t, before+1, kept())

	_, err = db.ExecContext(t.Context(), insert, 3, "again")
	require.ErrorContains(t, err, "UNIQUE constraint failed")
	exec(insert, 10, nil) // the statement that failed, without the values of its last use
	var v sql.NullString
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT v FROM a WHERE k = ?", 10).Scan(&v))
	require.False(t, v.Valid)

	outer, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	keys := func() *sql.Rows {
		t.Helper()
		rows, err := outer.QueryContext(t.Context(), "SELECT k FROM a ORDER BY k")
		require.NoError(t, err)
		return rows
	}
	pairs := 0
	first := keys()
	for first.Next() {
		second := keys()
		for second.Next() {
			pairs++
		}
		require.NoError(t, second.Close())
	}
	require.NoError(t, outer.Commit())
	require.Equal(t, 11*11, pairs, "two uses of one text at the same time")

	for _, want := range [][]string{{"k", "v", "w"}, {"k", "v", "w", "x"}} { // a statement from before the change
		exec("ALTER TABLE a ADD COLUMN " + want[len(want)-1] + " TEXT")
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM a WHERE k = 1")
		require.NoError(t, err)
		require.True(t, rows.Next())
		columns, err := rows.Columns()
		require.NoError(t, err)
		require.Equal(t, want, columns)
		require.NoError(t, rows.Close())
	}

	for i := range 400 {
		exec(fmt.Sprintf("UPDATE a SET v = 'v' WHERE k = %d", i))
	}
	require.Equal(t, 256, kept())
	exec("DELETE FROM a")
}
