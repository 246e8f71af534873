package client

import (
	"errors"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/rundir"
)

// Stage is the step at which a connection failed.
type Stage string

// The stages of a connection, in order.
const (
	StageAddress    = Stage(host.StageAddress)    // the address is malformed or does not resolve
	StageListen     = Stage(host.StageListen)     // the port is closed, or no server runs
	StageTLS        = Stage(host.StageTLS)        // only one side uses TLS, or a certificate is rejected
	StageServer     = Stage(host.StageServer)     // the listener is not a Temporal server, or is unhealthy
	StageNamespace  = Stage(host.StageNamespace)  // the namespace does not exist
	StagePermission = Stage(host.StagePermission) // the server rejects the credentials
)

// ConnectError reports that no connection to Temporal was established. Its message contains cause and fix.
type ConnectError struct {
	Stage     Stage
	Address   string // as HOST:PORT
	Namespace string
	Fix       string // the next step, for people
	cause
}

// NameError reports that a name matches no run, or several.
type NameError struct {
	Name    string
	Matches []string // ids of the runs; empty: no run matches
	cause
}

// RefusedError reports that an operation was refused. Nothing was changed. If the status of the run does not allow the
// operation, [errors.As] also finds a [run.ConflictError] with the allowed ones.
type RefusedError struct {
	Operation string // such as "resume"
	Reason    string // for people
	Undecided bool   // an operator has to decide the open question first
	cause
}

// PolicyError reports that the settings of this host do not allow a run. Nothing was started or changed.
type PolicyError struct {
	Differences []string // each for people
	cause
}

// SourceError reports that a run cannot work on its source, for example because of uncommitted changes. Nothing was
// started or changed.
type SourceError struct {
	Source string
	Reason string // for people
	cause
}

// DirectoryError reports that a directory cannot be used for an operation: another run is live in it, its run has
// another definition, it is a copy, it contains other files, or it contains no run. Nothing was changed.
type DirectoryError struct {
	Dir   string
	RunID string // of the run in it; empty: none, or not known
	cause
}

// cause is the error behind a typed one, which takes over its message and its chain.
type cause struct{ err error }

func (c cause) Error() string { return c.err.Error() }

// Unwrap returns the cause.
func (c cause) Unwrap() error { return c.err }

// public converts the errors of internal packages to those of this one. It keeps their messages.
func public(err error) error {
	var (
		connection *host.ConnectError
		name       *operations.NameError
		refused    *operations.RefusedError
		policy     *operations.PolicyError
		source     *operations.SourceError
	)
	by := cause{err}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &connection):
		c := connection
		return &ConnectError{Stage: Stage(c.Stage), Address: c.Address, Namespace: c.Namespace, Fix: c.Fix, cause: by}
	case errors.As(err, &name):
		return &NameError{Name: name.What, Matches: name.Found, cause: by}
	case errors.As(err, &refused):
		return &RefusedError{Operation: refused.Verb, Reason: refused.Why, Undecided: refused.Undecided, cause: by}
	case errors.As(err, &policy):
		return &PolicyError{Differences: policy.Differences, cause: by}
	case errors.As(err, &source):
		return &SourceError{Source: source.Source, Reason: source.Why, cause: by}
	}
	return directory(err)
}

// directory converts the errors that concern a run directory.
func directory(err error) error {
	var (
		live    *operations.LiveError
		other   *operations.DifferentError
		copied  *operations.CopyError
		target  *rundir.TargetError
		claimed *rundir.ClaimedError
	)
	by := cause{err}
	switch {
	case errors.As(err, &live):
		return &DirectoryError{Dir: live.Dir, RunID: live.RunID, cause: by}
	case errors.As(err, &other):
		return &DirectoryError{Dir: other.Dir, RunID: other.RunID, cause: by}
	case errors.As(err, &copied):
		return &DirectoryError{Dir: copied.Dir, RunID: copied.RunID, cause: by}
	case errors.As(err, &target):
		return &DirectoryError{Dir: target.Path, cause: by}
	case errors.As(err, &claimed):
		return &DirectoryError{Dir: claimed.Dir, RunID: claimed.Holder.RunID, cause: by}
	case errors.Is(err, rundir.ErrNoRun):
		return &DirectoryError{cause: by}
	}
	return err
}
