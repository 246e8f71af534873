package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/passbook-run/passbook/internal/history"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/workflows"
)

const (
	shortRetention = 7 * 24 * time.Hour // shorter than a holiday
	skewAtMost     = 5 * time.Second
)

func (e *examiner) program() {
	e.ok("program", "program", "passbook %s, %s, %s/%s", e.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// server checks the connection. It returns false if no server answers.
func (e *examiner) server(ctx context.Context) (operations.Operator, bool) {
	var err error
	if e.host, err = HostID(e.Settings.StateDir); err != nil {
		e.add(Problem, "server", "host", "check the settings: "+e.typed("config"), "%v", err)
		return operations.Operator{}, false
	}
	conn, err := FindConnection(e.Settings)
	if err != nil {
		e.add(Problem, "server", "server", "check the settings: "+e.typed("config"), "%v", err)
		return operations.Operator{}, false
	}
	if e.status, err = Read(e.Settings.StateDir); err != nil {
		e.add(Problem, "server", "server", "", "%v", err)
		return operations.Operator{}, false
	}
	address := ""
	if !conn.Explicit {
		e.keeper()
		if e.status.Server == nil {
			e.absent(ctx)
			return operations.Operator{}, false
		}
		address = e.status.Server.Address
	}
	cl, err := conn.Dial(ctx, address, slog.New(slog.DiscardHandler))
	var failed *ConnectError
	if errors.As(err, &failed) {
		e.add(Problem, "server", string(failed.Stage), failed.Fix, "%s", failed.What)
		return operations.Operator{}, false
	}
	if err != nil {
		e.add(Problem, "server", "server", "", "%v", err)
		return operations.Operator{}, false
	}
	o := e.operator(operations.Operator{Client: cl, Converter: conn.Options.DataConverter, Address: address,
		Namespace: conn.Options.Namespace, Embedded: !conn.Explicit})
	if o.Address == "" {
		o.Address = conn.Options.HostPort
	}
	e.healthy(ctx, o, conn.Options.ConnectionOptions.TLS != nil)
	return o, true
}

// absent reports an embedded server that does not run, which is not a problem.
func (e *examiner) absent(ctx context.Context) {
	e.add(Unchecked, "server", "server", e.typed("server start"), "the embedded server does not run; a run starts it")
	path, there, err := CachedServer(ServerOptions{StateDir: e.Settings.StateDir, Binary: e.Settings.Server})
	switch {
	case err != nil:
		e.add(Problem, "server", "binary", "set TEMPORAL_ADDRESS, or PASSBOOK_SERVER to a Temporal server's program",
			"%v",
			err)
		return
	case !there:
		e.add(Unchecked, "server", "binary", e.typed("server build"), "not built yet; that takes a few minutes, once")
		return
	}
	version, err := ServerVersion(ctx, path)
	if err != nil {
		e.add(Problem, "server", "binary", "set PASSBOOK_SERVER to a Temporal server's program, or leave it unset",
			"%v", err)
		return
	}
	e.ok("server", "binary", "Temporal %s: %s", version, path)
}

// healthy checks a server that answers.
func (e *examiner) healthy(ctx context.Context, o operations.Operator, secure bool) {
	var header metadata.MD
	info, err := o.Client.WorkflowService().GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{},
		grpc.Header(&header))
	if err != nil && !history.Denied(err) {
		e.add(Problem, "server", "server", "check the server's log", "%v", err)
		return
	}
	which := "TEMPORAL_ADDRESS or profile"
	if !secure {
		which += "; insecure: without TLS"
	}
	if o.Embedded {
		which = fmt.Sprintf("embedded, pid %d since %s; only with the certificates in %s", e.status.Server.Process.PID, when(e.status.Server.Started), e.status.Server.Certs)
	}
	e.ok("server", "server", "Temporal %s at %s (%s)", cmp.Or(info.GetServerVersion(), "of an undisclosed version"),
		o.Address, which)
	e.namespace(ctx, o)
	e.attributes(ctx, o)
	e.clock(o, header.Get("date"), time.Now())
}

// createAttributes returns the command that creates search attributes.
func (e *examiner) createAttributes(o operations.Operator, missing map[string]enumspb.IndexedValueType) string {
	if o.Embedded {
		return e.typed("server start")
	}
	return CreateAttributes(o.Namespace, o.Address, missing)
}

func (e *examiner) namespace(ctx context.Context, o operations.Operator) {
	ns, err := o.Client.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: o.Namespace})
	if err != nil {
		e.add(Problem, "server", "namespace", "", "%v", err)
		return
	}
	keep := ns.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()
	days := fmt.Sprintf("%.0f days", keep.Hours()/24)
	if keep < shortRetention {
		fix := fmt.Sprintf("temporal operator namespace update -n %s --retention 90d --address %s", o.Namespace,
			o.Address)
		if o.Embedded {
			fix = e.typed("server start")
		}
		e.add(Warning, "server", "namespace", fix,
			"%s keeps closed runs for only %s; after that, a lost directory cannot be rebuilt from the history",
			o.Namespace, days)
		return
	}
	e.ok("server", "namespace", "%s keeps closed runs for %s", o.Namespace, days)
}

// attributes checks whether runs can be listed by pipeline, status and other attributes.
func (e *examiner) attributes(ctx context.Context, o operations.Operator) {
	known, err := o.Client.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: o.Namespace})
	if err != nil {
		e.unlisted(ctx, o)
		return
	}
	missing := workflows.SearchAttributes()
	maps.DeleteFunc(missing, func(name string, kind enumspb.IndexedValueType) bool {
		return known.GetCustomAttributes()[name] == kind
	})
	if len(missing) > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
		e.add(Warning, "server", "attributes", e.createAttributes(o, missing),
			"namespace %s lacks %s: the Web UI cannot find runs by them", o.Namespace, names)
		return
	}
	e.ok("server", "attributes", "all %d search attributes exist", len(workflows.SearchAttributes()))
}

// unlisted checks the search attributes of a server that does not list them.
func (e *examiner) unlisted(ctx context.Context, o operations.Operator) {
	want := workflows.SearchAttributes()
	if _, err := o.Client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: o.Namespace,
		Query: workflows.SearchAttributesQuery()}); err != nil {
		e.add(Warning, "server", "attributes", CreateAttributes(o.Namespace, o.Address, want),
			"namespace %s cannot filter by the search attributes of runs, and does not list those it has: %v",
			o.Namespace, err)
		return
	}
	e.ok("server", "attributes", "all %d search attributes exist", len(want))
}

// clock compares the server's time with this machine's, if the server reports it.
func (e *examiner) clock(o operations.Operator, dates []string, now time.Time) {
	if host, _, err := net.SplitHostPort(o.Address); err == nil &&
		(host == "localhost" || net.ParseIP(host).IsLoopback()) {
		e.ok("server", "clock", "the server is on this machine")
		return
	}
	if len(dates) == 0 {
		e.add(Unchecked, "server", "clock", "", "the server does not report its time")
		return
	}
	t, err := http.ParseTime(dates[0])
	if err != nil {
		e.add(Unchecked, "server", "clock", "", "the server reports no valid time: %q", dates[0])
		return
	}
	if skew := now.Sub(t).Round(time.Second); skew.Abs() > skewAtMost {
		e.add(Warning, "server", "clock", "set this machine's clock: timedatectl set-ntp true (Linux)",
			"this machine's clock is %s off the server's", skew)
		return
	}
	e.ok("server", "clock", "as the server's")
}
