package run

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// KindRow are the cells of an event kind in docs/run-state.md: its payload, and what it does to the status.
func KindRow(k Kind) (payload, effect string) {
	r := kinds()[k]
	return fmt.Sprintf("%T", r.payload())[len("*run."):], r.effect
}

// Folded folds events with these payloads, of the first kind that has such a payload. Each is at the time of the state.
func Folded(t *testing.T, s State, payloads ...any) State {
	t.Helper()
	for _, p := range payloads {
		raw, err := Payload(p)
		require.NoError(t, err)
		s = Apply(s, Event{Seq: s.Seq + 1, TS: s.TS, Kind: KindWith(t, p), Payload: raw})
		require.Empty(t, s.InvalidTransition, "%T", p)
	}
	return s
}

// KindWith is the first kind that has such a payload.
func KindWith(t testing.TB, payload any) Kind {
	t.Helper()
	for _, k := range Kinds() {
		if reflect.TypeOf(kinds()[k].payload()).Elem() == reflect.TypeOf(payload) {
			return k
		}
	}
	require.Fail(t, "no kind has this payload", "%T", payload)
	return ""
}
