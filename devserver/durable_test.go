package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// waiting is a workflow that returns the texts of two signals.
func waiting(ctx workflow.Context) (string, error) {
	var first, second string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &first)
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &second)
	return first + " " + second, nil
}

// TestWorkflowSurvivesRestart stops the server after the first signal, and kills it after the second one.
func TestWorkflowSurvivesRestart(t *testing.T) {
	c, args := fresh(t, "--headless")
	cl := c.dial(t)
	_, err := cl.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"}, "waiting")
	require.NoError(t, err)
	require.NoError(t, cl.SignalWorkflow(testContext(t), "w", "", "say", "not"))
	require.Zero(t, c.stop(syscall.SIGTERM))
	c = launch(t, args...)
	require.NoError(t, c.dial(t).SignalWorkflow(testContext(t), "w", "", "say", "lost"))
	require.Equal(t, -1, c.stop(syscall.SIGKILL)) // nothing is between the answer and the end

	c = launch(t, args...)
	cl = c.dial(t)
	w := worker.New(cl, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(waiting, workflow.RegisterOptions{Name: "waiting"})
	require.NoError(t, w.Start())
	defer w.Stop()
	var output string
	require.NoError(t, cl.GetWorkflow(testContext(t), "w", "").Get(testContext(t), &output))
	require.Equal(t, "not lost", output)
	require.Zero(t, c.stop(syscall.SIGTERM))
}

// ownDatabase returns the options of a database in its own folder.
func ownDatabase(t *testing.T) options {
	return options{db: filepath.Join(t.TempDir(), "t.db"), namespaces: []string{"default"}, retention: retention}
}

// query opens a database without the server, and runs a statement that returns a number.
func query(t *testing.T, file, statement string) (n int) {
	t.Helper()
	raw, err := sql.Open("sqlite", file)
	require.NoError(t, err)
	defer raw.Close()
	if err := raw.QueryRow(statement).Scan(&n); err != nil {
		require.ErrorIs(t, err, sql.ErrNoRows)
	}
	return n
}

func TestDatabaseIsDurable(t *testing.T) {
	opts := ownDatabase(t)
	for _, pageSize := range []string{"8192", "16384"} { // a file that exists keeps the size of its pages
		opts.pragmas = map[string]string{"page_size": pageSize}
		db, err := openDatabase(t.Context(), opts)
		require.NoError(t, err)
		for name, want := range map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "full",
			"busy_timeout": "10000"} {
			require.Equal(t, want, db.sql.ConnectAttributes[name], name)
		}
		require.NoError(t, db.Close())
		header, err := os.ReadFile(opts.db)
		require.NoError(t, err)
		require.Equal(t, []byte{2, 2}, header[18:20], "the mark of WAL in the file")
		require.Equal(t, 8192, query(t, opts.db, "PRAGMA page_size"))
	}
}

func TestDatabaseIsRefused(t *testing.T) {
	opts := ownDatabase(t)
	db, err := openDatabase(t.Context(), opts)
	require.NoError(t, err)
	_, err = openDatabase(t.Context(), opts)
	require.ErrorContains(t, err, "another server uses this database")
	require.NoError(t, db.Close())
	for pragma, want := range map[string]string{
		"PRAGMA user_version = 1029": "made by server 1.29, this is 1.32, and nothing migrates it",
		"PRAGMA user_version = 0":    "not made by this server",
	} {
		query(t, opts.db, pragma)
		_, err = openDatabase(t.Context(), opts)
		require.ErrorContains(t, err, want)
	}
	_, err = openDatabase(t.Context(), options{db: filepath.Join(t.TempDir(), "no", "t.db")})
	require.ErrorContains(t, err, "create the folder first")
}
