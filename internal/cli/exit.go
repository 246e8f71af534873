package cli

import (
	"errors"
	"strings"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Exit codes of all commands.
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

const exitCodesHelp = `  0         success: the run is done, or paused by you
  1         error
  2         wrong usage or refused input; nothing was changed
  3         needs attention: the run paused for a cause, or issues were found
  4         an operator must decide a question
  5         not allowed in the current status of the run
  129, 143  ended by SIGHUP or SIGTERM
  130       ended by a second Ctrl+C
`

// asUsage marks an error in the command line. Nothing was started or changed.
func asUsage(err error) error {
	if err == nil {
		return nil
	}
	return &api.InputError{Err: err}
}

// silentExit is an exit code without a message: the verb has already printed the cause.
type silentExit int

func (q silentExit) Error() string { return "" }

// attention returns the exit code of a check.
func attention(r rundir.Report) error {
	switch {
	case r.NeedsOperator():
		return silentExit(exitOperator)
	case !r.OK:
		return silentExit(exitAttention)
	}
	return nil
}

// repaired returns the exit code of a repair, which depends on the issues that are left. A dry run leaves all of them.
func repaired(res rundir.RepairResult, left rundir.Report) error {
	switch {
	case res.NeedsOperatorDecision:
		return silentExit(exitOperator)
	case !res.Applied && len(res.Changes) > 0:
		return silentExit(exitAttention)
	}
	return attention(left)
}

// exitCodes are the exit codes of problems.
var exitCodes = map[api.Code]int{
	api.CodeInvalid: exitUsage, api.CodeNotFound: exitUsage, api.CodeNotAllowed: exitStatus,
	api.CodeUndecided: exitOperator, api.CodeDamaged: exitAttention, api.CodeUnavailable: exitError,
	api.CodeFailed: exitError,
}

// exitCode is the only function that decides on exit codes.
func exitCode(err error) int {
	var q silentExit
	switch {
	case err == nil:
		return exitSuccess
	case errors.As(err, &q):
		return int(q)
	case strings.HasPrefix(err.Error(), "unknown command"): // an error of cobra without a type
		return exitUsage
	}
	return exitCodes[api.CodeOf(err)]
}
