package rundir

import (
	"encoding/json"

	"github.com/passbook-run/passbook/run"
)

// Promotions lists the places that the result was copied to. It skips lines that are no such event.
func (d Dir) Promotions() ([]run.DeliveryCompleted, error) {
	events, err := ReadStream(d, PromotionsFile, 0)
	var out []run.DeliveryCompleted
	for _, e := range events.Lines {
		p, err := Promotion(e)
		if err == nil {
			out = append(out, p)
		}
	}
	return out, err
}

func Promotion(line string) (run.DeliveryCompleted, error) {
	var p run.DeliveryCompleted
	e, err := run.ParseLine(line)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(e.Payload, &p)
}
