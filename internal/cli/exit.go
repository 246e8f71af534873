package cli

import (
	"errors"
	"strings"

	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/folder"
	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/grants"
	"github.com/passbook-run/passbook/internal/identity"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Exit codes of all verbs.
const (
	exitSuccess   = 0                      // done, or paused by the user
	exitError     = 1                      // the command failed
	exitUsage     = 2                      // wrong usage, or refused input
	exitAttention = run.ExitNeedsAttention // the run paused for a cause, or issues were found
	exitOperator  = 4                      // an operator must decide a question
	exitStatus    = 5                      // the command is valid, but not allowed in the run's current status
	exitSignal    = 128                    // plus the number of the signal that ended the command
	exitForced    = 130                    // ended by a second Ctrl+C
)

const exitCodesHelp = `Exit codes: 0 success (done, or paused by you); 1 error; 2 wrong usage or refused input; 3 needs
attention (paused for a cause, or issues were found); 4 an operator must decide a question; 5 not allowed in the run's
current status; 129 and 143 ended by SIGHUP or SIGTERM; 130 ended by a second Ctrl+C.`

// usageError is an error in the command line. Nothing was started or changed.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// quiet is an exit code without a message: the verb has already printed the cause.
type quiet int

func (q quiet) Error() string { return "" }

// attention returns the exit code of a check.
func attention(r fsck.Report) error {
	switch {
	case r.NeedsOperator():
		return quiet(exitOperator)
	case !r.OK:
		return quiet(exitAttention)
	}
	return nil
}

// repaired returns the exit code of a repair, which depends on the issues that are left. A dry run leaves all of them.
func repaired(res fsck.RepairResult, left fsck.Report) error {
	switch {
	case res.NeedsOperatorDecision:
		return quiet(exitOperator)
	case !res.Applied && len(res.Changes) > 0:
		return quiet(exitAttention)
	}
	return attention(left)
}

// exitCode is the only function that decides on exit codes.
func exitCode(err error) int {
	var q quiet
	var refused *operations.RefusedError
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &q):
		return int(q)
	case is[*operations.RemovalError](err): // something was changed, whatever the cause
		return exitError
	case errors.As(err, &refused) && refused.Undecided:
		return exitOperator
	case notInStatus(err):
		return exitStatus
	case isUsage(err):
		return exitUsage
	case is[*rundir.ResultError](err), is[*fsck.DamagedError](err):
		return exitAttention
	}
	return exitError
}

// notInStatus reports whether a valid command was refused because of the run's current status.
func notInStatus(err error) bool {
	var refused *operations.RefusedError
	if errors.As(err, &refused) && (refused.Closed || refused.FailedPrecondition) {
		return true
	}
	return is[*run.ConflictError](err) || is[*operations.LiveError](err) || is[*fsck.LiveError](err)
}

// isUsage reports whether the command was wrong, or its input was refused.
func isUsage(err error) bool {
	for _, matches := range []func(error) bool{
		is[usageError], is[pipeline.Problems], is[*codec.SettingsError], is[*grants.KeyError], is[*identity.KeyError],
		is[*operations.ChooseError], is[*operations.CopyError], is[*operations.DifferentError], is[*operations.NameError],
		is[*operations.MissingError],
		is[*operations.PolicyError], is[*operations.RefusedError],
		is[*operations.RemoveError], is[*operations.ScheduleError], is[*operations.SnapshotError],
		is[*operations.SourceError], is[*operations.StoreError], is[*operations.UnknownRunError],
		is[*folder.OwnerError], is[*rundir.AccessError], is[*rundir.ClaimedError],
		is[*projector.NoCheckpointError], is[*projector.TargetError],
	} {
		if matches(err) {
			return true
		}
	}
	return errors.Is(err, rundir.ErrNoRun) || strings.HasPrefix(err.Error(), "unknown command")
}

// is reports whether an error in the tree of err has type T.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
