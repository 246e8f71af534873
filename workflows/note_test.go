package workflows_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/workflows"
)

// TestAMessageThatCannotBeJournaledIsNotAccepted: what a message asks for is answered only once its event is written down.
func TestAMessageThatCannotBeJournaledIsNotAccepted(t *testing.T) {
	require.ErrorContains(t, workflows.Note(math.Inf(1)), "journal budget.raised: ")
}
