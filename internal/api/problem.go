package api

import (
	"errors"
	"slices"

	"github.com/passbook-run/passbook/internal/codec"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/links"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// Code is the kind of a problem. Clients show it in their own form: the command line as an exit code.
type Code string

// The codes of problems.
const (
	CodeInvalid     Code = "invalid_input" // the request is wrong, or its input was refused
	CodeNotFound    Code = "not_found"     // no run, or several, have that name; the run has no such pass
	CodeNotAllowed  Code = "not_allowed"   // the request is valid, but not in the run's current status
	CodeUndecided   Code = "undecided"     // an operator must decide a question first
	CodeDamaged     Code = "damaged"       // the run directory is damaged
	CodeUnavailable Code = "unavailable"   // no connection to Temporal
	CodeFailed      Code = "failed"        // anything else
)

// Problem is an error as clients report it.
type Problem struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // operation object: cause; what to do next

	// what the status allows instead
	AvailableActions []run.Operation `json:"available_actions,omitempty"`
}

// ProblemOf describes an error, with redacted secrets.
func (h Host) ProblemOf(err error) Problem {
	p := Problem{Code: CodeOf(err), Message: h.Secrets.Text(volume.Message(err))}
	var conflict *run.ConflictError
	if errors.As(err, &conflict) {
		p.AvailableActions = conflict.Available()
	}
	return p
}

// CodeOf is the only function that decides on the code of an error.
func CodeOf(err error) Code {
	var refused *operations.RefusedError
	switch {
	case is[*operations.RemovalError](err): // something was changed, whatever the cause
		return CodeFailed
	case errors.As(err, &refused) && refused.Undecided:
		return CodeUndecided
	case notInStatus(err):
		return CodeNotAllowed
	case is[*operations.NameError](err), is[*operations.MissingError](err), is[*MissingPassError](err),
		errors.Is(err, rundir.ErrNoRun):
		return CodeNotFound
	case isInvalid(err):
		return CodeInvalid
	case is[*rundir.ResultError](err), is[*rundir.DamagedError](err):
		return CodeDamaged
	case is[*host.ConnectError](err):
		return CodeUnavailable
	}
	return CodeFailed
}

// notInStatus reports whether a valid request was refused because of the run's current status.
func notInStatus(err error) bool {
	var refused *operations.RefusedError
	if errors.As(err, &refused) && (refused.Closed || refused.FailedPrecondition) {
		return true
	}
	return is[*run.ConflictError](err) || is[*operations.LiveError](err) || is[*rundir.LiveError](err)
}

// isInvalid reports whether the request was wrong, or its input was refused.
func isInvalid(err error) bool {
	return slices.ContainsFunc([]func(error) bool{
		is[*InputError], is[pipeline.Problems], is[*codec.SettingsError], is[*links.KeyError],
		is[*operations.ChooseError], is[*operations.CopyError], is[*operations.DifferentError],
		is[*operations.PolicyError], is[*operations.RefusedError], is[*operations.RequestError],
		is[*operations.RemoveError], is[*operations.SnapshotError],
		is[*operations.SourceError], is[*operations.StoreError], is[*operations.UnknownRunError],
		is[*disk.OwnerError], is[*rundir.AccessError], is[*rundir.ClaimedError],
		is[*rundir.NoCheckpointError], is[*rundir.TargetError],
	}, func(matches func(error) bool) bool { return matches(err) })
}

// is reports whether an error in the tree of err has type T.
func is[T error](err error) bool {
	var target T
	return errors.As(err, &target)
}
