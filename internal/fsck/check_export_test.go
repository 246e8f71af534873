package fsck

import (
	"context"

	"github.com/passbook-run/passbook/internal/projector"
)

// Codes gives every code that a check knows with its severity, for tests.
func Codes() []Issue {
	var all []Issue
	for _, r := range rules() {
		all = append(all, Issue{Code: r.code, Severity: r.severity, Hint: r.hint})
	}
	return all
}

// ReadAndFold does what a check does with events.jsonl before it judges anything.
// list: it also lists the files that it expects.
func ReadAndFold(ctx context.Context, d projector.Dir, list bool) error {
	x := &examined{dir: d}
	if err := x.readMeta(); err != nil {
		return err
	}
	if list {
		x.shadow = projector.NewShadow(ctx, d, nil)
	}
	return x.readStream(ctx)
}
