package cli

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestExitCodes(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"fine", nil, 0},
		{"anything else", errors.New("the disk is full"), 1},
		{"misuse", asUsage(errors.New("say which")), 2},
		{"problems of a definition", pipeline.Problems{{}}, 2},
		{"refused argument of a message", &operations.RefusedError{}, 2},
		{"live run", &operations.LiveError{}, 5},
		{"repair of a live run", &rundir.LiveError{}, 5},
		{"operation that the status does not allow", &run.ConflictError{}, 5},
		{"refusal because of the status", &operations.RefusedError{Conflict: &run.ConflictError{}}, 5},
		{"message to a closed run", &operations.RefusedError{Closed: true}, 5},
		{"refusal until something else has changed", &operations.RefusedError{FailedPrecondition: true}, 5},
		{"undecided question", &operations.RefusedError{Conflict: &run.ConflictError{}, Undecided: true}, 4},
		{"another run's directory", &rundir.ClaimedError{}, 2},
		{"a copy of a run's directory", &operations.CopyError{}, 2},
		{"a result that is not to be trusted", &rundir.ResultError{}, 3},
		{"unknown name", &operations.NameError{}, 2},
		{"a source that a run cannot begin with", &operations.SourceError{}, 2},
		{"a snapshot that is not to be had", &operations.SnapshotError{}, 2},
		{"runs that may not be removed",
			&operations.RemoveError{Runs: []operations.Removable{{Problems: []error{&operations.RefusedError{}}}}}, 2},
		{"removal of a live run", &operations.RemoveError{Runs: []operations.Removable{{Problems: []error{
			&operations.RefusedError{}, &operations.RefusedError{Conflict: &run.ConflictError{}},
		}}}}, 5},
		{"a removal that was refused in the middle", &operations.RemovalError{Err: &operations.RefusedError{}}, 1},
		{"no run in the directory", rundir.ErrNoRun, 2},
		{"unknown verb", errors.New(`unknown command "x" for "starter"`), 2},
		{"needs attention", silentExit(exitAttention), 3},
		{"needs an operator", silentExit(exitOperator), 4},
		{"second Ctrl+C", silentExit(exitForced), 130},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, exitCode(tt.err))
			if tt.err != nil && tt.name != "unknown verb" { // cobra's own error is never wrapped
				require.Equal(t, tt.want, exitCode(fmt.Errorf("while at work: %w", tt.err)))
			}
		})
	}
}

func TestExitCodeFollowsTheStatus(t *testing.T) {
	tests := []struct {
		status run.Status
		reason string
		want   int
	}{
		{run.Done, "", 0},
		{run.Paused, run.UserRequested, 0},
		{run.Paused, run.UserReview, 0},
		{run.Paused, run.BudgetThreshold, 3},
		{run.Paused, run.PassFailed, 3},
		{run.Paused, run.ConsecutiveFailures, 3},
		{run.AwaitingPhaseHandoff, "", 4},
		{run.AwaitingGateDecision, "", 4},
		{run.AwaitingHumanReview, "", 4},
		{run.Failed, "", 1},
		{run.Cancelled, "", 1},
		{run.Halted, "", 1},
		{run.Interrupted, "", 1},
	}
	for _, tt := range tests {
		t.Run(string(tt.status)+" "+tt.reason, func(t *testing.T) {
			require.Equal(t, tt.want, exitCode(outcome(run.State{Status: tt.status, Reason: tt.reason})))
		})
	}
}

// TestExitCodesOfChecks: issues that an operator must decide differ from those that a repair can end.
func TestExitCodesOfChecks(t *testing.T) {
	report := func(codes ...rundir.Code) rundir.Report {
		var r rundir.Report
		for _, c := range codes {
			r.Issues = append(r.Issues, rundir.Issue{Code: c})
		}
		r.OK = len(codes) == 0
		return r
	}
	interrupted := report(rundir.InterruptedWithActiveHandoff, rundir.ActiveHandoffWithoutDecision)
	other := report(rundir.InterruptedWithActiveHandoff)
	changes := make([]rundir.Change, 1)
	for name, row := range map[string]struct {
		err  error
		want int
	}{
		"valid": {attention(report()), 0}, "an issue": {attention(other), 3},
		"interrupted and undecided": {attention(interrupted), 4},
		"repaired":                  {repaired(rundir.RepairResult{Applied: true, Changes: changes}, report()), 0},
		"nothing to repair":         {repaired(rundir.RepairResult{}, report()), 0},
		"a dry run":                 {repaired(rundir.RepairResult{Changes: changes}, report()), 3},
		"an issue is left":          {repaired(rundir.RepairResult{Applied: true, Changes: changes}, other), 3},
		"a decision is left":        {repaired(rundir.RepairResult{NeedsOperatorDecision: true}, report()), 4},
	} {
		require.Equal(t, row.want, exitCode(row.err), name)
	}
}
