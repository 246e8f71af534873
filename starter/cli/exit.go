package cli

import (
	"errors"
	"strings"

	"github.com/passbook-run/passbook/codec"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Exit codes of all verbs.
const (
	exitFine      = 0   // done, or paused by a person
	exitError     = 1   // something went wrong
	exitUsage     = 2   // usage, or input that is refused
	exitAttention = 3   // paused for a cause, issues found
	exitOperator  = 4   // an operator must decide
	exitForced    = 130 // ended by a second Ctrl+C
)

const exitCodesHelp = `Exit codes: 0 fine (done, or paused by you); 1 error; 2 usage or refused input; 3 needs attention (paused for a cause, or
something wrong was found); 4 needs an operator's decision; 130 ended by a second Ctrl+C.`

// usageError is a misuse; nothing was started or changed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// quiet ends with a code; what there was to say has been said.
type quiet int

func (q quiet) Error() string { return "" }

// attention is the code of a check.
func attention(r rundir.Report) error {
	switch {
	case r.NeedsOperator():
		return quiet(exitOperator)
	case !r.OK:
		return quiet(exitAttention)
	}
	return nil
}

// repaired is the code of a repair: that of what is left, and a dry run leaves everything.
func repaired(res rundir.RepairResult, left rundir.Report) error {
	switch {
	case res.NeedsOperatorDecision:
		return quiet(exitOperator)
	case !res.Applied && len(res.Changes) > 0:
		return quiet(exitAttention)
	}
	return attention(left)
}

// exitCode is the only place that decides on exit codes.
func exitCode(err error) int {
	var q quiet
	var usage usageError
	var problems pipeline.Problems
	var refused *operate.RefusedError
	var changed *operate.LiveError
	var name *operate.NameError
	var source *operate.SourceError
	var conflict *run.ConflictError
	var live *rundir.LiveError
	var policy *operate.PolicyError
	var none *rundir.NoCheckpointError
	var snapshot *operate.SnapshotError
	var result *rundir.ResultError
	var damaged *rundir.DamagedError
	var claimed *rundir.ClaimedError
	var target *rundir.TargetError
	var copied *operate.CopyError
	var keys *codec.SettingsError
	var kept *operate.RemoveError
	var partly *operate.RemovalError
	var schedule *operate.ScheduleError
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &q):
		return int(q)
	case errors.As(err, &partly): // whatever stopped it: something was changed
		return exitError
	case errors.As(err, &refused) && refused.Undecided:
		return exitOperator
	case errors.As(err, &usage), errors.As(err, &problems), errors.As(err, &refused), errors.As(err, &changed), errors.As(err, &name), errors.As(err, &conflict),
		errors.As(err, &source), errors.As(err, &live), errors.As(err, &policy), errors.As(err, &none), errors.As(err, &snapshot), errors.As(err, &claimed), errors.As(err, &target),
		errors.As(err, &copied), errors.As(err, &keys), errors.As(err, &kept), errors.As(err, &schedule), errors.Is(err, rundir.ErrNoRun), strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.As(err, &result), errors.As(err, &damaged):
		return exitAttention
	}
	return exitError
}
