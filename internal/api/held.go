package api

import (
	"context"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/internal/volume"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// HeldUp describes why an open run does not continue although no user paused it, and what to do; empty if it continues
// or the cause is unknown. recorded is the status in the directory; without it the workflow is asked in any case.
func (h Host) HeldUp(ctx context.Context, o operations.Operator, d rundir.Dir, recorded run.Status) string {
	if o.Embedded {
		if text := stateFull(o.Settings.StateDir); text != "" {
			return text
		}
	}
	claim, err := d.Claim()
	if err != nil {
		return "" // the next reader of the directory reports it
	}
	ctx, cancel := context.WithTimeout(ctx, AskFor)
	defer cancel()
	held := o.Held(ctx, claim.RunID, o.EffectiveStatus(ctx, d.CurrentClaim(claim), recorded))
	if held == nil {
		return ""
	}
	return h.HeldText(*held, d)
}

// HeldText describes what holds up a run, and what to do.
func (h Host) HeldText(held run.Held, d rundir.Dir) string {
	if held.DiskFull {
		return fmt.Sprintf("Paused, a disk is full: %s. Nothing is lost. Free space there, then run: %s resume %s",
			held.Cause, h.Program, shell.Quote(d.Root))
	}
	if held.Waits {
		return fmt.Sprintf("Blocked: %s.", held.Cause)
	}
	return fmt.Sprintf("Blocked: %s. Fix the cause: the run retries every few seconds and continues automatically.",
		held.Cause)
}

// stateFull reports that the embedded server cannot write its database: no workflow continues or can report it.
func stateFull(dir string) string {
	on, err := volume.Of(dir)
	switch {
	case err != nil:
		return fmt.Sprintf("Blocked: the state directory cannot be read: %v", err)
	case on.Full():
		return fmt.Sprintf("Blocked: the embedded server cannot write to the state directory %s (%s). "+
			"Free space there: the run then continues automatically.", dir, on)
	}
	return ""
}

// recorded waits until the directory records what an open run has accepted, or returns why it does not.
func (h Host) recorded(
	ctx context.Context, o operations.Operator, d rundir.Dir, there func(rundir.Meta) bool,
) (text string, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordWait)
	defer cancel()
	ask := time.Now().Add(AskFor)
	err = Poll(ctx, Refresh, func(now time.Time) (bool, error) {
		if m, err := d.Meta(); err == nil && there(m) {
			return true, nil
		}
		if now.Before(ask) {
			return false, nil
		}
		ask = now.Add(AskFor)
		text = h.HeldUp(ctx, o, d, "")
		return text != "", nil
	})
	return text, err
}

// unrecorded describes that the run has accepted something which its directory does not record yet. held is the cause,
// if it is known.
func (h Host) unrecorded(what string, d rundir.Dir, held string) string {
	if held == "" {
		held = fmt.Sprintf("To see whether it does: %s status %s", h.Program, shell.Quote(d.Root))
	}
	return fmt.Sprintf("The run has accepted %s, and its directory does not record it yet. %s", what, held)
}

// DamageLines describes the damage that the journal records, or why it is unknown.
func (h Host) DamageLines(d rundir.Dir, s run.State) []string {
	all, err := d.Damage(s)
	if err != nil {
		return []string{fmt.Sprintf("The journal records damage, and whether it was repaired is unknown: %v", err)}
	}
	var lines []string
	for _, r := range all {
		lines = append(lines, "Damage: "+r.String())
	}
	if view.Unrepaired(all) {
		lines = append(lines, fmt.Sprintf("Repair it while the run is paused or after its end: %s repair-state %s --apply",
			h.Program, shell.Quote(d.Root)))
	}
	return lines
}
