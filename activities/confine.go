package activities

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/allow"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// bounds are what the settings of this host allow to every process of a run.
func (a *Activities) bounds() allow.Bounds {
	return allow.On(a.cfg.Sandbox, a.cfg.Programs, a.cfg.StateDir)
}

// confine decides what restricts a process of a run, and configures its command. What the process asks for beyond the
// settings, and no operator confirmed, refuses the command, and so does a sandbox that is not possible here.
func (a *Activities) confine(cmd *agent.Command, c pipeline.Confinement, asks allow.Request,
	runID, dir string) sandbox.Held {
	host := a.offers()
	held, err := sandbox.Decide(sandbox.Request{
		Mode: c.Sandbox, Alone: c.Sandbox == sandbox.Own, Network: c.Network, OfHost: a.cfg.Sandbox.Mode, Offered: a.cfg.Sandbox.Network,
	}, host)
	if err == nil {
		err = a.bounds().Allow(asks)
	}
	if err == nil {
		held = held.With(sandbox.Named(cmd.Environ()))
		err = a.reachesPassbook(held)
	}
	var supervise []string
	if err == nil {
		supervise, err = a.supervisor()
	}
	if err != nil {
		cmd.Refused = err
		return held
	}
	if !held.Bound() {
		return held
	}
	cmd.Sandbox = &sandbox.Call{
		Held: held, Bwrap: host.Bwrap, Pasta: host.Pasta, Private: host.Private, Delivery: dir, Files: !cmd.Shell,
		Supervisor: supervise, Offered: a.cfg.Sandbox.Network,
		Read: a.cfg.Sandbox.Read, Write: a.cfg.Sandbox.Write, Hidden: append([]string{a.cfg.StateDir, a.cfg.Scratch},
			a.runFolder(runID)...),
	}
	if len(asks.Argv) > 0 && asks.Argv[0] == pipeline.Scripted { // its files of faults and calls are named by variables
		for _, name := range scripted.EnvNames() {
			if file := environ.Value(cmd.Environ(), name); file != "" {
				cmd.Sandbox.Write = append(cmd.Sandbox.Write[:len(cmd.Sandbox.Write):len(cmd.Sandbox.Write)],
					filepath.Dir(file))
			}
		}
	}
	return held
}

// runFolder returns the folder with the directory of a run and its siblings, if this host has recorded it.
func (a *Activities) runFolder(runID string) []string {
	if dir := a.recordedDir(runID); dir != "" {
		return []string{filepath.Dir(dir)}
	}
	return nil
}

// recordedDir returns the directory of a run, if this host has recorded it.
func (a *Activities) recordedDir(runID string) string {
	raw, err := os.ReadFile(filepath.Join(a.cfg.StateDir, "index", run.RootOf(runID)))
	if dir := strings.TrimSpace(string(raw)); err == nil && filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// reachesPassbook refuses the addresses of Passbook and its server: a call that reaches them could command runs.
func (a *Activities) reachesPassbook(held sandbox.Held) error {
	if a.cfg.Own == nil {
		return nil
	}
	own, err := a.cfg.Own()
	if address := held.Opens(own); err == nil && address != "" {
		err = &allow.OwnServerError{Address: address}
	}
	return err
}
