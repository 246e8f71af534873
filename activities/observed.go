package activities

import (
	"log/slog"
	"path"

	"github.com/passbook-run/passbook/run"
)

// Projection is a batch of events that is on disk.
type Projection struct {
	Dir, RunID, Pipeline string
	First                int64    // seq of the first line
	Lines                []string // of the batch
	Added                int      // of them, those that this delivery has added: the last ones
}

// RunningCall is a call that this worker makes now.
type RunningCall struct {
	Account string // empty: a command
	Program string
}

// RunningCalls lists the calls that this worker makes now.
func (a *Activities) RunningCalls() []RunningCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []RunningCall
	for _, st := range a.running {
		c := RunningCall{Account: st.paid.Account.Name}
		if len(st.agent.Run) > 0 {
			c.Program = path.Base(st.agent.Run[0])
		}
		out = append(out, c)
	}
	return out
}

// AccountLimit is the limit of an account that is in force on this host.
type AccountLimit struct {
	Account string
	Kind    run.LimitKind
	Reset   string // in run.TimeFormat
}

// Limits lists the limits of accounts that are in force on this host.
func (a *Activities) Limits() (all []AccountLimit) {
	if a.gate == nil {
		return nil
	}
	shut, err := a.gate.Shut()
	if err != nil {
		slog.Warn("read the limits of accounts", "error", err)
	}
	for _, s := range shut {
		all = append(all, AccountLimit{Account: s.Name, Kind: s.Kind, Reset: s.Until})
	}
	return all
}
