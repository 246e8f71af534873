package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/passbook-run/passbook/activities/contract"
)

// VerifyFunc returns who signed a text: "key NAME", or [contract.AuthNone] without a signature. refused: why it is not
// accepted.
type VerifyFunc func(text []byte, s *contract.Signature) (auth, refused string)

// SignedText is what the sender of a message signs: the run, the operation, and everything in the message.
func SignedText(runID, verb string, m Message) ([]byte, error) {
	m.Signature, m.auth = nil, ""
	return json.Marshal([]any{"passbook message 1", runID, verb, m})
}

// sender is who sent a message.
type sender struct {
	Auth    string `json:"auth"`
	Refused string `json:"refused,omitempty"`
}

// authenticated verifies who sent a message, before anything in it is used. It is a side effect: workers may know
// different identities, and a message must not wait while the run continues.
func (c *control) authenticated(ctx workflow.Context, verb string, m Message) (Message, error) {
	text, err := SignedText(c.e.in.Target.RunID, verb, m)
	if err != nil {
		return m, fmt.Errorf("verify the sender of a %s message: %w", verb, err)
	}
	var from sender
	err = workflow.SideEffect(ctx, func(workflow.Context) any {
		auth, refused := c.e.verify(text, m.Signature)
		return sender{auth, refused}
	}).Get(&from)
	if err != nil {
		return m, fmt.Errorf("verify the sender of a %s message: %w", verb, err)
	}
	if m.auth = from.Auth; from.Refused != "" {
		return m, refuse("the message is refused: %s", from.Refused)
	}
	if m.Via != "" && from.Auth != contract.AuthNone {
		m.auth = m.Via
	}
	return m, nil
}
