package host_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/testenv"
)

// The test binary is its own server, worker and starter: these variables choose the program and its fault.
const (
	roleEnv  = "PASSBOOK_LOCAL_TEST_ROLE"
	faultEnv = "PASSBOOK_LOCAL_TEST_FAULT"
	dirEnv   = "PASSBOOK_LOCAL_TEST_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleEnv) {
	case "foreign server":
		fmt.Println("temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)")
		exitWith(nil)
	case "server":
		exitWith(fakeServer())
	case "worker":
		exitWith(fakeWorker())
	case "starter":
		exitWith(fakeStarter())
	case "keeper":
		exitWith(fakeKeeper())
	}
	if err := testenv.EndAtOnce(); err != nil {
		exitWith(err)
	}
	os.Exit(m.Run())
}

func exitWith(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fakeServer answers the requests of Ensure, and records its arguments on stderr.
func fakeServer() error {
	args := os.Args[1:]
	if len(args) == 1 && args[0] == "--version" {
		fmt.Println("passbook fake (Server 1.32.1, UI 2.55.0)")
		return nil
	}
	fs := flag.NewFlagSet("fake", flag.ContinueOnError)
	port := fs.Int("port", 0, "")
	uiPort := fs.Int("ui-port", 0, "")
	dir := fs.String("tls-dir", "", "")
	for _, name := range []string{"ip", "namespace", "db-filename", "log-level", "search-attribute", "sqlite-pragma",
		"dynamic-config-value", "ui-codec-endpoint", "ui-codec-token", "ui-login-dir"} {
		fs.Func(name, "", func(string) error { return nil })
	}
	if err := fs.Parse(args[2:]); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "args", strings.Join(args, " "))
	stop := make(chan os.Signal, 1)
	switch os.Getenv(faultEnv) {
	case "refuses":
		return errors.New("the database is of another version")
	case "port taken for a moment":
		f, err := os.OpenFile(filepath.Join(os.Getenv(dirEnv), "taken once"), os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return errors.Join(syscall.EADDRINUSE, f.Close())
		}
		signal.Notify(stop, syscall.SIGTERM)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "slow":
		awaitFile(filepath.Join(os.Getenv(dirEnv), "proceed"))
		fallthrough
	default:
		signal.Notify(stop, syscall.SIGTERM)
	}
	if err := serveFake(*port, *uiPort, certs.Dir(*dir)); err != nil {
		return err
	}
	<-stop
	fmt.Fprintln(os.Stderr, "stopped gracefully")
	return nil
}

func serveFake(port, uiPort int, dir certs.Dir) error {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return err
	}
	ui, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(uiPort))
	if err != nil {
		return err
	}
	trust, err := mutual(dir)
	if err != nil {
		return err
	}
	s := grpc.NewServer(grpc.Creds(trust))
	h := health.NewServer()
	h.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", healthpb.HealthCheckResponse_SERVING)
	healthpb.RegisterHealthServer(s, h)
	workflowservice.RegisterWorkflowServiceServer(s, &emptyServer{})
	go s.Serve(l)
	go http.Serve(ui, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return nil
}

// mutual are the credentials of a real server.
func mutual(dir certs.Dir) (credentials.TransportCredentials, error) {
	client, err := dir.Client(certs.System)
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs: client.RootCAs, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(dir.Cert(certs.Server), dir.Key(certs.Server))
			return &pair, err
		}}), err
}

type emptyServer struct {
	workflowservice.UnimplementedWorkflowServiceServer
}

func (f *emptyServer) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}},
		nil
}

// fakeStarter starts a server and ends.
func fakeStarter() error {
	if err := os.Setenv(roleEnv, "server"); err != nil {
		return err
	}
	_, err := host.EnsureServer(context.Background(), host.ServerOptions{StateDir: os.Getenv(dirEnv), Binary: os.Args[0]}, nil)
	return err
}

func fakeWorker() error {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if os.Getenv(faultEnv) == "refuses" {
		return errors.New("no such pipeline")
	}
	if err := host.AnnounceReady(os.Getenv(dirEnv), os.Args[1], time.Now()); err != nil {
		return err
	}
	if os.Getenv(faultEnv) == "crashes" { // after its starter has seen that it polls
		_, err := (disk.Disk{}).WaitLock(context.Background(), filepath.Join(os.Getenv(dirEnv), "lock"),
			disk.Owner{})
		return errors.Join(err, errors.New("out of memory"))
	}
	<-stop
	return nil
}

// fakeKeeper keeps a fake server and a fake worker. Its arguments are its key and for how long a process must run to
// count as started.
func fakeKeeper() error {
	dir, stable := os.Getenv(dirEnv), os.Args[2]
	d, err := time.ParseDuration(stable)
	if err != nil {
		return err
	}
	if err := os.Setenv(roleEnv, "server"); err != nil { // for the server that it starts
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return host.Keep(ctx, host.KeepOptions{
		StateDir: dir, Every: 10 * time.Millisecond, Backoff: 10 * time.Millisecond, Stable: d,
		Report: func(line string) { fmt.Fprintln(os.Stderr, line) },
		Server: func(ctx context.Context) error {
			_, err := host.EnsureServer(ctx, host.ServerOptions{StateDir: dir, Binary: "/no/server",
				StartTimeout: 20 * time.Second, Again: true}, nil)
			return err
		},
		Worker: func(ctx context.Context) error {
			o := workerIn(dir, "here")
			o.Again = true
			_, err := host.EnsureWorker(ctx, o, nil)
			return err
		},
	})
}

// workerIn are the options of a fake worker. A file "worker fault" in the state directory names its fault.
func workerIn(dir, key string) host.WorkerOptions {
	fault, _ := os.ReadFile(filepath.Join(dir, "worker fault"))
	return host.WorkerOptions{
		StateDir: dir, Exec: os.Args[0], Args: []string{key}, Key: key, StartTimeout: 20 * time.Second,
		Env: append(os.Environ(), roleEnv+"=worker", dirEnv+"="+dir, faultEnv+"="+string(fault)),
	}
}

// awaitFile returns when the file is there.
func awaitFile(path string) {
	for {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// must returns the value of a call that may not fail: must(f())(t).
func ensure(t *testing.T, o host.ServerOptions) host.Server {
	t.Helper()
	return must(host.EnsureServer(t.Context(), o, nil))(t)
}

func ensureWorker(t *testing.T, o host.WorkerOptions) host.Worker {
	t.Helper()
	return must(host.EnsureWorker(t.Context(), o, nil))(t)
}

func ensureKeeper(t *testing.T, o host.KeeperOptions) host.Keeper {
	t.Helper()
	require.NoError(t, host.EnsureKeeper(t.Context(), o))
	if k := read(t, o.StateDir).Keeper; k != nil {
		return *k
	}
	return host.Keeper{}
}

func read(t *testing.T, dir string) host.Status {
	t.Helper()
	return must(host.Read(dir))(t)
}

func kill(t *testing.T, id process.Identity) {
	t.Helper()
	require.NoError(t, id.Signal(syscall.SIGKILL))
	require.NoError(t, id.AwaitEnd(t.Context()))
}

// eventually waits for what other processes do.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, time.Minute, 5*time.Millisecond, what)
}

// stateDir is a state directory whose processes are stopped when the test ends.
func stateDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		must(host.Stop(context.Background(), dir, time.Millisecond))(t)
	})
	return dir
}

// options for a fake server on ports that no real one uses.
func options(t *testing.T, dir string) host.ServerOptions {
	t.Helper()
	t.Setenv(roleEnv, "server")
	t.Setenv(dirEnv, dir)
	return host.ServerOptions{StateDir: dir, CacheDir: t.TempDir(), Binary: os.Args[0], Port: freePort(t),
		UIPort: freePort(t), StartTimeout: 20 * time.Second}
}

// freePort returns a free port below those that outgoing connections get: no other program takes it while a server is
// restarted.
func freePort(t *testing.T) int {
	t.Helper()
	const first, last = 20_000, 32_000
	for range 100 {
		port := first + rand.IntN(last-first)
		if l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
			require.NoError(t, l.Close())
			return port
		}
	}
	require.Fail(t, "no port is free")
	return 0
}
