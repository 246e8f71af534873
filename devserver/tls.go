package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"go.temporal.io/server/common/rpc/encryption"
)

// Common names of certificates. They are the names of the files in the folder, and decide what a client may do.
const (
	nameServer = "server"
	nameSystem = "system"
	nameWorker = "worker"
	nameCLI    = "cli"
	nameUI     = "ui"
)

// certFolder is a folder with ca.crt, and NAME.crt and NAME.key for the names server, system and ui. They are read at
// each handshake: their owner may renew them while the server runs.
type certFolder string

func (d certFolder) ca() string              { return filepath.Join(string(d), "ca.crt") }
func (d certFolder) cert(name string) string { return filepath.Join(string(d), name+".crt") }
func (d certFolder) key(name string) string  { return filepath.Join(string(d), name+".key") }

func (d certFolder) load(name string) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(d.cert(name), d.key(name))
	if err != nil {
		return nil, fmt.Errorf("read the certificate of %s: %w", name, err)
	}
	return &pair, nil
}

func (d certFolder) pool() (*x509.CertPool, error) {
	text, err := os.ReadFile(d.ca())
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificate authority %s: no certificate in it", d.ca())
	}
	return pool, nil
}

// check finds out at the start what would otherwise fail each handshake.
func (d certFolder) check() error {
	var errs []error
	for _, name := range []string{nameServer, nameSystem, nameUI} {
		_, err := d.load(name)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// provider has every port require a client certificate of the authority. The ports of history, matching and the
// workers have no authorizer: they accept only the server itself.
func (d certFolder) provider() (encryption.TLSConfigProvider, error) {
	pool, err := d.pool()
	if err = errors.Join(err, d.check()); err != nil {
		return nil, err
	}
	frontend := &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, NextProtos: []string{"h2"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return d.load(nameServer) },
	}
	internode := frontend.Clone()
	internode.VerifyConnection = onlySystem
	return &encryption.FixedTLSConfigProvider{
		InternodeServerConfig: internode, InternodeClientConfig: d.client(nameSystem, pool),
		FrontendServerConfig: frontend, FrontendClientConfig: d.client(nameSystem, pool),
	}, nil
}

func onlySystem(c tls.ConnectionState) error {
	if name := c.PeerCertificates[0].Subject.CommonName; name != nameSystem {
		return fmt.Errorf("the certificate of %q is not the one of the server", name)
	}
	return nil
}

// client is the configuration of a client in this process.
func (d certFolder) client(name string, pool *x509.CertPool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "localhost",
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return d.load(name) },
	}
}
