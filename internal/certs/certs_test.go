package certs_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/certs"
)

const day = 24 * time.Hour

func made(t *testing.T) certs.Dir {
	t.Helper()
	d := certs.Dir(filepath.Join(t.TempDir(), "certs"))
	require.NoError(t, d.Ensure(t.Context(), time.Now()))
	return d
}

func certificate(t *testing.T, file string) *x509.Certificate {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	block, _ := pem.Decode(text)
	require.NotNil(t, block)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// files returns the contents of the folder, without the lock.
func files(t *testing.T, d certs.Dir) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(string(d))
	require.NoError(t, err)
	for _, e := range entries {
		if e.Name() == "lock" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(string(d), e.Name()))
		require.NoError(t, err)
		out[e.Name()] = string(text)
	}
	return out
}

func TestOnlyTheOwnerReads(t *testing.T) {
	d := made(t)
	info, err := os.Stat(string(d))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o700), info.Mode().Perm())
	names := files(t, d)
	require.Len(t, names, 2+2*len(certs.Roles))
	for name := range names {
		info, err := os.Stat(filepath.Join(string(d), name))
		require.NoError(t, err)
		require.Equal(t, fs.FileMode(0o600), info.Mode().Perm(), name)
	}
}

func TestNamesAndUses(t *testing.T) {
	d := made(t)
	for _, r := range certs.Roles {
		cert := certificate(t, d.Cert(r))
		require.Equal(t, string(r), cert.Subject.CommonName)
		want := x509.ExtKeyUsageClientAuth
		if r == certs.Server {
			want = x509.ExtKeyUsageServerAuth
			for _, host := range []string{"127.0.0.1", "::1", "localhost"} {
				require.NoError(t, cert.VerifyHostname(host))
			}
			require.Error(t, cert.VerifyHostname("example.org"))
		}
		require.Equal(t, []x509.ExtKeyUsage{want}, cert.ExtKeyUsage)
	}
}

func TestEnsureKeepsHealthyProcesses(t *testing.T) {
	d := made(t)
	before := files(t, d)
	require.NoError(t, d.Ensure(t.Context(), time.Now().Add(25*day)))
	require.Equal(t, before, files(t, d))
}

func TestRenewalKeepsKeys(t *testing.T) {
	for _, row := range []struct {
		name  string
		after time.Duration
		same  []string // certificates that stay
	}{
		{"leaves", 31 * day, []string{"ca.crt"}},
		{"leaves long after their end", 400 * day, []string{"ca.crt"}},
		{"the authority", 6 * 365 * day, nil},
		{"everything, long after its end", 11 * 365 * day, nil},
		{"created by a clock that was ahead", -400 * day, nil},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := made(t)
			before := files(t, d)
			now := time.Now().Add(row.after)
			require.NoError(t, d.Ensure(t.Context(), now))
			after := files(t, d)
			for name, text := range before {
				if strings.HasSuffix(name, ".key") || len(row.same) > 0 && name == row.same[0] {
					require.Equal(t, text, after[name], name)
				} else {
					require.NotEqual(t, text, after[name], name)
				}
			}
			for _, r := range certs.Roles {
				require.Greater(t, certificate(t, d.Cert(r)).NotAfter.Sub(now), 60*day)
			}
		})
	}
}

func TestDamageIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(d certs.Dir) error{
		"no certificate":     func(d certs.Dir) error { return os.Remove(d.Cert(certs.Worker)) },
		"no key":             func(d certs.Dir) error { return os.Remove(d.Key(certs.UI)) },
		"no authority":       func(d certs.Dir) error { return os.Remove(d.CA()) },
		"text":               func(d certs.Dir) error { return os.WriteFile(d.Cert(certs.CLI), []byte("x"), 0o600) },
		"readable by others": func(d certs.Dir) error { return os.Chmod(d.Key(certs.CLI), 0o644) },
		"another's certificate": func(d certs.Dir) error {
			return os.Rename(d.Cert(certs.UI), d.Cert(certs.CLI))
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := made(t)
			require.NoError(t, damage(d))
			require.NoError(t, d.Ensure(t.Context(), time.Now()))
			require.Len(t, files(t, d), 2+2*len(certs.Roles))
			for _, r := range certs.Roles {
				require.Equal(t, string(r), certificate(t, d.Cert(r)).Subject.CommonName)
				_, err := tls.LoadX509KeyPair(d.Cert(r), d.Key(r))
				require.NoError(t, err)
				info, err := os.Stat(d.Key(r))
				require.NoError(t, err)
				require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
			}
		})
	}
}

func TestDamagedAuthorityKeyIsNotReplaced(t *testing.T) {
	d := made(t)
	require.NoError(t, os.WriteFile(filepath.Join(string(d), "ca.key"), []byte("x"), 0o600))
	require.ErrorContains(t, d.Ensure(t.Context(), time.Now()), "stop the server, remove the folder "+string(d))
}

func TestAuthorityKeyOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	d := made(t)
	require.NoError(t, os.Chown(filepath.Join(string(d), "ca.key"), 12345, 12345))
	require.ErrorContains(t, d.Ensure(t.Context(), time.Now()), "ca.key: it is a file of the user 12345")
}

func TestConcurrentCallsMakeOneAuthority(t *testing.T) {
	d := certs.Dir(filepath.Join(t.TempDir(), "certs"))
	var all sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		all.Go(func() { errs[i] = d.Ensure(t.Context(), time.Now()) })
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, d.CA()))
	for _, r := range certs.Roles {
		_, err := certificate(t, d.Cert(r)).Verify(x509.VerifyOptions{Roots: pool,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		require.NoError(t, err)
	}
}

// TestRenewalNeedsNoRestart: a server and a client that run present the renewed certificates, and trust each other's.
func TestRenewalNeedsNoRestart(t *testing.T) {
	d := made(t)
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, d.CA()))
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(d.Cert(certs.Server), d.Key(certs.Server))
			return &pair, err
		}})
	require.NoError(t, err)
	defer l.Close()
	client, err := d.Client(certs.Worker)
	require.NoError(t, err)
	first, seen := handshake(t, l, client)
	require.Equal(t, certificate(t, d.Cert(certs.Worker)).SerialNumber, seen.SerialNumber)
	require.NoError(t, d.Ensure(t.Context(), time.Now().Add(6*365*day))) // the authority too
	// this test's clock is the true one: certificates of the future would not be valid yet
	require.NoError(t, d.Ensure(t.Context(), time.Now()))
	second, renewed := handshake(t, l, client)
	require.NotEqual(t, first.SerialNumber, second.SerialNumber)
	require.NotEqual(t, seen.SerialNumber, renewed.SerialNumber)
}

// handshake returns the certificates that a client and a server get to see.
func handshake(t *testing.T, l net.Listener, conf *tls.Config) (server, client *x509.Certificate) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	got := make(chan *x509.Certificate, 1)
	go func() {
		defer close(got)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if conn.(*tls.Conn).HandshakeContext(ctx) == nil {
			got <- conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
		}
	}()
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", l.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	client, ok := <-got
	require.True(t, ok, "the server refused the handshake")
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0], client
}
