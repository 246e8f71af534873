package local_test

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

	"github.com/passbook-run/passbook/internal/local"
)

// TestLoginLink: the folder has only a digest of the token, and its time of expiry.
func TestLoginLink(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ui")
	s := local.Server{UI: "http://127.0.0.1:8233", Login: dir}
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "links"), 0o700))
	old := filepath.Join(dir, "links", "old")
	require.NoError(t, os.WriteFile(old, []byte("2020-01-01T00:00:00Z\n"), 0o600))
	first, err := s.LoginLink("/namespaces/a?b")
	require.NoError(t, err)
	second, err := s.LoginLink("")
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.NoFileExists(t, old)
	u, err := url.Parse(first)
	require.NoError(t, err)
	require.Equal(t, "/login", u.Path)
	require.Equal(t, "/namespaces/a?b", u.Query().Get("next"))
	sum := sha256.Sum256([]byte(u.Query().Get("token")))
	file := filepath.Join(dir, "links", hex.EncodeToString(sum[:]))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	until, err := time.Parse(time.RFC3339, string(text[:len(text)-1]))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now().Add(local.LinkLife), until, time.Minute)
	plain, err := local.Server{UI: "http://127.0.0.1:8233"}.LoginLink("/x")
	require.NoError(t, err)
	require.Equal(t, "http://127.0.0.1:8233/x", plain, "a server without a login")
}

func TestCodecTokenIsTheOwners(t *testing.T) {
	state := t.TempDir()
	file, err := local.CodecToken(state)
	require.NoError(t, err)
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Len(t, first, 65)
	_, err = local.CodecToken(state)
	require.NoError(t, err)
	again, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.NoError(t, os.Chmod(file, 0o644))
	_, err = local.CodecToken(state)
	require.NoError(t, err)
	replaced, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NotEqual(t, first, replaced, "others could read it")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
}

// TestInsecureServerIsNamed: a foreign program gets no certificates, and the record says so.
func TestInsecureServerIsNamed(t *testing.T) {
	o := options(t, stateDir(t))
	t.Setenv(roleEnv, "foreign server")
	s, err := local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Empty(t, s.Certs)
	require.Contains(t, s.Insecure(), "insecure")
	require.NotContains(t, readLog(t, s), "--tls-dir")
	o = options(t, stateDir(t))
	s, err = local.Ensure(t.Context(), o, nil)
	require.NoError(t, err)
	require.Empty(t, s.Insecure())
	require.Contains(t, readLog(t, s), "--tls-dir "+string(s.Certs))
	require.Contains(t, readLog(t, s), "--ui-login-dir "+s.Login)
	require.NotContains(t, s.SetEnv(), "TEMPORAL_TLS_CLIENT_CERT_PATH=")
	require.Len(t, s.SetEnv(), 10)
}
