package operations

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
)

// TestUnansweredMessageMayTakeEffect: a worker that is frozen answers later, so the message is not reported as lost.
func TestUnansweredMessageMayTakeEffect(t *testing.T) {
	err := refusalOf("r1", "decide", client.NewWorkflowUpdateServiceTimeoutOrCanceledError(context.DeadlineExceeded))
	require.EqualError(t, err, "decide run r1: its worker did not answer in time, and may still act on the message; see "+
		"starter status r1 before you send it again")
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
