package host

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
)

// Stage is the step at which a connection failed.
type Stage string

// The stages of a connection, in order.
const (
	StageAddress    Stage = "address"    // the address is malformed or does not resolve
	StageListen     Stage = "listen"     // the port is closed
	StageTLS        Stage = "tls"        // only one side uses TLS, or a certificate is rejected
	StageServer     Stage = "server"     // the listener is not a Temporal server, or is unhealthy
	StageNamespace  Stage = "namespace"  // the namespace does not exist
	StagePermission Stage = "permission" // the server rejects the credentials
)

// Error reports the stage at which a connection failed, the cause, and the fix.
type ConnectError struct {
	Stage     Stage
	Address   string
	Namespace string
	What      string // one sentence without its full stop
	Fix       string // the next step, with the command or the variable
	Err       error
}

func (e *ConnectError) Error() string { return fmt.Sprintf("%s. %s", e.What, e.Fix) }

func (e *ConnectError) Unwrap() error { return e.Err }

// Brief returns the cause in a few words, without the fix.
func (e *ConnectError) Brief() string {
	switch e.Stage {
	case StageNamespace:
		return fmt.Sprintf("Temporal at %s has no namespace %s", e.Address, e.Namespace)
	case StageTLS:
		return e.What
	case StagePermission:
		return fmt.Sprintf("Temporal at %s refuses the connection", e.Address)
	}
	return "no answer from Temporal at " + e.Address
}

func (c Connection) fail(s Stage, err error, fix, format string, args ...any) *ConnectError {
	return &ConnectError{
		Stage: s, Address: c.Options.HostPort, Namespace: c.Options.Namespace,
		What: fmt.Sprintf(format, args...), Fix: fix, Err: err,
	}
}

// explain finds the stage of an error of the SDK or the server.
func (c Connection) explain(ctx context.Context, err error) error {
	addr, ns := c.Options.HostPort, c.Options.Namespace
	var missing *serviceerror.NamespaceNotFound
	switch code := codeOf(err); {
	case errors.As(err, &missing) || code == codes.NotFound:
		create := c.temporal("operator namespace create -n " + ns)
		return c.fail(StageNamespace, err, "Create it with `"+create+"`, or set TEMPORAL_NAMESPACE to another one",
			"the Temporal server at %s has no namespace %s", addr, ns)
	case code == codes.PermissionDenied || code == codes.Unauthenticated:
		fix := "Check TEMPORAL_API_KEY, TEMPORAL_TLS_CLIENT_CERT_PATH and TEMPORAL_NAMESPACE, or the profile in temporal.toml"
		if !c.Explicit {
			fix = c.remedy()
		}
		return c.fail(StagePermission, err, fix,
			"the Temporal server at %s refuses the connection to namespace %s (%v)", addr, ns, err)
	case code == codes.Unimplemented:
		return c.fail(StageServer, err, "Check the port in TEMPORAL_ADDRESS; a Temporal server usually has 7233",
			"the server at %s is not a Temporal server (%v)", addr, err)
	}
	if failed := c.probe(ctx); failed != nil {
		return failed
	}
	return c.fail(StageServer, err, c.remedy(),
		"the server at %s does not answer as a healthy Temporal server (%v)", addr, err)
}

// temporal returns a command of the temporal CLI that reaches this server from any terminal.
func (c Connection) temporal(command string) string {
	if c.Explicit {
		return "temporal " + command + " --address " + c.Options.HostPort
	}
	return UseServer("starter") + " && temporal " + command
}

// remedy is the fix for a server that is unreachable or unhealthy.
func (c Connection) remedy() string {
	if c.Explicit {
		return "Check the server and TEMPORAL_ADDRESS, or run `starter doctor`; " +
			"without TEMPORAL_ADDRESS the embedded server is used"
	}
	return "Restart the embedded server: `starter server stop`, then `starter server start`; " +
		"`starter doctor` checks more"
}

// UseServer lets the temporal CLI and tctl of a terminal reach the embedded server. program is the starter.
// With a server in TEMPORAL_ADDRESS or in a profile it changes nothing.
func UseServer(program string) string { return `eval "$(` + program + ` server env)"` }

// codeOf returns the gRPC code in an error of the SDK.
func codeOf(err error) codes.Code {
	for ; err != nil; err = errors.Unwrap(err) {
		if code := serviceerror.ToStatus(err).Code(); code != codes.Unknown {
			return code
		}
	}
	return codes.Unknown
}
