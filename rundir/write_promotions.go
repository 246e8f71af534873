package rundir

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/run"
)

// Promoting holds the directory's lock while copy delivers the result, and records the destination once for each ID,
// even if it is repeated. On return the line is on disk.
func (d Dir) Promoting(ctx context.Context, now time.Time, copy func() (run.DeliveryCompleted, error)) error {
	lock, err := lock(ctx, d, "promote")
	if err != nil {
		return err
	}
	defer lock.Unlock()
	made, err := copy()
	if err != nil {
		return err
	}
	past, err := d.Promotions()
	if err != nil || slices.ContainsFunc(past, func(p run.DeliveryCompleted) bool { return p.ID == made.ID }) {
		return err
	}
	return d.recordPromotion(made, now)
}

func (d Dir) recordPromotion(made run.DeliveryCompleted, now time.Time) error {
	before, err := ReadStream(d, PromotionsFile, 0)
	if err != nil {
		return err
	}
	if len(before.Torn) > 0 {
		moved := fmt.Sprintf("%s/promotions-after-%d-%s.txt", TornDir, len(before.Lines),
			disk.Digest(before.Torn)[:8])
		if err := d.cutTail(PromotionsFile, before.Size, moved); err != nil {
			return err
		}
	}
	payload, err := run.Payload(made)
	if err != nil {
		return err
	}
	phase := "delivery"
	line, err := run.Event{Seq: int64(len(before.Lines)) + 1, TS: run.Time(now), Kind: run.KindDeliveryCompleted,
		Phase: &phase, Payload: payload}.Line()
	if err != nil {
		return err
	}
	_, err = d.inside().Append(d.Path(PromotionsFile), before.Size, []byte(line+"\n"), FilePerm)
	return err
}
