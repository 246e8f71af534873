package operations

import (
	"github.com/passbook-run/passbook/internal/identity"
	"github.com/passbook-run/passbook/workflows"
)

// auth is how the journal names the sender of a request that needs no message; empty: as before.
func (o Operator) auth() string {
	return o.Via
}

// sign signs a message to a run as this user, who vouches for the sender. Nothing in it may change
// afterwards.
func (o Operator) sign(m *workflows.Message, runID, verb string) error {
	own, err := identity.Load(o.Settings.StateDir)
	if err != nil {
		return err
	}
	m.Via = o.Via
	text, err := workflows.SignedText(runID, verb, *m)
	if err != nil {
		return err
	}
	m.Signature = own.Sign(text)
	return nil
}
