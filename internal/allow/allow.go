// Package allow compares what the processes of a definition ask for with what the settings of a host allow, and keeps
// what an operator confirmed. A definition may restrict its processes more than the settings do; what it asks beyond
// them is a request, which an operator confirms for a repository and the digest of the definition.
package allow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/supervisor"
	"github.com/passbook-run/passbook/pipeline"
)

// Bounds is what the settings of a host allow to every process that a run starts.
type Bounds struct {
	Mode     string   // the weakest sandbox
	Network  []string // what processes may reach
	Programs []string // of policy.agents; empty: any
	StateDir string   // has the confirmations; empty: nothing is confirmed
}

// On returns what the settings of a host allow.
func On(s config.Sandbox, programs []string, stateDir string) Bounds {
	return Bounds{Mode: cmp.Or(s.Mode, sandbox.Workspace), Network: sandbox.Offered(s.Network), Programs: programs,
		StateDir: stateDir}
}

// Request is what one process of a definition asks for beyond the settings; without Asks nothing.
type Request struct {
	What string   `json:"what"` // "agent claude"
	Argv []string `json:"argv"`
	Asks []string `json:"asks"` // "sandbox: none"
}

func (r Request) String() string {
	return fmt.Sprintf("%s asks for %s: %s", r.What, strings.Join(r.Asks, ", "), shell.Line(r.Argv...))
}

// OfAgent returns what an agent asks for.
func (b Bounds) OfAgent(a pipeline.Agent) Request {
	r := b.request(strings.TrimSpace("agent "+a.Name), a.Run, a.Confinement)
	if unsafe := a.Unsafe(); len(unsafe) > 0 {
		r.Asks = append(r.Asks, "args: "+strings.Join(unsafe, ", "))
	}
	return r
}

// Alone returns an agent as a host calls it: one that is used by name has its own sandbox, if the host offers none, and
// neither the definition nor the settings ask for a mode.
func Alone(a pipeline.Agent, ofHost string, host sandbox.Host) pipeline.Agent {
	if argv, has := a.Alone(runtime.GOOS); has && a.Sandbox == "" && ofHost == "" && host.Problem != "" {
		a.Run, a.Sandbox = argv, sandbox.Own
	}
	return a
}

// OfCommand returns what a command of a definition asks for. It is no agent: where the settings list the programs of
// agents, each command is a request.
func (b Bounds) OfCommand(what string, argv []string, c pipeline.Confinement) Request {
	r := b.request(what, argv, c)
	if len(b.Programs) > 0 {
		r.Asks = append(r.Asks, "a program that policy.agents does not list")
	}
	return r
}

// OfStep returns what a step of kind run asks for.
func (b Bounds) OfStep(s pipeline.PlanStep) Request {
	return b.OfCommand("the command of step "+s.Key, s.ShellArgv(), s.Confinement)
}

// OfReceiver returns what the command of a receiver asks for.
func (b Bounds) OfReceiver(n pipeline.Notify) Request {
	return b.OfCommand("a receiver of notices", n.Run, n.Confinement)
}

// OfInstaller returns what the command asks for that installs a browser: it runs without a sandbox.
func (b Bounds) OfInstaller(argv []string) Request {
	return b.OfCommand("the installer of a browser", argv, pipeline.Confinement{Sandbox: sandbox.None})
}

func (b Bounds) request(what string, argv []string, c pipeline.Confinement) Request {
	r := Request{What: what, Argv: argv}
	if rank(cmp.Or(c.Sandbox, b.Mode)) < rank(b.Mode) {
		r.Asks = append(r.Asks, "sandbox: "+c.Sandbox)
	}
	if slices.ContainsFunc(c.Network, b.beyond) {
		r.Asks = append(r.Asks, "network: "+strings.Join(c.Network, ", "))
	}
	return r
}

// rank orders the modes of a sandbox by what they hold.
func rank(mode string) int {
	return slices.Index([]string{sandbox.None, sandbox.Workspace, sandbox.Strict}, mode)
}

// beyond reports whether an address is not one that the settings offer: it is not listed there, and is one of this host
// or a private network, or the settings do not offer the Internet.
func (b Bounds) beyond(address string) bool {
	if address == sandbox.Closed || b.Mode == sandbox.None || slices.Contains(b.Network, sandbox.HostNetwork) ||
		slices.Contains(b.Network, address) {
		return false
	}
	name := address
	if host, _, err := net.SplitHostPort(address); err == nil {
		name = host
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return !slices.Contains(b.Network, sandbox.Internet) || strings.EqualFold(name, "localhost") ||
		err == nil && !supervisor.Public(ip)
}

// OwnServerError is an address of Passbook that a call would reach.
type OwnServerError struct{ Address string }

func (e *OwnServerError) Error() string {
	return fmt.Sprintf("network: %s leads to Passbook or its Temporal server, which no call may reach: remove it from network, "+
		"from sandbox.network of the settings, or from the variable that names it", e.Address)
}

// Requests lists what the processes of a plan ask for, each once.
func (b Bounds) Requests(p *pipeline.Plan) (all []Request) {
	add := func(r Request) {
		if len(r.Asks) > 0 && !slices.ContainsFunc(all, r.same) {
			all = append(all, r)
		}
	}
	for _, a := range p.Agents {
		add(b.OfAgent(a))
	}
	for _, stage := range p.Stages {
		for _, round := range stage.Rounds {
			for _, step := range round.Steps {
				switch {
				case step.Kind == pipeline.KindRun:
					add(b.OfStep(step))
				case step.Shots != nil && len(step.Shots.Install) > 0:
					add(b.OfInstaller(step.Shots.Install))
				}
			}
		}
	}
	for _, n := range p.Notify {
		if len(n.Run) > 0 {
			add(b.OfReceiver(n))
		}
	}
	return all
}

func (r Request) same(other Request) bool {
	return slices.Equal(r.Argv, other.Argv) && slices.Equal(r.Asks, other.Asks)
}

// Confirmation is what an operator confirmed.
type Confirmation struct {
	Version    int       `json:"version"`
	Repository string    `json:"repository"` // empty: the pipeline works on none
	Digest     string    `json:"digest"`     // of the definition and the files that it reads
	Definition string    `json:"definition"` // its file
	At         string    `json:"at"`
	Requests   []Request `json:"requests"`
}

// version is that of the files of confirmations.
const version = 1

// folder is that of the confirmations in the state directory.
const folder = "allowed"

func (c Confirmation) file(stateDir string) string {
	return filepath.Join(stateDir, folder, fmt.Sprintf("%.16s-%.16s.json", disk.Digest([]byte(c.Repository)), c.Digest))
}

// Confirm records a confirmation, and returns its file.
func (b Bounds) Confirm(c Confirmation) (file string, err error) {
	c.Version, file = version, c.file(b.StateDir)
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	disk := disk.Disk{} // a worker may read at the same time
	if err := disk.Mkdir(filepath.Dir(file), 0o700); err != nil {
		return "", fmt.Errorf("record what was confirmed: %w", err)
	}
	return file, disk.WriteFile(file, append(raw, '\n'), 0o600)
}

// Confirmed reports whether all requests were confirmed for the repository and the digest.
func (b Bounds) Confirmed(c Confirmation) (bool, error) {
	if b.StateDir == "" { // not the current folder
		return false, nil
	}
	found, err := read(c.file(b.StateDir))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && found.Repository == c.Repository && found.Digest == c.Digest && found.has(c.Requests), err
}

func (c Confirmation) has(all []Request) bool {
	return !slices.ContainsFunc(all, func(r Request) bool { return !slices.ContainsFunc(c.Requests, r.same) })
}

// Allow returns why a worker of this host may not start a process; nil: an operator confirmed it for some repository,
// which the start of the run has compared.
func (b Bounds) Allow(r Request) error {
	if len(r.Asks) == 0 {
		return nil
	}
	var files []string
	if b.StateDir != "" {
		var err error
		if files, err = filepath.Glob(filepath.Join(b.StateDir, folder, "*.json")); err != nil {
			return err
		}
	}
	for _, file := range files {
		if c, err := read(file); err == nil && c.has([]Request{r}) {
			return nil
		}
	}
	return fmt.Errorf("the settings of this host do not allow it: %s; to allow it here: starter allow FILE, with the "+
		"pipeline's definition", r)
}

func read(file string) (c Confirmation, err error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, fmt.Errorf("read the confirmation %s: %w; remove it, and confirm again", file, err)
	}
	if c.Version != version {
		return c, fmt.Errorf("read the confirmation %s: it has version %d, and this program knows %d", file, c.Version, version)
	}
	return c, nil
}
