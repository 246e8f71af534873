package host

import (
	"context"

	"github.com/passbook-run/passbook/internal/awake"
)

// awake checks whether calls keep this machine awake.
func (e *examiner) awake(ctx context.Context) {
	if !e.Settings.KeepAwake {
		e.ok("worker", "keep awake", "calls do not keep this machine awake, as the settings say")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	if err := awake.Probe(ctx); err != nil {
		e.add(Warning, "worker", "keep awake", "set keep_awake: false if this machine does not sleep",
			"this machine may sleep while calls run: %v", err)
		return
	}
	e.ok("worker", "keep awake", "%s keeps this machine awake while calls run", awake.Program())
}
