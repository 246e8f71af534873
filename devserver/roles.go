package main

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/server/common/api"
	"go.temporal.io/server/common/authorization"
)

// roles of the common names, in all namespaces. A user's programs (cli) may do everything, also poll: a worker on this
// machine may have another state directory. The Web UI reads, starts and signals; it neither polls nor administers.
var roles = map[string]authorization.Role{
	nameSystem: authorization.RoleAdmin | authorization.RoleWriter | authorization.RoleReader | authorization.RoleWorker,
	nameCLI:    authorization.RoleAdmin | authorization.RoleWriter | authorization.RoleReader | authorization.RoleWorker,
	nameWorker: authorization.RoleWriter | authorization.RoleReader | authorization.RoleWorker,
	nameUI:     authorization.RoleWriter | authorization.RoleReader,
}

// byCommonName assigns a client the role of its certificate.
type byCommonName struct{}

func (byCommonName) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	if info == nil || info.TLSSubject == nil {
		return nil, fmt.Errorf("the client has no certificate")
	}
	name := info.TLSSubject.CommonName
	role, ok := roles[name]
	if !ok {
		return nil, fmt.Errorf("the certificate's name %q has no role", name)
	}
	return &authorization.Claims{Subject: name, System: role, AuthType: "mtls"}, nil
}

// byRole is the server's own authorizer, and reserves the tasks of workers for workers.
type byRole struct{ authorization.Authorizer }

func newByRole() authorization.Authorizer { return byRole{authorization.NewDefaultAuthorizer()} }

func (a byRole) Authorize(ctx context.Context, c *authorization.Claims,
	target *authorization.CallTarget) (authorization.Result, error) {
	if c != nil && c.System&authorization.RoleWorker == 0 && isForWorkers(target.APIName) {
		return authorization.Result{Decision: authorization.DecisionDeny,
			Reason: fmt.Sprintf("the certificate of %q is not one of a worker", c.Subject)}, nil
	}
	return a.Authorizer.Authorize(ctx, c, target)
}

// isForWorkers finds the calls with which a worker gets a task, and answers it.
func isForWorkers(method string) bool {
	name, ok := strings.CutPrefix(method, api.WorkflowServicePrefix)
	if !ok {
		return false
	}
	return strings.HasPrefix(name, "Poll") && strings.HasSuffix(name, "TaskQueue") ||
		strings.HasPrefix(name, "Respond") || strings.HasPrefix(name, "RecordActivityTaskHeartbeat")
}
