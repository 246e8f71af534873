package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/passbook-run/passbook/local"
	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/serve"
	"github.com/passbook-run/passbook/workflows"
)

// askFor bounds how long a reading verb waits for a server.
const askFor = 2 * time.Second

// pollsAfter is how long a worker may take from its start to its first poll.
const pollsAfter = 10 * time.Second

// standing says where a run stands: what its directory recorded, beside what Temporal says, if a server can be reached. None is started.
func (a *app) standing(ctx context.Context, d rundir.Dir, recorded run.Status) run.Standing {
	claim, err := d.Claim()
	if err != nil {
		return run.Stands(recorded, run.LiveUnknown, "the directory does not say which run it is: "+err.Error())
	}
	claim = d.Seat(claim)
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	o, err := a.peek(ctx, claim)
	if err != nil {
		return run.Stands(recorded, run.LiveUnknown, err.Error())
	}
	defer o.Client.Close()
	s := o.Standing(ctx, claim, recorded)
	s.Held, s.NoWorker = o.Held(ctx, claim.RunID, s), o.NoWorker(ctx, claim, s)
	return s
}

// errNoServer says that there is nobody to ask.
type errNoServer struct{}

func (errNoServer) Error() string {
	return "no Temporal server runs on this machine, and none is named (TEMPORAL_ADDRESS)"
}

// peek connects to the server that is there, without starting anything.
func (a *app) peek(ctx context.Context, claim run.Claim) (operate.Operator, error) {
	conn, err := serve.FindConnection(a.settings)
	if err != nil {
		return operate.Operator{}, err
	}
	address, starts := "", false
	if !conn.Explicit {
		st, err := local.Read(a.settings.StateDir)
		if err != nil {
			return operate.Operator{}, err
		}
		if st.Server == nil && st.Keeper != nil && st.Keeper.Server.GaveUp {
			return operate.Operator{}, fmt.Errorf("the embedded server does not run; its keeper %s", a.secrets.Text(st.Keeper.Server.String()))
		}
		if st.Server == nil {
			return operate.Operator{}, errNoServer{}
		}
		address = st.Server.Address
		starts = st.Worker != nil && time.Since(st.Worker.Started) < pollsAfter
	}
	if claim.Namespace != "" {
		conn.Options.Namespace = claim.Namespace
	}
	host, err := local.HostID(a.settings.StateDir)
	if err != nil {
		return operate.Operator{}, err
	}
	cl, err := conn.Dial(ctx, address, quietLog(io.Discard))
	var failed *serve.ConnectError
	if errors.As(err, &failed) {
		return operate.Operator{}, errors.New(failed.Brief())
	}
	if err != nil {
		return operate.Operator{}, err
	}
	return operate.Operator{
		Client: cl, Address: cmp.Or(address, conn.Options.HostPort), Namespace: conn.Options.Namespace, Settings: a.settings, Host: host, Build: version(), By: who(), Embedded: !conn.Explicit,
		Redact: a.secrets, Converter: conn.Options.DataConverter, WorkerStarts: starts,
	}, nil
}

// attributes are the search attributes as the embedded server is told of them.
func attributes() map[string]string {
	all := map[string]string{}
	for name, kind := range workflows.Attributes() {
		all[name] = kind.String()
	}
	return all
}
