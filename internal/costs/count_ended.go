package costs

import (
	"context"
	"time"

	"github.com/passbook-run/passbook/internal/calls"
)

// CountEnded takes into account which calls have ended since a time, without writing: for programs that only read.
// Calls whose store cannot be read stay open.
func (l *Ledger) CountEnded(ctx context.Context, since time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, err := l.records(since)
	if err != nil {
		return err
	}
	for _, r := range all {
		if !r.open() {
			continue
		}
		s, err := l.openStore(ctx, r.Store)
		if err != nil {
			continue // it counts as reserved
		}
		if rows, err := l.found(ctx, calls.Ledger{Store: s, Call: r.ID}, r, false); err == nil {
			for _, row := range rows {
				l.days[nameOf(r.At)].apply(row)
			}
		}
	}
	return nil
}
