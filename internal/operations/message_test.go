package operations

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/workflows"
)

func TestRefusalNamesTheRun(t *testing.T) {
	err := refusalOf("r-1", workflows.VerbAmend, temporal.NewNonRetryableApplicationError(
		`the plan is missing: run "starter amend RUN --config FILE"; RUN is a word`, workflows.FailedPrecondition, nil))
	require.EqualError(t, err, `amend refused: the plan is missing: run "starter amend r-1 --config FILE"; RUN is a word`)
}
