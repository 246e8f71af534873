package workflows_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/workflows"
)

func TestInvalidInputFailsWithoutWriting(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(in *workflows.Input)
		want   string
	}{
		{"empty", func(in *workflows.Input) {
			*in = workflows.Input{}
		}, "target.run_id is missing, target.dir is missing, target.store is missing, " +
			"claim.run_id is missing, start.run_id is missing, start.plan is missing, start.stages is missing, " +
			"dir_queue is " +
			"missing, calls is missing; "},
		{"one field", func(in *workflows.Input) { in.Target.Store = "" }, "invalid input: target.store is missing; "},
		{
			"two fields", func(in *workflows.Input) { in.Start.Plan, in.DirQueue = "", "" },
			"invalid input: start.plan is missing, dir_queue is missing; ",
		},
		{
			"relative directory", func(in *workflows.Input) { in.Target.Dir = "runs/1" },
			`invalid input: target.dir "runs/1" is not absolute; `,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newHarness(t, twoPasses)
			row.change(&w.in)
			_, err := w.execute()
			var app *temporal.ApplicationError
			require.ErrorAs(t, err, &app)
			require.Equal(t, []any{contract.ErrBadInput, true}, []any{app.Type(), app.NonRetryable()})
			require.ErrorContains(t, err, row.want+"start runs with the starter binary")
			require.Empty(t, w.trace, "an activity was called")
		})
	}
}
