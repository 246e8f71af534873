package cli

import (
	"github.com/passbook-run/passbook/internal/host"
)

// insecure explains why other users may use the embedded server; empty: they may not, or it is not used.
func (a *app) insecure() string {
	conn, err := host.FindConnection(a.settings)
	if err != nil || conn.Explicit {
		return ""
	}
	st, err := host.Read(a.settings.StateDir)
	if err != nil || st.Server == nil {
		return ""
	}
	return st.Server.Insecure()
}
