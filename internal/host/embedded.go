package host

import (
	"cmp"
	"net"
	"path/filepath"

	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/passbook-run/passbook/internal/certs"
)

// configured returns the connection of the TEMPORAL_* variables and the profile. An address that is the embedded
// server's is not explicit: `starter server env` sets it.
func configured(stateDir, address string) (Connection, error) {
	profile, err := envconfig.LoadClientConfigProfile(envconfig.LoadClientConfigProfileOptions{})
	if err != nil {
		return Connection{}, err
	}
	profile.Address = cmp.Or(address, profile.Address)
	c := Connection{Explicit: profile.Address != "", stateDir: stateDir}
	if c.Explicit {
		last, err := LastServer(stateDir)
		if err != nil {
			return c, err
		}
		c.Explicit = !isEmbedded(profile, last)
	}
	if !c.Explicit {
		profile.TLS = nil // the files of an earlier start may be gone; those of the running server are read on dialing
	}
	c.Options, err = profile.ToClientOptions(envconfig.ToClientOptionsRequest{})
	return c, err
}

// isEmbedded reports whether a profile names the recorded server: by its address while it runs, or by its certificates,
// which no other server accepts, at any port of this machine: a restarted server may have moved to another one.
func isEmbedded(p envconfig.ClientConfigProfile, last Server) bool {
	if last.Address == "" {
		return false
	}
	if last.Certs != "" && p.TLS != nil && filepath.Clean(p.TLS.ClientCertPath) == last.Certs.Cert(certs.CLI) {
		return isLoopback(p.Address)
	}
	return last.Process.Alive() && sameAddress(p.Address, last.Address)
}

func sameAddress(a, b string) bool {
	host, port, err := net.SplitHostPort(a)
	bHost, bPort, bErr := net.SplitHostPort(b)
	if err != nil || bErr != nil || port != bPort {
		return false
	}
	return host == bHost || isLoopback(a) && isLoopback(b)
}

// authenticate adds the certificates of the embedded server.
func (c *Connection) authenticate() error {
	if c.Explicit {
		return nil
	}
	s, err := LastServer(c.stateDir)
	if err != nil {
		return err
	}
	c.Options.ConnectionOptions.TLS, err = s.TLS(cmp.Or(c.Role, certs.CLI))
	c.Options.ConnectionOptions.TLSDisabled = err == nil && c.Options.ConnectionOptions.TLS == nil
	return err
}
