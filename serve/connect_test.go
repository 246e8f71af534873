package serve_test

import (
	"context"
	"crypto/tls"
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
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/serve"
)

// frontend answers what a connection asks. It has the namespace default, and refuses the one named closed.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	unwell bool
}

func (f *frontend) GetSystemInfo(context.Context, *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	if f.unwell {
		return nil, status.Error(codes.Unavailable, "the database is away")
	}
	return &workflowservice.GetSystemInfoResponse{Capabilities: &workflowservice.GetSystemInfoResponse_Capabilities{}}, nil
}

func (f *frontend) DescribeNamespace(_ context.Context, r *workflowservice.DescribeNamespaceRequest) (*workflowservice.DescribeNamespaceResponse, error) {
	switch r.Namespace {
	case "default":
		return &workflowservice.DescribeNamespaceResponse{}, nil
	case "closed":
		return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("not you", "")).Err()
	}
	return nil, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(r.Namespace)).Err()
}

// serving starts a gRPC server; service nil: one that has nothing of Temporal's.
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// certificate is a fresh one for localhost, and the file of its authority.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	made, file, err := testenv.Certificate(t.TempDir())
	require.NoError(t, err)
	return made, file
}

// settings are the variables of one connection; all others of Temporal's are unset.
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
	c, err := serve.FindConnection(config.Settings{})
	require.NoError(t, err)
	require.True(t, c.Explicit)
	cl, err := c.Dial(t.Context(), "", slog.New(slog.DiscardHandler))
	if err == nil {
		cl.Close()
	}
	return err
}

func TestAConnectionFailsInStages(t *testing.T) {
	cert, authority := certificate(t)
	withTLS := func(auth tls.ClientAuthType) string {
		return serving(t, &frontend{}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: auth})))
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
		stage   serve.Stage
		says    []string
		brief   string
	}{
		{"no port", "localhost", nil, serve.StageAddress, []string{`"localhost" is no address`, "HOST:PORT"}, "no answer from Temporal at localhost"},
		{"no such name", "nobody.invalid:7233", nil, serve.StageAddress, []string{"the name nobody.invalid does not resolve", "starter config"}, "no answer from Temporal at nobody.invalid:7233"},
		{
			"closed port", closed.Addr().String(), nil, serve.StageListen, []string{"nothing listens at " + closed.Addr().String() + " (connection refused)", "starter doctor"},
			"no answer from Temporal at " + closed.Addr().String(),
		},
		{"silent", silent.Addr().String(), nil, serve.StageServer, []string{"something listens at", "does not answer as a healthy Temporal server"}, ""},
		{"web server", web.Listener.Addr().String(), nil, serve.StageServer, []string{"is a web server", "7233"}, ""},
		{"another gRPC server", serving(t, nil), nil, serve.StageServer, []string{"is no Temporal server", "7233"}, ""},
		{"unwell", serving(t, &frontend{unwell: true}), nil, serve.StageServer, []string{"does not answer as a healthy Temporal server", "the database is away"}, ""},
		{"TLS not asked for", withTLS(tls.NoClientCert), nil, serve.StageTLS, []string{"TLS is not asked for", "TEMPORAL_TLS=true"}, ""},
		{"TLS asked for in vain", plain, map[string]string{"TEMPORAL_TLS": "true"}, serve.StageTLS, []string{"does not speak it", "TEMPORAL_TLS=false"}, ""},
		{
			"unknown authority", withTLS(tls.NoClientCert), map[string]string{"TEMPORAL_TLS": "true", "TEMPORAL_TLS_SERVER_NAME": "localhost"},
			serve.StageTLS, []string{"the TLS handshake with", "certificate", "TEMPORAL_TLS_SERVER_CA_CERT_PATH"}, "",
		},
		{
			"a client's certificate is wanted", withTLS(tls.RequireAnyClientCert),
			map[string]string{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": authority, "TEMPORAL_TLS_SERVER_NAME": "localhost"},
			serve.StageTLS, []string{"refuses the TLS handshake", "TEMPORAL_TLS_CLIENT_CERT_PATH"}, "",
		},
		{
			"no such namespace", plain, map[string]string{"TEMPORAL_NAMESPACE": "gone"}, serve.StageNamespace,
			[]string{"has no namespace gone", "temporal operator namespace create -n gone --address " + plain}, "Temporal at " + plain + " has no namespace gone",
		},
		{
			"refused", plain, map[string]string{"TEMPORAL_NAMESPACE": "closed"}, serve.StagePermission, []string{"refuses the connection to namespace closed", "TEMPORAL_API_KEY"},
			"Temporal at " + plain + " refuses the connection",
		},
	}
	require.NoError(t, closed.Close()) // only now: a server that starts later could get its port
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"TEMPORAL_ADDRESS": tt.address}
			for k, v := range tt.env {
				env[k] = v
			}
			err := dial(t, env)
			var failed *serve.ConnectError
			require.ErrorAs(t, err, &failed)
			require.Equal(t, tt.stage, failed.Stage, err.Error())
			for _, said := range tt.says {
				require.ErrorContains(t, err, said)
			}
			require.Equal(t, tt.address, failed.Address)
			if tt.brief != "" {
				require.Equal(t, tt.brief, failed.Brief())
			}
		})
	}
}

func TestAConnection(t *testing.T) {
	require.NoError(t, dial(t, map[string]string{"TEMPORAL_ADDRESS": serving(t, &frontend{})}), "plain")
	cert, authority := certificate(t)
	address := serving(t, &frontend{}, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{cert}})))
	env := map[string]string{"TEMPORAL_ADDRESS": address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH": authority, "TEMPORAL_TLS_SERVER_NAME": "localhost"}
	require.NoError(t, dial(t, env), "with TLS")
}

// The caller's time counts too: nothing is blamed on the network that is only a matter of time.
func TestAConnectionThatIsGivenNoTime(t *testing.T) {
	settings(t, map[string]string{"TEMPORAL_ADDRESS": listening(t).Addr().String()})
	c, err := serve.FindConnection(config.Settings{})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = c.Dial(ctx, "", slog.New(slog.DiscardHandler))
	var failed *serve.ConnectError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, serve.StageServer, failed.Stage)
}

func TestTheEmbeddedServerHasItsOwnRemedy(t *testing.T) {
	settings(t, nil)
	c, err := serve.FindConnection(config.Settings{})
	require.NoError(t, err)
	require.False(t, c.Explicit)
	closed := listening(t)
	require.NoError(t, closed.Close())
	_, err = c.Dial(t.Context(), closed.Addr().String(), slog.New(slog.DiscardHandler))
	require.ErrorContains(t, err, "starter server start")
}
