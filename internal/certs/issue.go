package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
)

const (
	day = 24 * time.Hour

	caLife     = 10 * 365 * day
	caRenewed  = 5 * 365 * day // before its end
	leafLife   = 90 * day
	leafRenews = 60 * day // before its end
	skew       = time.Hour

	maxFile = 1 << 16
)

// pair is a certificate and its key.
type pair struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func readPair(certFile, keyFile string) (p pair, err error) {
	if p.key, err = readKey(keyFile); err != nil {
		return p, err
	}
	block, err := readPEM(certFile, "CERTIFICATE")
	if err != nil {
		return p, err
	}
	if p.cert, err = x509.ParseCertificate(block); err != nil {
		return p, fmt.Errorf("read %s: %w", certFile, err)
	}
	if !p.key.PublicKey.Equal(p.cert.PublicKey) {
		return p, fmt.Errorf("read %s: it is not the certificate of %s", certFile, keyFile)
	}
	return p, nil
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	block, err := readPEM(file, "EC PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	key, err := x509.ParseECPrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return key, nil
}

func readPEM(file, kind string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("read %s: others can read it", file)
	}
	text, err := disk.ReadFile(file, maxFile)
	if kind := (*disk.KindError)(nil); errors.As(err, &kind) {
		return nil, fmt.Errorf("read %s: it is %s", file, kind.Kind)
	}
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("read %s: no %s in it", file, kind)
	}
	return block.Bytes, nil
}

func writePEM(file, kind string, data []byte) error {
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data})
	return disk.Disk{}.WriteFile(file, text, 0o600)
}

// keyIn returns the key of a file, or makes one.
func keyIn(file string) (*ecdsa.PrivateKey, error) {
	if key, err := readKey(file); err == nil {
		return key, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	data, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(file, "EC PRIVATE KEY", data)
}

// authority returns the certificate authority. Its key is never replaced: with another one, running processes would
// refuse each other.
func (d Dir) authority(now time.Time) (pair, error) {
	if p, err := readPair(d.CA(), d.caKey()); err == nil && usableCA(p.cert, now) == nil {
		return p, nil
	}
	if _, err := readKey(d.caKey()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair{}, fmt.Errorf("%w; stop the server, remove the folder %s, and start again", err, d)
	}
	key, err := keyIn(d.caKey())
	if err != nil {
		return pair{}, err
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return pair{}, err
	}
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Passbook " + hex.EncodeToString(id[:8])}, // the same after a renewal
		NotBefore: now.Add(-skew), NotAfter: now.Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	cert, err := sign(d.CA(), template, template, key, key)
	return pair{cert: cert, key: key}, err
}

func usableCA(cert *x509.Certificate, now time.Time) error {
	if !cert.IsCA || now.Before(cert.NotBefore) || now.Add(caRenewed).After(cert.NotAfter) {
		return errors.New("the certificate authority must be renewed")
	}
	return nil
}

// issue makes or renews the certificate of a role, if it needs to.
func (d Dir) issue(ca pair, r Role, now time.Time) error {
	if p, err := readPair(d.Cert(r), d.Key(r)); err == nil && usable(p.cert, ca.cert, r, now) == nil {
		return nil
	}
	key, err := keyIn(d.Key(r))
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: string(r)},
		NotBefore: now.Add(-skew), NotAfter: now.Add(leafLife),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{usage(r)},
	}
	if r == Server {
		template.DNSNames = []string{"localhost"}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	_, err = sign(d.Cert(r), template, ca.cert, key, ca.key)
	return err
}

func usage(r Role) x509.ExtKeyUsage {
	if r == Server {
		return x509.ExtKeyUsageServerAuth
	}
	return x509.ExtKeyUsageClientAuth
}

// usable reports why a role's certificate must be renewed.
func usable(cert, ca *x509.Certificate, r Role, now time.Time) error {
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	o := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage(r)}}
	if r == Server {
		o.DNSName = "127.0.0.1"
	}
	if _, err := cert.Verify(o); err != nil {
		return err
	}
	if cert.Subject.CommonName != string(r) || now.Add(leafRenews).After(cert.NotAfter) {
		return fmt.Errorf("the certificate of %s must be renewed", r)
	}
	return nil
}

func sign(file string, template, parent *x509.Certificate, key, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	data, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by)
	if err != nil {
		return nil, err
	}
	if err := writePEM(file, "CERTIFICATE", data); err != nil {
		return nil, err
	}
	return x509.ParseCertificate(data)
}
