package activities

import (
	"fmt"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// unknownEffectError reports that an earlier delivery of an external action ended without a result: its effect may have
// happened, and only an operator can tell.
type unknownEffectError struct{ delivery int }

func (e *unknownEffectError) Error() string {
	return fmt.Sprintf("delivery %d of this external action ended without a result, and its effect may have happened. "+
		"Check it, then resume the run, which executes the step again", e.delivery)
}

// result pauses the run. No call was made, and the next one has another id.
func (e *unknownEffectError) result() contract.PassResult {
	return contract.PassResult{Reading: run.Reading{Outcome: run.CategoryUnknown, Message: e.Error()}, Permanent: true}
}
