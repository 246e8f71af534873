package activities

import (
	"strings"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// mustHave refuses a call whose program this host does not have, if another host may make it: nothing is claimed, and the call waits for that host. A
// run that is bound to this host gets the failure as its answer.
func mustHave(in work.PassInput, cmd agent.Command) error {
	if strings.HasPrefix(in.Store, "file:") {
		return nil
	}
	if err := cmd.Find(); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), work.ErrNoProgram, err)
	}
	return nil
}

// away says that this host does not reach the store. Work on the directory is tried again; a call may be made by another host. Stores are opened anew the
// next time, because their credentials are read then.
func (a *Activities) away(cause error) error {
	a.mu.Lock()
	a.stores = map[string]*store.Store{}
	a.mu.Unlock()
	return temporal.NewApplicationErrorWithOptions(cause.Error(), work.ErrNoStore, temporal.ApplicationErrorOptions{
		Cause: cause, Details: []any{work.Heartbeat{Host: a.cfg.Host}},
	})
}
