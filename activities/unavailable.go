package activities

import (
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/workflows/contract"
)

// requireProgram refuses a call whose program this host lacks, if another host may make it: nothing is claimed. A
// host-bound run gets the failure as its answer.
func requireProgram(in contract.PassInput, cmd agent.Command) error {
	if strings.HasPrefix(in.Store, "file:") {
		return nil
	}
	if err := cmd.Find(); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), contract.ErrNoProgram, err)
	}
	return nil
}

// storeUnreachable returns the error for a store that this host cannot reach. Directory work is retried; another
// host may make a call. Stores are reopened next time to read new credentials.
func (a *Activities) storeUnreachable(cause error) error {
	a.mu.Lock()
	a.stores = map[string]*store.Store{}
	a.mu.Unlock()
	return temporal.NewApplicationErrorWithOptions(cause.Error(), contract.ErrNoStore, temporal.ApplicationErrorOptions{
		Cause: cause, Details: []any{contract.Heartbeat{Host: a.cfg.Host}},
	})
}
