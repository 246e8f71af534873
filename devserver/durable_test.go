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

// waiting is a workflow that holds what it was told until it is told to end.
func waiting(ctx workflow.Context) (string, error) {
	var first, second string
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &first)
	workflow.GetSignalChannel(ctx, "say").Receive(ctx, &second)
	return first + " " + second, nil
}

func startWorker(t *testing.T, c client.Client) worker.Worker {
	t.Helper()
	w := worker.New(c, "q", worker.Options{})
	w.RegisterWorkflowWithOptions(waiting, workflow.RegisterOptions{Name: "waiting"})
	require.NoError(t, w.Start())
	return w
}

func TestWorkflowSurvivesRestart(t *testing.T) {
	for _, row := range []struct {
		name string
		sig  syscall.Signal
		code int
	}{{"a restart", syscall.SIGTERM, 0}, {"kill -9", syscall.SIGKILL, -1}} {
		t.Run(row.name, func(t *testing.T) {
			c, args := fresh(t, "--headless")
			cl := c.dial(t)
			_, err := cl.ExecuteWorkflow(testContext(t), client.StartWorkflowOptions{ID: "w", TaskQueue: "q"},
				"waiting")
			require.NoError(t, err)
			require.NoError(t, cl.SignalWorkflow(testContext(t), "w", "", "say", "not"))
			require.Equal(t, row.code, c.stop(row.sig)) // nothing lies between the answer and the end

			c = launch(t, args...)
			cl = c.dial(t)
			w := startWorker(t, cl)
			defer w.Stop()
			require.NoError(t, cl.SignalWorkflow(testContext(t), "w", "", "say", "lost"))
			var output string
			require.NoError(t, cl.GetWorkflow(testContext(t), "w", "").Get(testContext(t), &output))
			require.Equal(t, "not lost", output)
			require.Zero(t, c.stop(syscall.SIGTERM))
		})
	}
}

func TestPragmasAreDurable(t *testing.T) {
	opts := options{db: filepath.Join(t.TempDir(), "t.db"), namespaces: []string{"default"}, retention: retention}
	db, err := openDatabase(t.Context(), opts)
	require.NoError(t, err)
	defer db.Close()
	require.Equal(t, map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "full",
		"busy_timeout": "10000"}, db.sql.ConnectAttributes)
	header, err := os.ReadFile(opts.db)
	require.NoError(t, err)
	require.Equal(t, []byte{2, 2}, header[18:20], "the file's own mark of WAL")
}

func TestDatabaseIsRefused(t *testing.T) {
	for _, row := range []struct {
		name, sql, want string
	}{
		{"of another minor version", "PRAGMA user_version = 1029",
			"made by server 1.29, this is 1.32, and nothing migrates it"},
		{"of unknown origin", "PRAGMA user_version = 0", "not made by this server"},
	} {
		t.Run(row.name, func(t *testing.T) {
			opts := options{db: filepath.Join(t.TempDir(), "t.db"), namespaces: []string{"default"},
				retention: retention}
			db, err := openDatabase(t.Context(), opts)
			require.NoError(t, err)
			db.Close()
			raw, err := sql.Open("sqlite", opts.db)
			require.NoError(t, err)
			_, err = raw.Exec(row.sql)
			require.NoError(t, err)
			require.NoError(t, raw.Close())
			_, err = openDatabase(t.Context(), opts)
			require.ErrorContains(t, err, row.want)
		})
	}
	t.Run("in use", func(t *testing.T) {
		opts := options{db: filepath.Join(t.TempDir(), "t.db"), namespaces: []string{"default"}, retention: retention}
		db, err := openDatabase(t.Context(), opts)
		require.NoError(t, err)
		defer db.Close()
		_, err = openDatabase(t.Context(), opts)
		require.ErrorContains(t, err, "another server uses this database")
	})
	t.Run("in no folder", func(t *testing.T) {
		opts := options{db: filepath.Join(t.TempDir(), "no", "t.db")}
		_, err := openDatabase(t.Context(), opts)
		require.ErrorContains(t, err, "create the folder first")
	})
}

// A file that exists keeps the size of its pages.
func TestPageSizeOfANewDatabase(t *testing.T) {
	opts := options{db: filepath.Join(t.TempDir(), "t.db"), namespaces: []string{"default"}, retention: retention}
	for _, pageSize := range []string{"8192", "16384"} {
		opts.pragmas = map[string]string{"page_size": pageSize}
		db, err := openDatabase(t.Context(), opts)
		require.NoError(t, err)
		require.NoError(t, db.Close())
		raw, err := sql.Open("sqlite", opts.db)
		require.NoError(t, err)
		var size int
		require.NoError(t, raw.QueryRow("PRAGMA page_size").Scan(&size))
		require.NoError(t, raw.Close())
		require.Equal(t, 8192, size)
	}
}
