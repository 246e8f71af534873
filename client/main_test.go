package client_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/workerhost"
)

// TestMain starts an embedded server and a worker of this process. It builds the server if the cache does not contain
// it.
func TestMain(m *testing.M) {
	if code, ok := workerhost.RunChild(os.Args[1:]); ok {
		os.Exit(code)
	}
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
	root, err := os.MkdirTemp("", "passbook-client-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()
	state, err := testenv.Isolate(root)
	if err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := host.EnsureServer(ctx, host.ServerOptions{StateDir: state, SourceDir: ".."}, nil); err != nil {
		return 1, err
	}
	defer func() {
		serr := host.StopServer(context.Background(), state, 20*time.Second)
		err = errors.Join(err, serr)
	}()
	if err := observe(); err != nil {
		return 1, err
	}
	ready, stopped := make(chan struct{}), make(chan error, 1)
	go func() {
		stopped <- workerhost.Run(ctx, workerhost.Options{Ready: func() error { close(ready); return nil }})
	}()
	select {
	case <-ready:
	case err := <-stopped:
		return 1, err
	}
	code = tests()
	cancel()
	return code, <-stopped
}
