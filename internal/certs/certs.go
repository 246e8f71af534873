// Package certs makes the keys and certificates of the embedded server and of its clients. They are files of one folder
// in the state directory that only its owner can read:
//
//	ca.key, ca.crt          the certificate authority; a certificate for ten years, renewed with the same key
//	ROLE.key, ROLE.crt      one pair for each [Role]; a certificate for 90 days, renewed after 30
//	lock                    held while files are made or renewed
//
// A key is made once; a renewal replaces only the certificate, in one step. Servers and clients read their pair at each
// handshake, so a renewal needs no restart, and open connections continue. The package does not decide who may do
// what: the server does, by the common name of the certificate, which is the role.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

// Role is what a certificate is for, and its common name.
type Role string

// Roles. The server presents Server; all others are for clients.
const (
	Server Role = "server"
	System Role = "system" // the server's services among each other
	Worker Role = "worker"
	CLI    Role = "cli" // starters, programs of a user, the temporal CLI and tctl
	UI     Role = "ui"  // the Web UI
)

// Roles are all roles.
var Roles = []Role{Server, System, Worker, CLI, UI}

// Dir is a folder with keys and certificates.
type Dir string

// CA is the path of the authority's certificate.
func (d Dir) CA() string { return filepath.Join(string(d), "ca.crt") }

// Cert is the path of a role's certificate.
func (d Dir) Cert(r Role) string { return filepath.Join(string(d), string(r)+".crt") }

// Key is the path of a role's private key.
func (d Dir) Key(r Role) string { return filepath.Join(string(d), string(r)+".key") }

func (d Dir) caKey() string { return filepath.Join(string(d), "ca.key") }

// Ensure makes what is missing, and renews what is damaged, no longer fits or expires soon. Without such files it only
// reads, so it works on a full disk.
func (d Dir) Ensure(ctx context.Context, now time.Time) (err error) {
	if d.check(now) == nil {
		return nil
	}
	if err := (disk.Disk{}).Mkdir(string(d), 0o700); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	if err := os.Chmod(string(d), 0o700); err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	lock, err := (disk.Disk{}).WaitLock(ctx, filepath.Join(string(d), "lock"), disk.Self("making certificates", now))
	if err != nil {
		return fmt.Errorf("make certificates in %s: %w", d, err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	ca, err := d.authority(now)
	if err != nil {
		return fmt.Errorf("make certificates: %w", err)
	}
	for _, r := range Roles {
		if err := d.issue(ca, r, now); err != nil {
			return fmt.Errorf("make certificates: %w", err)
		}
	}
	return nil
}

// check reports what Ensure would change.
func (d Dir) check(now time.Time) error {
	ca, err := readPair(d.CA(), d.caKey())
	if err == nil {
		err = usableCA(ca.cert, now)
	}
	for _, r := range Roles {
		if err != nil {
			return err
		}
		leaf, e := readPair(d.Cert(r), d.Key(r))
		if err = e; err == nil {
			err = usable(leaf.cert, ca.cert, r, now)
		}
	}
	return err
}

// Client returns the TLS configuration of a client with a role. The certificate is read at each handshake.
func (d Dir) Client(r Role) (*tls.Config, error) {
	pool, err := d.pool()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    pool,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(d.Cert(r), d.Key(r))
			return &pair, err
		},
	}, nil
}

// pool contains only the authority.
func (d Dir) pool() (*x509.CertPool, error) {
	text, err := os.ReadFile(d.CA())
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the certificate authority %s: no certificate in it", d.CA())
	}
	return pool, nil
}
