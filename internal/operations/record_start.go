package operations

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/records"
	"github.com/passbook-run/passbook/run"
)

// RecordStart adds to the decision log what a start found, if it left the run as it was (requirement 002 §3.1). seq is
// that of the run's last event. A directory that this user may not write has no row of this start. A failure is only a
// warning, because the start is complete.
func (o Operator) RecordStart(ctx context.Context, dir projector.Dir, s run.State, seq int64) (warnings []string) {
	decision, reason := run.FoundBy(s)
	if decision == "" || projector.MayWrite(dir.Dir) != nil {
		return nil
	}
	by := o.By
	if o.Redact != nil {
		by, reason = o.Redact.Text(by), o.Redact.Text(reason)
	}
	err := dir.RecordStart(ctx, records.StartRow{TS: run.Time(time.Now()), Seq: seq,
		LogDecision: run.LogDecision{Decision: decision, Reason: reason, By: by}})
	if err == nil || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return []string{fmt.Sprintf("record this start in %s: %v", layout.DecisionsLog, err)}
}
