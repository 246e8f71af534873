package e2e_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/layout"

	"github.com/passbook-run/passbook/internal/durable"
	"github.com/passbook-run/passbook/run"
)

// windows are what a run can be doing when a worker dies. Of the calls of a group the one furthest down the list
// counts.
const (
	beforeStart  = "before the first event"
	between      = "between two steps"
	beforeClaim  = "before the claim"
	callOut      = "call out"
	notJournaled = "result put, not journaled"
	notPut       = "answered, result not put"
	projecting   = "projecting"
	// its lines are on disk, and what follows from them is not: the snapshot too
	snapshotting = "projecting the end of a turn"
	closing      = "closing, or over"
)

var windows = []string{beforeStart, closing, between, beforeClaim, callOut, notJournaled, notPut, projecting,
	snapshotting}

// windowOf says what a run was doing, by what is left of it.
func windowOf(s *site, left instant) (string, error) {
	if durable.ReadOwner(filepath.Join(s.dir, layout.LockFile)).PID != 0 { // the dead holder's record
		return projectingWhat(left), nil
	}
	if len(left.Events) == 0 {
		return beforeStart, nil
	}
	if left.Events[len(left.Events)-1].Kind == run.KindRunEnd {
		return closing, nil
	}
	found := between
	open := map[string]run.PassStart{}
	for _, e := range left.Events {
		switch e.Kind {
		case run.KindPassStart:
			var p run.PassStart
			e.Decode(&p)
			open[atOf(p.Pass)] = p
		case run.KindPassEnd:
			var p run.PassEnd
			e.Decode(&p)
			delete(open, atOf(p.Pass))
		}
	}
	for at, p := range open {
		w, err := windowOfCall(s, left, at, p.Call)
		if err != nil {
			return "", err
		}
		if slices.Index(windows, w) > slices.Index(windows, found) {
			found = w
		}
	}
	return found, nil
}

// projectingWhat looks for the end of a turn among the lines that meta.json has not seen.
func projectingWhat(left instant) string {
	for _, e := range left.Events {
		var p run.PassEnd
		if e.Decode(&p); e.Kind == run.KindPassEnd && p.Turn() && (left.Meta == nil || e.Seq > left.Meta.Events.Seq) {
			return snapshotting
		}
	}
	return projecting
}

func windowOfCall(s *site, left instant, at, call string) (string, error) {
	names, err := filepath.Glob(filepath.Join(s.root, "state", "store", "calls", filepath.FromSlash(call)+".*", "*"))
	if err != nil {
		return "", err
	}
	has := func(prefix string) bool {
		return slices.ContainsFunc(names, func(n string) bool {
			return strings.HasPrefix(filepath.Base(n), prefix) &&
				!durable.IsTemp(n)
		})
	}
	_, answers := counts(left.Calls)
	switch {
	case has("result"):
		return notJournaled, nil
	case answers[at] > 0:
		return notPut, nil
	case has("claim-"):
		return callOut, nil
	}
	return beforeClaim, nil
}

// tally is a table of how often something was met.
type tally map[string]int

func (t tally) String() string {
	var b strings.Builder
	keys := make([]string, 0, len(t))
	for k := range t {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		fmt.Fprintf(&b, "\n%6d  %s", t[k], k)
	}
	return b.String()
}
