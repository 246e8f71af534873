// Package sandbox limits what the processes of one call can read, write, signal and reach.
//
// It decides on the host of the call which mode is possible, and returns the command line of bubblewrap (bwrap) that
// starts the agent in separate user, mount, process and IPC namespaces. It starts nothing itself, except to examine
// the host. What a program needs outside the call's own directories is one table: see [Programs].
package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Modes. An empty mode of a definition is the default: [Workspace] where the host offers it.
const (
	None      = "none"      // no restriction
	Workspace = "workspace" // the call's directories, tools, build caches; network as configured
	Strict    = "strict"    // the call's directories and the agent's own login; network: none unless configured
)

// Networks of a call. Anything else is a list of addresses.
const (
	Open   = "open" // the network of the host
	Closed = "none" // no network
)

// Request is what a definition and the settings of the host ask for.
type Request struct {
	Mode    string   // of the agent or step; empty: Default
	Default string   // of the settings; empty: Workspace where it is possible
	Network []string // [Open], [Closed], or addresses HOST, HOST:PORT, *.DOMAIN; empty: the mode's default
}

// Held is what restricts a call. It is recorded with the call.
type Held struct {
	Mode    string   `json:"mode"`
	Network []string `json:"network"`
	Why     string   `json:"why,omitempty"` // why the default is not possible on this host
}

// Isolated reports whether the call has a separate network.
func (h Held) Isolated() bool { return h.Mode != None && !slices.Equal(h.Network, []string{Open}) }

// Addresses returns the addresses that an isolated call may reach.
func (h Held) Addresses() []string {
	if !h.Isolated() || slices.Equal(h.Network, []string{Closed}) {
		return nil
	}
	return h.Network
}

// ErrImpossible means that this host does not offer a sandbox that was asked for.
var ErrImpossible = errors.New("this host does not offer it")

// Decide returns what restricts a call on a host with these capabilities. The default mode is [None] if the host
// offers none; a mode or a network that was asked for and is not possible is an error.
func Decide(r Request, h Host) (Held, error) {
	mode := r.Mode
	if mode == "" {
		mode = r.Default
	}
	asked := mode != "" || len(r.Network) > 0 && !slices.Equal(r.Network, []string{Open})
	if mode == "" {
		mode = Workspace
	}
	held := Held{Mode: mode, Network: r.Network}
	if len(held.Network) == 0 {
		held.Network = defaultNetwork(mode)
	}
	if mode == None {
		if held.Network[0] != Open {
			return Held{}, fmt.Errorf("sandbox none: network: %s needs a sandbox; write sandbox: workspace, or "+
				"network: open", strings.Join(held.Network, ", "))
		}
		return held, nil
	}
	switch {
	case h.Problem == "" && held.Isolated() && !h.Isolation:
		return Held{}, fmt.Errorf("sandbox %s: %w: bubblewrap cannot create network namespaces; write network: open",
			mode, ErrImpossible)
	case h.Problem == "":
		return held, nil
	case asked:
		return Held{}, fmt.Errorf("sandbox %s: %w: %s; %s, or write sandbox: none", mode, ErrImpossible, h.Problem,
			h.Fix)
	}
	return Held{Mode: None, Network: []string{Open}, Why: h.Problem}, nil
}

func defaultNetwork(mode string) []string {
	if mode == Strict {
		return []string{Closed}
	}
	return []string{Open}
}

// String describes the restriction in a few words: "workspace, network api.example.com:443".
func (h Held) String() string {
	if h.Mode == None {
		return None
	}
	return h.Mode + ", network " + strings.Join(h.Network, " ")
}
