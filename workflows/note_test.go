package workflows_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/workflows"
)

func TestMessageIsAcceptedOnlyWhenJournaled(t *testing.T) {
	require.ErrorContains(t, workflows.Note(math.Inf(1)), "journal budget.raised: ")
}
