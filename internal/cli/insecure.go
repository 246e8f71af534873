package cli

import (
	"github.com/passbook-run/passbook/internal/connect"
	"github.com/passbook-run/passbook/internal/local"
)

// insecure explains why other users may use the embedded server; empty: they may not, or it is not used.
func (a *app) insecure() string {
	conn, err := connect.Find(a.settings)
	if err != nil || conn.Explicit {
		return ""
	}
	st, err := local.Read(a.settings.StateDir)
	if err != nil || st.Server == nil {
		return ""
	}
	return st.Server.Insecure()
}
