package agent

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/adapter"
)

// TestErrorEnvelopeIsAFailure describes an error that the agent reported with the subtype success.
func TestErrorEnvelopeIsAFailure(t *testing.T) {
	const out = `{"type":"result","subtype":"success","is_error":true,"result":"the model is not available"}`
	for code, want := range map[int]string{
		0: "agent reported an error: the model is not available",
		1: "agent reported an error and exited with code 1: the model is not available",
	} {
		_, failure := ReadReply(adapter.ClaudeJSON, []byte(out), Exit{Code: code}, "", Prices{}, 0)
		require.NotNil(t, failure)
		require.Equal(t, want, failure.Message)
	}
}
