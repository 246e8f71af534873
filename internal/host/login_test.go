package host_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/host"
)

// TestLoginLink: the folder has only a digest of the token, and its time of expiry.
func TestLoginLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ui")
	s := host.Server{UI: "http://127.0.0.1:8233", Login: dir}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "links"), 0o700))
	old := filepath.Join(dir, "links", "old")
	require.NoError(t, os.WriteFile(old, []byte("2020-01-01T00:00:00Z\n"), 0o600))
	first := must(s.LoginLink("/namespaces/a?b"))(t)
	require.NotEqual(t, first, must(s.LoginLink(""))(t))
	require.NoFileExists(t, old)
	u := must(url.Parse(first))(t)
	require.Equal(t, "/login", u.Path)
	require.Equal(t, "/namespaces/a?b", u.Query().Get("next"))
	sum := sha256.Sum256([]byte(u.Query().Get("token")))
	file := filepath.Join(dir, "links", hex.EncodeToString(sum[:]))
	require.Equal(t, fs.FileMode(0o600), must(os.Stat(file))(t).Mode().Perm())
	text := must(os.ReadFile(file))(t)
	until := must(time.Parse(time.RFC3339, string(text[:len(text)-1])))(t)
	require.WithinDuration(t, time.Now().Add(host.LinkLife), until, time.Minute)
}

func TestCodecTokenIsTheOwners(t *testing.T) {
	state := t.TempDir()
	file := must(host.CodecToken(state))(t)
	first := must(os.ReadFile(file))(t)
	require.Equal(t, fs.FileMode(0o600), must(os.Stat(file))(t).Mode().Perm())
	must(host.CodecToken(state))(t)
	require.Equal(t, first, must(os.ReadFile(file))(t))
	require.NoError(t, os.Chmod(file, 0o644))
	_, err := host.CodecToken(state)
	require.EqualError(t, err, "read the token of the codec endpoint: "+file+
		" can be read by other users (mode 0644): remove it to create another token")
}

// TestForeignServerIsRefused: the Temporal CLI requires no certificates.
func TestForeignServerIsRefused(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(roleEnv, "foreign server")
	_, err := host.EnsureServer(t.Context(), o, nil)
	require.ErrorContains(t, err, "to use another Temporal server, start it and set TEMPORAL_ADDRESS")
	s := ensure(t, options(t, stateDir(t)))
	require.Contains(t, readLog(t, s), "--tls-dir "+string(s.Certs))
	require.Contains(t, readLog(t, s), "--ui-login-dir "+s.Login)
	require.Len(t, s.Env(), 10)
}
