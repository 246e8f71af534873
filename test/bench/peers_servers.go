package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/passbook-run/passbook/internal/local"
)

// temporalServer is an embedded server of Passbook, for the plain SDK.
type temporalServer struct {
	root  string
	state string
}

func (t *temporalServer) start(ctx context.Context) (string, []string, error) {
	s, err := local.Ensure(ctx, local.Options{StateDir: t.state, SourceDir: t.root},
		func(line string) { fmt.Fprintln(os.Stderr, line) })
	return s.Address, s.SetEnv(), err
}

func (t *temporalServer) stop(ctx context.Context) error {
	_, err := local.Stop(context.WithoutCancel(ctx), t.state, readyTimeout)
	return err
}

func (t *temporalServer) processes() []int {
	st, err := local.Read(t.state)
	if err != nil || st.Server == nil {
		return nil
	}
	return []int{st.Server.Process.PID}
}

func (t *temporalServer) stored() (int64, error) { return bytesIn(filepath.Join(t.state, "server")) }

// daemon is a server process that is ready when a check succeeds.
type daemon struct {
	cmd     *exec.Cmd
	printed bytes.Buffer
	ended   chan error // other than how it exited
}

func launch(ctx context.Context, cmd *exec.Cmd, ready func() error) (*daemon, error) {
	d := &daemon{cmd: cmd, ended: make(chan error, 1)}
	cmd.Stdout, cmd.Stderr = &d.printed, &d.printed
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { d.ended <- waited(cmd) }()
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := ready()
		if err == nil {
			return d, nil
		}
		select {
		case err := <-d.ended:
			text := d.printed.Bytes()
			return nil, errors.Join(err, fmt.Errorf("start %s: %s: %s", filepath.Base(cmd.Path), cmd.ProcessState,
				text[max(0, len(text)-1000):]))
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err), d.stop(syscall.SIGKILL))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// stop ends a server with a signal.
func (d *daemon) stop(s syscall.Signal) error {
	if err := d.cmd.Process.Signal(s); err != nil {
		return err
	}
	select {
	case err := <-d.ended:
		return err
	case <-time.After(readyTimeout):
		err := errors.Join(fmt.Errorf("%s did not end", filepath.Base(d.cmd.Path)), d.cmd.Process.Kill())
		return errors.Join(err, <-d.ended)
	}
}

// freePort returns a port of loopback that nothing uses now.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// restateServer is a Restate server with its default settings, on loopback.
type restateServer struct {
	path, dir string
	ports     []string // ingress, admin, node, service
	d         *daemon
}

func (r *restateServer) start(ctx context.Context) (string, []string, error) {
	for len(r.ports) < 4 {
		port, err := freePort()
		if err != nil {
			return "", nil, err
		}
		r.ports = append(r.ports, port)
	}
	cmd := exec.Command(r.path, "--no-logo")
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(), "RESTATE_BASE_DIR="+filepath.Join(r.dir, "restate"), "RESTATE_BIND_IP=127.0.0.1",
		"RESTATE_LISTEN_MODE=tcp", "RESTATE_INGRESS__BIND_PORT="+r.ports[0], "RESTATE_ADMIN__BIND_PORT="+r.ports[1],
		"RESTATE_BIND_PORT="+r.ports[2], "RESTATE_NODE_NAME=bench", "RESTATE_DISABLE_TELEMETRY=true")
	var err error
	r.d, err = launch(ctx, cmd, func() error {
		return errors.Join(healthy(ctx, r.ports[1], "/health"), healthy(ctx, r.ports[0], "/restate/health"))
	})
	at := func(i int) string { return "127.0.0.1:" + r.ports[i] }
	return strings.Join([]string{at(0), at(1), at(3)}, ","), nil, err
}

func healthy(ctx context.Context, port, path string) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+path, nil)
	if err != nil {
		return err
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, a.Body)
	if a.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("%s: %s", path, a.Status))
	}
	return errors.Join(err, a.Body.Close())
}

func (r *restateServer) stop(context.Context) error {
	if r.d == nil {
		return nil
	}
	err := r.d.stop(syscall.SIGTERM)
	r.d = nil
	return err
}

func (r *restateServer) processes() []int { return []int{r.d.cmd.Process.Pid} }

func (r *restateServer) stored() (int64, error) { return bytesIn(filepath.Join(r.dir, "restate")) }
