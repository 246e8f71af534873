package host

import (
	"strings"

	"github.com/passbook-run/passbook/internal/certs"
)

// Env returns the variables with which Temporal's own programs find the server and are let in: the temporal CLI and the
// SDKs read TEMPORAL_*, tctl reads TEMPORAL_CLI_*. A variable without a value must not be set.
func (s Server) Env() []string {
	cert, key, ca := "", "", ""
	if s.Certs != "" {
		cert, key, ca = s.Certs.Cert(certs.CLI), s.Certs.Key(certs.CLI), s.Certs.CA()
	}
	return []string{
		"TEMPORAL_ADDRESS=" + s.Address,
		"TEMPORAL_NAMESPACE=" + s.Namespace,
		"TEMPORAL_TLS_CLIENT_CERT_PATH=" + cert,
		"TEMPORAL_TLS_CLIENT_KEY_PATH=" + key,
		"TEMPORAL_TLS_SERVER_CA_CERT_PATH=" + ca,
		"TEMPORAL_CLI_ADDRESS=" + s.Address,
		"TEMPORAL_CLI_NAMESPACE=" + s.Namespace,
		"TEMPORAL_CLI_TLS_CERT=" + cert,
		"TEMPORAL_CLI_TLS_KEY=" + key,
		"TEMPORAL_CLI_TLS_CA=" + ca,
	}
}

// SetEnv returns the variables of [Server.Env] that have a value.
func (s Server) SetEnv() (set []string) {
	for _, pair := range s.Env() {
		if !strings.HasSuffix(pair, "=") {
			set = append(set, pair)
		}
	}
	return set
}
