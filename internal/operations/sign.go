package operations

import (
	"github.com/passbook-run/passbook/internal/identity"
	"github.com/passbook-run/passbook/workflows"
)

// sign signs a message to a run as this user. Nothing in it may change afterwards.
func (o Operator) sign(m *workflows.Message, runID, verb string) error {
	own, err := identity.Load(o.Settings.StateDir)
	if err != nil {
		return err
	}
	text, err := workflows.SignedText(runID, verb, *m)
	if err != nil {
		return err
	}
	m.Signature = own.Sign(text)
	return nil
}
