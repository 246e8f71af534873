package contract

import "github.com/passbook-run/passbook/run"

// SupersededResult is a result that came after the one that counts, or a delivery that ended without one. It was paid
// for too.
type SupersededResult struct {
	Number int       `json:"number"`          // within the run, from 1
	Ended  int       `json:"ended,omitempty"` // number of the delivery that ended without a result
	Call   string    `json:"call"`
	Spend  run.Spend `json:"spend"`

	Prompt   *run.Blob `json:"prompt,omitempty"`
	Output   *run.Blob `json:"output,omitempty"` // of the call
	Envelope *run.Blob `json:"envelope,omitempty"`
}

// SameEnd reports whether both are the end of the same delivery: two workers may note it.
func (r SupersededResult) SameEnd(o SupersededResult) bool {
	return r.Ended > 0 && r.Ended == o.Ended && r.Call == o.Call
}
