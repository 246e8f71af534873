package serve

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
)

// Stage says at which step a connection failed.
type Stage string

// The steps of a connection, in order.
const (
	StageAddress    Stage = "address"    // the name does not resolve, or is none
	StageListen     Stage = "listen"     // nobody listens
	StageTLS        Stage = "tls"        // one side speaks TLS and the other does not, or a certificate is refused
	StageServer     Stage = "server"     // something listens, and is no Temporal server, or not a healthy one
	StageNamespace  Stage = "namespace"  // the server does not have the namespace
	StagePermission Stage = "permission" // the server refuses
)

// ConnectError says how far a connection came, why no further, and what to do about it.
type ConnectError struct {
	Stage     Stage
	Address   string
	Namespace string
	What      string // one sentence without its full stop
	Fix       string // what to do next, with the command or the variable
	Err       error
}

func (e *ConnectError) Error() string { return fmt.Sprintf("%s. %s", e.What, e.Fix) }

func (e *ConnectError) Unwrap() error { return e.Err }

// Brief is the short form, for a line that says more than this.
func (e *ConnectError) Brief() string {
	switch e.Stage {
	case StageNamespace:
		return fmt.Sprintf("Temporal at %s has no namespace %s", e.Address, e.Namespace)
	case StagePermission:
		return fmt.Sprintf("Temporal at %s refuses the connection", e.Address)
	}
	return "no answer from Temporal at " + e.Address
}

func (c Connection) fail(s Stage, err error, fix, format string, args ...any) *ConnectError {
	return &ConnectError{
		Stage: s, Address: c.Options.HostPort, Namespace: c.Options.Namespace, What: fmt.Sprintf(format, args...), Fix: fix, Err: err,
	}
}

// explain makes a stage of what the SDK or the server said.
func (c Connection) explain(ctx context.Context, err error) error {
	addr, ns := c.Options.HostPort, c.Options.Namespace
	var missing *serviceerror.NamespaceNotFound
	switch code := codeOf(err); {
	case errors.As(err, &missing) || code == codes.NotFound:
		return c.fail(StageNamespace, err, fmt.Sprintf("Make it with `temporal operator namespace create -n %s --address %s`, or name another one in TEMPORAL_NAMESPACE", ns, addr),
			"the Temporal server at %s has no namespace %s", addr, ns)
	case code == codes.PermissionDenied || code == codes.Unauthenticated:
		return c.fail(StagePermission, err, "See TEMPORAL_API_KEY, the client certificate (TEMPORAL_TLS_CLIENT_CERT_PATH) and TEMPORAL_NAMESPACE with `starter config`",
			"the Temporal server at %s refuses the connection to namespace %s (%v)", addr, ns, err)
	case code == codes.Unimplemented:
		return c.fail(StageServer, err, "See the port in TEMPORAL_ADDRESS; a Temporal server usually has 7233",
			"what answers at %s is no Temporal server (%v)", addr, err)
	}
	if closed := c.walk(ctx); closed != nil {
		return closed
	}
	return c.fail(StageServer, err, c.remedy(), "something listens at %s, and does not answer as a healthy Temporal server does (%v)", addr, err)
}

// remedy is what to do about a server that is not there or not well.
func (c Connection) remedy() string {
	if c.Explicit {
		return "Is it running there, and is TEMPORAL_ADDRESS right? `starter doctor` checks more; without TEMPORAL_ADDRESS the embedded server is used"
	}
	return "Start the embedded server anew with `starter server stop` and `starter server start`; `starter doctor` checks more"
}

// codeOf finds the gRPC code in an error of the SDK.
func codeOf(err error) codes.Code {
	for ; err != nil; err = errors.Unwrap(err) {
		if code := serviceerror.ToStatus(err).Code(); code != codes.Unknown {
			return code
		}
	}
	return codes.Unknown
}
