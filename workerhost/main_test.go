package workerhost_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/workerhost"
)

// TestMain starts an embedded server. It builds the server if the cache does not contain it.
func TestMain(m *testing.M) {
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(tests func() int) (code int, err error) {
	if err := testenv.UseMemory(); err != nil {
		return 1, err
	}
	root, err := os.MkdirTemp("", "passbook-workerhost-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	state, err := testenv.Isolate(root)
	if err != nil {
		return 1, err
	}
	if _, err := local.Ensure(context.Background(), local.Options{StateDir: state, SourceDir: ".."}, nil); err != nil {
		return 1, err
	}
	defer func() {
		_, serr := local.StopServer(context.Background(), state, 20*time.Second)
		err = errors.Join(err, serr)
	}()
	return tests(), nil
}

// TestProcessOfACallIsNoWorker: a program that does not call RunChild first is told so, whatever the call needs.
func TestProcessOfACallIsNoWorker(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // whoever does not look at the arguments ends with another error
	for _, verb := range []string{scripted.Verb, supervisor.Verb} {
		os.Args = []string{args[0], verb}
		require.ErrorIs(t, workerhost.Run(ctx, workerhost.Options{}), workerhost.ErrChild)
	}
	_, ok := workerhost.RunChild([]string{"other", scripted.Verb})
	require.False(t, ok)
	_, ok = workerhost.RunChild(nil)
	require.False(t, ok)
}
