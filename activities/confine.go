package activities

import (
	"context"
	"path/filepath"

	"go.temporal.io/sdk/activity"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
)

// confine decides what restricts a call, and configures its command. A sandbox that was asked for and is not possible
// here refuses the command.
func (a *Activities) confine(ctx context.Context, cmd *agent.Command, ag pipeline.Agent, dir string) sandbox.Held {
	host := a.offers()
	held, err := sandbox.Decide(sandbox.Request{
		Mode: ag.Sandbox, Default: a.cfg.Sandbox.Mode, Network: ag.Network,
	}, host)
	if err != nil {
		cmd.Refused = err
		return held
	}
	if held.Why != "" {
		a.warnUnconfined(ctx, held.Why)
	}
	if held.Mode == sandbox.None {
		return held
	}
	cmd.Sandbox = &sandbox.Call{
		Held: held, Bwrap: host.Bwrap, Delivery: dir, Files: !cmd.Shell, Enter: a.cfg.Supervisor,
		Read: a.cfg.Sandbox.Read, Write: a.cfg.Sandbox.Write, Hidden: []string{a.cfg.StateDir, a.cfg.Scratch},
	}
	if isScripted(ag) { // its files of faults and calls are named by variables
		for _, name := range scripted.EnvNames() {
			if file := environ.Value(cmd.Environ(), name); file != "" {
				cmd.Sandbox.Write = append(cmd.Sandbox.Write[:len(cmd.Sandbox.Write):len(cmd.Sandbox.Write)],
					filepath.Dir(file))
			}
		}
	}
	return held
}

// warnUnconfined logs once that calls run without a sandbox.
func (a *Activities) warnUnconfined(ctx context.Context, why string) {
	a.mu.Lock()
	told := a.unconfined
	a.unconfined = true
	a.mu.Unlock()
	if !told && activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("calls run without a sandbox; see \"starter doctor\"", "reason", why)
	}
}
