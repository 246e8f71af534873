package activities

import (
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/run"
)

// limitOf returns why the provider did not answer a failed call, or nil.
func limitOf(f *agent.Failure) *run.Limit {
	kind := f.Cause
	if !kind.Passes() && !kind.Blocks() {
		return nil
	}
	limit := run.Limit{Kind: kind}
	if !f.Until.IsZero() {
		limit.Reset = run.Time(f.Until)
	}
	return &limit
}
