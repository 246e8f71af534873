package host_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/testenv"
)

// frontend is a Temporal frontend with the namespace default. It denies access to the namespace closed.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	unhealthy bool
}

func (f *frontend) GetSystemInfo(context.Context,
	*workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	if f.unhealthy {
		return nil, status.Error(codes.Unavailable, "database unavailable")
	}
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}},
		nil
}

func (f *frontend) DescribeNamespace(_ context.Context,
	r *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	switch r.Namespace {
	case "default":
		return &workflowservice.DescribeNamespaceResponse{}, nil
	case "closed":
		return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("access denied", "")).Err()
	}
	return nil, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(r.Namespace)).Err()
}

// serving starts a gRPC server. Without a service it is not a Temporal server.
func serving(t *testing.T, service workflowservice.WorkflowServiceServer, opts ...grpc.ServerOption) string {
	t.Helper()
	s := grpc.NewServer(opts...)
	if service != nil {
		workflowservice.RegisterWorkflowServiceServer(s, service)
	}
	l := listening(t)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String()
}

func listening(t *testing.T) net.Listener {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// must returns the value of a call that may not fail: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { t.Helper(); require.NoError(t, err); return v }
}

// certificate returns a certificate for localhost, and the file of its authority.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	made, file, err := testenv.Certificate(t.TempDir())
	require.NoError(t, err)
	return made, file
}

// settings sets the variables of one connection and unsets all others of Temporal.
func settings(t *testing.T, env map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "TEMPORAL_") {
			t.Setenv(name, "")
			require.NoError(t, os.Unsetenv(name))
		}
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	for name, value := range env {
		t.Setenv(name, value)
	}
}

func dial(t *testing.T, env map[string]string) error {
	t.Helper()
	settings(t, env)
	c := must(host.FindConnection(config.Settings{}))(t)
	require.True(t, c.Explicit)
	cl, err := c.Dial(t.Context(), "", slog.New(slog.DiscardHandler))
	if err == nil {
		cl.Close()
	}
	return err
}

func TestDialReportsTheStageThatFails(t *testing.T) {
	cert, authority := certificate(t)
	withTLS := func(auth tls.ClientAuthType) string {
		return serving(t, &frontend{}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert},
			ClientAuth: auth})))
	}
	closed := listening(t)
	silent := listening(t)
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	plain := serving(t, &frontend{})

	tests := []struct {
		name    string
		address string
		env     map[string]string
		stage   host.Stage
		want    []string
		brief   string
	}{
		{"no port", "localhost", nil, host.StageAddress, []string{`"localhost" is not an address`, "HOST:PORT"},
			"no answer from Temporal at localhost"},
		{"no such name", "missing.invalid:7233", nil, host.StageAddress,
			[]string{"the name missing.invalid does not resolve", "TEMPORAL_ADDRESS"},
			"no answer from Temporal at missing.invalid:7233"},
		{
			"closed port", closed.Addr().String(), nil, host.StageListen,
			[]string{"nothing listens at " + closed.Addr().String() + " (connection refused)", "starter doctor"},
			"no answer from Temporal at " + closed.Addr().String(),
		},
		{"server without an answer", silent.Addr().String(), nil, host.StageServer,
			[]string{"does not answer as a healthy Temporal server"}, ""},
		{"web server", web.Listener.Addr().String(), nil, host.StageServer, []string{"is a web server", "7233"}, ""},
		{"another gRPC server", serving(t, nil), nil, host.StageServer, []string{"is not a Temporal server", "7233"},
			""},
		{"unhealthy server", serving(t, &frontend{unhealthy: true}), nil, host.StageServer,
			[]string{"does not answer as a healthy Temporal server", "database unavailable"}, ""},
		{"server with TLS, client without", withTLS(tls.NoClientCert), nil, host.StageTLS,
			[]string{"TLS is not enabled", "TEMPORAL_TLS=true"}, ""},
		{"server without TLS, client with", plain, map[string]string{"TEMPORAL_TLS": "true"}, host.StageTLS,
			[]string{"does not use it", "TEMPORAL_TLS=false"}, ""},
		{
			"unknown authority", withTLS(tls.NoClientCert),
			map[string]string{"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_NAME": "localhost"},
			host.StageTLS, []string{"the TLS handshake with", "certificate", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"}, "",
		},
		{
			"client certificate required", withTLS(tls.RequireAnyClientCert),
			map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": authority, "TEMPORAL_TLS_SERVER_NAME": "localhost"},
			host.StageTLS, []string{"refuses the TLS handshake", "TEMPORAL_TLS_CLIENT_CERT_PATH"}, "",
		},
		{
			"no such namespace", plain, map[string]string{"TEMPORAL_NAMESPACE": "gone"}, host.StageNamespace,
			[]string{"has no namespace gone", "temporal operator namespace create -n gone --address " + plain},
			"Temporal at " + plain + " has no namespace gone",
		},
		{
			"refused", plain, map[string]string{"TEMPORAL_NAMESPACE": "closed"}, host.StagePermission,
			[]string{"refuses the connection to namespace closed", "TEMPORAL_API_KEY"},
			"Temporal at " + plain + " refuses the connection",
		},
	}
	require.NoError(t, closed.Close()) // not earlier: another listener could get its port
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"TEMPORAL_ADDRESS": tt.address}
			for k, v := range tt.env {
				env[k] = v
			}
			err := dial(t, env)
			var failed *host.ConnectError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, tt.stage, failed.Stage, err.Error())
			for _, text := range tt.want {
				require.ErrorContains(t, err, text)
			}
			require.Equal(t, tt.address, failed.Address)
			if tt.stage == host.StageTLS {
				require.Contains(t, failed.Brief(), "TLS")
			}
			if tt.brief != "" {
				require.Equal(t, tt.brief, failed.Brief())
			}
		})
	}
}

// slowly returns the address of a proxy that delays each connection.
func slowly(t *testing.T, delay time.Duration, to string) string {
	t.Helper()
	l := listening(t)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			time.AfterFunc(delay, func() {
				defer client.Close()
				server, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer server.Close()
				go func() { _, _ = io.Copy(server, client) }()
				_, _ = io.Copy(client, server)
			})
		}
	}()
	return l.Addr().String()
}

// TestDialConnects, also to a server that needs seconds for a handshake, as on a busy machine.
func TestDialConnects(t *testing.T) {
	require.NoError(t, dial(t, map[string]string{"TEMPORAL_ADDRESS": serving(t, &frontend{})}), "without TLS")
	cert, authority := certificate(t)
	server := serving(t, &frontend{}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}})))
	require.NoError(t, dial(t, map[string]string{
		"TEMPORAL_ADDRESS": slowly(t, 1500*time.Millisecond, server), "TEMPORAL_TLS_SERVER_CA_CERT_PATH": authority,
		"TEMPORAL_TLS_SERVER_NAME": "localhost",
	}))
}

// TestDialReportsAnEarlyDeadlineAsServerStage, not as a failure of the network.
func TestDialReportsAnEarlyDeadlineAsServerStage(t *testing.T) {
	settings(t, map[string]string{"TEMPORAL_ADDRESS": listening(t).Addr().String()})
	c := must(host.FindConnection(config.Settings{}))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Dial(ctx, "", slog.New(slog.DiscardHandler))
	var failed *host.ConnectError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, host.StageServer, failed.Stage)
}

func TestDialOfTheEmbeddedServerSuggestsItsRestart(t *testing.T) {
	settings(t, nil)
	c := must(host.FindConnection(config.Settings{}))(t)
	require.False(t, c.Explicit)
	closed := listening(t)
	require.NoError(t, closed.Close())
	_, err := c.Dial(t.Context(), closed.Addr().String(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "starter server start")
}
