package rundir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/passbook-run/passbook/run"
)

// PromotionsFile tells where the result of a run that is done was copied to: one delivery.completed event for each place, with a numbering of
// its own. It lies beside the journal, because done is final: no execution can write to that any more.
const PromotionsFile = "promotions.jsonl"

// Promotions lists where the result was copied to. Lines that are no such event are skipped.
func (d Dir) Promotions() ([]run.DeliveryCompleted, error) {
	events, err := d.promotions()
	var out []run.DeliveryCompleted
	for _, e := range events.lines {
		p, err := promotion(e)
		if err == nil {
			out = append(out, p)
		}
	}
	return out, err
}

func promotion(line string) (run.DeliveryCompleted, error) {
	var p run.DeliveryCompleted
	e, err := run.ParseEvent([]byte(line))
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(e.Payload, &p)
}

func (d Dir) promotions() (stream, error) {
	raw, err := os.ReadFile(d.Path(PromotionsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return stream{}, nil
	}
	return split(raw, 0), err
}

// Promoting holds the directory's lock while copy brings the result somewhere, and writes down where to: once for each id, however often. On
// return the line is on disk.
func (d Dir) Promoting(ctx context.Context, now time.Time, copy func() (run.DeliveryCompleted, error)) error {
	lock, err := d.lock(ctx, "promote")
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
	before, err := d.promotions()
	if err != nil {
		return err
	}
	if len(before.torn) > 0 {
		if err := d.Disk.Mkdir(d.Path(tornDir), dirPerm); err != nil {
			return err
		}
		aside := fmt.Sprintf("%s/promotions-after-%d-%s.txt", tornDir, len(before.lines), digest(before.torn)[:8])
		if err := d.Disk.CutTail(d.Path(PromotionsFile), before.size, d.Path(aside)); err != nil {
			return err
		}
	}
	payload, err := run.Payload(made)
	if err != nil {
		return err
	}
	phase := "delivery"
	line, err := run.Event{Seq: int64(len(before.lines)) + 1, TS: run.Time(now), Kind: run.KindDeliveryCompleted, Phase: &phase, Payload: payload}.Line()
	if err != nil {
		return err
	}
	_, err = d.Disk.Append(d.Path(PromotionsFile), before.size, []byte(line+"\n"), filePerm)
	return err
}
