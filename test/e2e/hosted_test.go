package e2e_test

import (
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/testenv"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestHostedTemporal runs a pipeline on a server as hosted ones are: TLS, an API key, and no call about clusters.
func TestHostedTemporal(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	h.starter("server", "start")
	h.env = append(h.env, h.hosted(*h.running().Server)...)
	worker := exec.CommandContext(t.Context(), filepath.Join(programs, "worker"))
	worker.Env = h.env
	require.NoError(t, worker.Start())
	t.Cleanup(func() { require.NoError(t, end(worker)) })
	dir := h.dir("run")
	output := h.starter("run", "--config", tiny(), "--output-dir", dir)
	require.True(t, statusIs(dir, run.Done), output)
	require.NotContains(t, output, "cannot be listed")
	claim, err := rundir.At(dir).Claim()
	require.NoError(t, err)
	require.NotEmpty(t, claim.Cluster, "the namespace's id stands in for the cluster's")
	require.Contains(t, h.starter("list", "--status", "done"), "corpus-tiny")
	require.Contains(t, h.starter("version"), "does not disclose its version")
	examined, _ := h.try("doctor")
	require.Contains(t, examined, "all 8 search attributes exist")
}

// frame is a message that the proxy does not decode.
type frame []byte

// frames is the codec of such messages.
type frames struct{}

func (frames) Marshal(v any) ([]byte, error)      { return *v.(*frame), nil }
func (frames) Unmarshal(data []byte, v any) error { *v.(*frame) = slices.Clone(data); return nil }
func (frames) Name() string                       { return "proto" }

// hosted starts a proxy for a server, and returns the variables of a client that uses it.
func (h *environment) hosted(server host.Server) (env []string) {
	h.t.Helper()
	const key = "sesame"
	cert, authority, err := testenv.Certificate(h.t.TempDir())
	require.NoError(h.t, err)
	trust, err := server.TLS(certs.CLI)
	require.NoError(h.t, err)
	behind, err := grpc.NewClient(server.Address, grpc.WithTransportCredentials(credentials.NewTLS(trust)))
	require.NoError(h.t, err)
	forward := func(_ any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream)
		switch md, _ := metadata.FromIncomingContext(stream.Context()); {
		case !slices.Equal(md.Get("authorization"), []string{"Bearer " + key}):
			return status.Error(codes.Unauthenticated, "Request unauthorized.")
		case strings.HasSuffix(method, "/GetClusterInfo"), strings.Contains(method, ".OperatorService/"):
			return status.Error(codes.PermissionDenied, "Request unauthorized.")
		}
		return relay(stream.Context(), behind, method, stream)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&cert)), grpc.UnknownServiceHandler(forward),
		grpc.ForceServerCodec(frames{}))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(h.t, err)
	go s.Serve(l)
	h.t.Cleanup(func() { s.Stop(); _ = behind.Close() })
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(h.t, err)
	return []string{"TEMPORAL_ADDRESS=localhost:" + port, "TEMPORAL_API_KEY=" + key,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + authority}
}

// relay forwards one call and its answer.
func relay(ctx context.Context, to *grpc.ClientConn, method string, stream grpc.ServerStream) error {
	var asked, answered frame
	if err := stream.RecvMsg(&asked); err != nil {
		return err
	}
	if err := to.Invoke(ctx, method, &asked, &answered, grpc.ForceCodec(frames{})); err != nil {
		return err
	}
	return stream.SendMsg(&answered)
}
