package host_test

import (
	"crypto/tls"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/process"
)

// recorded is a state directory whose recorded server has certificates, listens and, with alive, runs.
func recorded(t *testing.T, alive bool) (string, host.Server) {
	t.Helper()
	state := t.TempDir()
	dir := certs.Dir(filepath.Join(state, "server", "certs"))
	require.NoError(t, dir.Ensure(t.Context(), time.Now()))
	client := must(dir.Client(certs.System))(t)
	pair := must(tls.LoadX509KeyPair(dir.Cert(certs.Server), dir.Key(certs.Server)))(t)
	s := host.Server{Namespace: "default", Certs: dir, Address: serving(t, &frontend{},
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.RootCAs})))}
	if alive {
		s.Process = must(process.Self())(t)
	}
	writeRecords(t, state, host.Status{Server: &s})
	return state, s
}

// TestRecordedServerIsEmbedded: an address that names the recorded server is not another server.
func TestRecordedServerIsEmbedded(t *testing.T) {
	env := func(address string, with ...string) func(host.Server) map[string]string {
		return func(s host.Server) map[string]string {
			paths := map[string]string{"TEMPORAL_TLS_CLIENT_CERT_PATH": s.Certs.Cert(certs.CLI),
				"TEMPORAL_TLS_CLIENT_KEY_PATH": s.Certs.Key(certs.CLI), "TEMPORAL_TLS_SERVER_CA_CERT_PATH": s.Certs.CA()}
			_, port, _ := strings.Cut(s.Address, ":")
			out := map[string]string{"TEMPORAL_ADDRESS": strings.Replace(address, "PORT", port, 1)}
			for _, name := range with {
				out["TEMPORAL_TLS_"+name] = paths["TEMPORAL_TLS_"+name]
			}
			return out
		}
	}
	const cert, key, authority = "CLIENT_CERT_PATH", "CLIENT_KEY_PATH", "SERVER_CA_CERT_PATH"
	for _, row := range []struct {
		name     string
		alive    bool
		env      func(host.Server) map[string]string
		embedded bool
	}{
		{"nothing is set", true, func(host.Server) map[string]string { return nil }, true},
		{"its address", true, env("127.0.0.1:PORT"), true},
		{"its address by name", true, env("localhost:PORT"), true},
		{"another address", true, env("127.0.0.1:1"), false},
		{"its address, and it has ended", false, env("127.0.0.1:PORT"), false},
		{"its address and certificates, and it has ended", false, env("127.0.0.1:PORT", cert, key, authority), true},
		{"its certificates at an earlier port", true, env("127.0.0.1:1", cert, key, authority), true},
		{"its certificates and another host", true, env("elsewhere:7233", cert, key), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			state, s := recorded(t, row.alive)
			settings(t, row.env(s))
			conn := must(host.FindConnection(config.Settings{StateDir: state}))(t)
			require.Equal(t, row.embedded, !conn.Explicit)
			if row.embedded {
				must(conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler)))(t).Close()
			}
		})
	}
}

// TestRoleOfAConnection: the server sees the certificate of the connection's role.
func TestRoleOfAConnection(t *testing.T) {
	state, s := recorded(t, true)
	settings(t, nil)
	conn := must(host.FindConnection(config.Settings{StateDir: state}))(t)
	require.NoError(t, os.Remove(s.Certs.Key(certs.Worker)))
	conn.Role = certs.Worker
	_, err := conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler))
	require.Error(t, err, "the worker's key is missing")
	conn.Role = ""
	must(conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler)))(t).Close()
}
