package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// authority signs the certificates of one server and its clients.
type authority struct {
	t    *testing.T
	dir  certFolder
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes a folder as package certs of the main module does.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: certFolder(t.TempDir())}
	a.cert, a.key = a.sign("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign})
	for _, name := range []string{nameServer, nameSystem, nameWorker, nameCLI, nameUI, "stranger"} {
		a.issue(name)
	}
	return a
}

func (a *authority) issue(name string) *x509.Certificate {
	cert, _ := a.sign(name, &x509.Certificate{KeyUsage: x509.KeyUsageDigitalSignature, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	return cert
}

func (a *authority) sign(name string, template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t := a.t
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.Subject = pkix.Name{CommonName: name}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(raw)
	require.NoError(t, err)
	secret, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	for file, block := range map[string]*pem.Block{
		name + ".crt": {Type: "CERTIFICATE", Bytes: raw}, name + ".key": {Type: "EC PRIVATE KEY", Bytes: secret},
	} {
		path := filepath.Join(string(a.dir), file)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// client is how the client of that name connects.
func (a *authority) client(name string) *tls.Config {
	a.t.Helper()
	pool, err := a.dir.pool()
	require.NoError(a.t, err)
	return a.dir.client(name, pool)
}

// shake connects and reads: a server refuses a certificate only after the client's part of the handshake.
func shake(t *testing.T, address string, conf *tls.Config) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conf = conf.Clone()
	conf.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: conf}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}
