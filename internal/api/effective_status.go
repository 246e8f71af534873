package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/passbook-run/passbook/internal/host"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// AskFor bounds the time that a reading operation waits for a server.
const AskFor = 2 * time.Second

// refreshFor bounds the time in which an open run continues from its directory.
const refreshFor = 2 * AskFor

// pollsAfter is the maximum time from the start of a worker to its first poll.
const pollsAfter = 10 * time.Second

// ErrNoServer reports that no server runs, and none is configured.
var ErrNoServer = errors.New("no Temporal server runs on this machine, and none is named (TEMPORAL_ADDRESS)")

// EffectiveStatus returns the status of a run: as its directory recorded it, and as Temporal reports it if a server can
// be reached. No server is started.
func (h Host) EffectiveStatus(ctx context.Context, d rundir.Dir, recorded run.Status) run.EffectiveStatus {
	claim, err := d.Claim()
	if err != nil {
		return run.NewEffectiveStatus(recorded, run.LiveUnknown, "the directory does not identify its run: "+err.Error())
	}
	claim = d.CurrentClaim(claim)
	ctx, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	o, err := h.Peek(ctx, claim)
	if err != nil {
		return run.NewEffectiveStatus(recorded, run.LiveUnknown, err.Error())
	}
	defer o.Client.Close()
	s := o.EffectiveStatus(ctx, claim, recorded)
	s.Held, s.NoWorker = o.Held(ctx, claim.RunID, s), o.NoWorker(ctx, claim, s)
	s.Pausing = o.Pausing(ctx, claim.RunID, s)
	s.Turn = operations.TurnOf(h.Settings.StateDir, claim.RunID, s.Recorded)
	return s
}

// Observe reads the journal of a run, and its status as EffectiveStatus returns it.
func (h Host) Observe(ctx context.Context, d rundir.Dir) (rundir.Now, run.EffectiveStatus, error) {
	return operations.Observe(d.Now, func(recorded run.Status) run.EffectiveStatus {
		return h.EffectiveStatus(ctx, d, recorded)
	})
}

// Refresh lets the open workflow of a run continue from the directory if that is newer, as after Temporal's database was
// restored from a backup. It does nothing if that cannot be known.
func (h Host) Refresh(ctx context.Context, d rundir.Dir) {
	claim, err := d.Claim()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, refreshFor)
	defer cancel()
	o, err := h.Peek(ctx, d.CurrentClaim(claim))
	if err != nil {
		return
	}
	defer o.Client.Close()
	if err := o.Refresh(ctx, d); err != nil {
		slog.Debug("compare a run with its directory", "run", claim.RunID, "error", err)
	}
}

// Peek connects to a running server, without starting anything.
func (h Host) Peek(ctx context.Context, claim run.Claim) (operations.Operator, error) {
	conn, err := host.FindConnection(h.Settings)
	if err != nil {
		return operations.Operator{}, err
	}
	address, starts := "", false
	if !conn.Explicit {
		st, err := host.Read(h.Settings.StateDir)
		if err != nil {
			return operations.Operator{}, err
		}
		if st.Server == nil && st.Keeper != nil && st.Keeper.Server.Failing() {
			return operations.Operator{}, fmt.Errorf("the embedded server does not run; it %s",
				h.Secrets.Text(st.Keeper.Server.String()))
		}
		if st.Server == nil {
			return operations.Operator{}, ErrNoServer
		}
		address = st.Server.Address
		starts = st.Worker != nil && time.Since(st.Worker.Started) < pollsAfter
	}
	if claim.Namespace != "" {
		conn.Options.Namespace = claim.Namespace
	}
	cl, err := conn.Dial(ctx, address, slog.New(slog.DiscardHandler))
	var failed *host.ConnectError
	if errors.As(err, &failed) {
		return operations.Operator{}, errors.New(failed.Brief())
	}
	if err != nil {
		return operations.Operator{}, err
	}
	o, err := conn.Operator(cl, address, h.Settings, h.Secrets)
	o.WorkerStarts = starts
	return o, err
}
