package activities

import (
	"maps"
	"path"
	"strings"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/run"
)

// Projection is a batch of events that is on disk.
type Projection struct {
	Dir, RunID, Pipeline string
	First                int64    // seq of the first line
	Lines                []string // of the batch
	Added                int      // of them, those that this delivery has added: the last ones
}

// traceparent is the variable of the W3C trace context.
const traceparent = "TRACEPARENT"

// trace puts the trace context into the environment of an agent. It comes after the claim: it is not part of the
// question, so a call is the same with and without traces.
func (a *Activities) trace(in contract.PassInput, cmd *agent.Command) {
	if a.cfg.Traceparent == nil {
		return
	}
	env := map[string]string{}
	maps.Copy(env, cmd.ExtraEnv)
	call := in.Call[:strings.LastIndex(in.Call, ".")] // without the digest of the question
	env[traceparent] = a.cfg.Traceparent(in.RunID, call, in.Attempt)
	cmd.ExtraEnv = env
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
	if a.accounts.Dir == "" {
		return nil
	}
	for _, s := range a.accounts.InForce() {
		all = append(all, AccountLimit{Account: s.Name, Kind: s.Kind, Reset: s.Until})
	}
	return all
}
