package run

import "fmt"

// KindRow are the cells of an event kind in docs/run-state.md: its payload, and what it does to the status.
func KindRow(k Kind) (payload, effect string) {
	r := kinds[k]
	return fmt.Sprintf("%T", r.payload())[len("*run."):], r.effect
}
