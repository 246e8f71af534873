package connect_test

import (
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/certs"
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
	"github.com/passbook-run/passbook/internal/process"
)

// recorded is a state directory whose recorded server has certificates, listens and, with alive, runs.
func recorded(t *testing.T, alive bool) (string, local.Server) {
	t.Helper()
	state := t.TempDir()
	dir := certs.Dir(filepath.Join(state, "server", "certs"))
	require.NoError(t, dir.Ensure(t.Context(), time.Now()))
	client, err := dir.Client(certs.System)
	require.NoError(t, err)
	pair, err := tls.LoadX509KeyPair(dir.Cert(certs.Server), dir.Key(certs.Server))
	require.NoError(t, err)
	s := local.Server{Namespace: "default", Certs: dir, Address: serving(t, &frontend{},
		grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{pair},
			ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: client.RootCAs})))}
	if alive {
		s.Process, err = process.Self()
		require.NoError(t, err)
	}
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(state, "server", "server.json"), text, 0o600))
	return state, s
}

// TestRecordedServerIsEmbedded: an address that names the recorded server is not another server.
func TestRecordedServerIsEmbedded(t *testing.T) {
	for _, row := range []struct {
		name     string
		alive    bool
		env      func(local.Server) map[string]string
		embedded bool
	}{
		{"nothing is set", true, func(local.Server) map[string]string { return nil }, true},
		{"its address", true, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": s.Address}
		}, true},
		{"its address by name", true, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": "localhost" + s.Address[len("127.0.0.1"):]}
		}, true},
		{"another address", true, func(local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": "127.0.0.1:1"}
		}, false},
		{"its address, and it has ended", false, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": s.Address}
		}, false},
		{"its address and certificates, and it has ended", false, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": s.Address,
				"TEMPORAL_TLS_CLIENT_CERT_PATH":    s.Certs.Cert(certs.CLI),
				"TEMPORAL_TLS_CLIENT_KEY_PATH":     s.Certs.Key(certs.CLI),
				"TEMPORAL_TLS_SERVER_CA_CERT_PATH": s.Certs.CA()}
		}, true},
		{"its certificates at an earlier port", true, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": "127.0.0.1:1",
				"TEMPORAL_TLS_CLIENT_CERT_PATH":    s.Certs.Cert(certs.CLI),
				"TEMPORAL_TLS_CLIENT_KEY_PATH":     s.Certs.Key(certs.CLI),
				"TEMPORAL_TLS_SERVER_CA_CERT_PATH": s.Certs.CA()}
		}, true},
		{"its certificates and another host", true, func(s local.Server) map[string]string {
			return map[string]string{"TEMPORAL_ADDRESS": "elsewhere:7233",
				"TEMPORAL_TLS_CLIENT_CERT_PATH": s.Certs.Cert(certs.CLI),
				"TEMPORAL_TLS_CLIENT_KEY_PATH":  s.Certs.Key(certs.CLI)}
		}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			state, s := recorded(t, row.alive)
			settings(t, row.env(s))
			conn, err := connect.Find(config.Settings{StateDir: state})
			require.NoError(t, err)
			require.Equal(t, row.embedded, !conn.Explicit)
			if row.embedded {
				c, err := conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler))
				require.NoError(t, err)
				c.Close()
			}
		})
	}
}

// TestRoleOfAConnection: the server sees the certificate of the connection's role.
func TestRoleOfAConnection(t *testing.T) {
	state, s := recorded(t, true)
	settings(t, nil)
	conn, err := connect.Find(config.Settings{StateDir: state})
	require.NoError(t, err)
	require.NoError(t, os.Remove(s.Certs.Key(certs.Worker)))
	conn.Role = certs.Worker
	_, err = conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler))
	require.Error(t, err, "the worker's key is missing")
	conn.Role = ""
	c, err := conn.Dial(t.Context(), s.Address, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	c.Close()
}
