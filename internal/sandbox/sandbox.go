// Package sandbox limits what the processes of one call can read, write, signal and reach.
//
// It decides on the host of the call which mode is possible, and returns the command line of bubblewrap (bwrap) that
// starts the agent in separate user, mount, process and IPC namespaces. It starts nothing itself, except to examine
// the host. What a program needs outside the call's own directories is one table: see [Programs].
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/supervisor"
)

// Modes. An empty mode of a definition is that of the settings.
const (
	None      = "none"      // no restriction
	Workspace = "workspace" // the call's directories, tools, build caches
	Strict    = "strict"    // the call's directories and the agent's own login; network: none unless configured
	Own       = "own"       // the agent's own sandbox, on a host that offers none; no definition asks for it
)

// Networks of a call. Everything else is an address: HOST, HOST:PORT, *.DOMAIN.
const (
	HostNetwork = "host"     // that of the host; only its settings offer it
	Internet    = "internet" // public addresses
	Closed      = "none"     // no network
)

// Request is what a definition asks for, and the settings of the host.
type Request struct {
	Mode    string   // of the agent or step; empty: that of the settings
	Network []string // of the agent or step; empty: that of the settings, and [Closed] in mode [Strict]
	Alone   bool     // the agent's own sandbox is on

	// of the settings; empty: [Workspace] and [Internet]
	OfHost  string
	Offered []string
}

// Held is what restricts a call. It is recorded with the call.
type Held struct {
	Mode    string   `json:"mode"`
	Network []string `json:"network"`
}

// Isolated reports whether the call has a separate network.
func (h Held) Isolated() bool { return h.Bound() && !slices.Contains(h.Network, HostNetwork) }

// Bound reports whether Passbook restricts the call.
func (h Held) Bound() bool { return h.Mode != None && h.Mode != Own }

// Addresses returns what an isolated call may reach.
func (h Held) Addresses() []string {
	if !h.Isolated() || slices.Equal(h.Network, []string{Closed}) {
		return nil
	}
	return h.Network
}

// With adds addresses that the operator named to what an isolated call may reach.
func (h Held) With(named []string) Held {
	if len(h.Addresses()) > 0 {
		h.Network = slices.Clone(h.Network)
		for _, address := range named {
			if !slices.Contains(h.Network, address) {
				h.Network = append(h.Network, address)
			}
		}
	}
	return h
}

// Opens returns an address that a call may reach and that leads to one of these servers, or "".
func (h Held) Opens(servers []string) string {
	for _, address := range h.Addresses() {
		for _, server := range servers {
			if supervisor.Opens(address, server) {
				return address
			}
		}
	}
	return ""
}

// Offered returns the network that settings offer.
func Offered(settings []string) []string {
	if len(settings) == 0 {
		return []string{Internet}
	}
	return settings
}

// ErrImpossible means that this host does not offer the sandbox of a process.
var ErrImpossible = errors.New("this host does not offer it")

// Decide returns what restricts a process on a host with these capabilities. A sandbox that is not possible is an
// error: no process runs without one unless the settings, or an operator, say so.
func Decide(r Request, h Host) (Held, error) {
	held := Held{Mode: cmp.Or(r.Mode, r.OfHost, Workspace), Network: r.Network}
	if slices.Contains(r.Network, HostNetwork) {
		return Held{}, errors.New("network: host is a word of the settings (sandbox.network), not of a definition")
	}
	if r.Alone {
		return Held{Mode: Own, Network: []string{HostNetwork}}, nil
	}
	if held.Mode == Own {
		return Held{}, errors.New("sandbox: own is no mode that a definition can ask for")
	}
	if held.Mode == None {
		if len(r.Network) > 0 {
			return Held{}, fmt.Errorf("sandbox none: network: %s needs a sandbox; write sandbox: workspace, or leave "+
				"network out", strings.Join(r.Network, ", "))
		}
		return Held{Mode: None, Network: []string{HostNetwork}}, nil
	}
	if len(held.Network) == 0 {
		held.Network = Offered(r.Offered)
		if held.Mode == Strict {
			held.Network = []string{Closed}
		}
	}
	switch {
	case h.Problem != "":
		return Held{}, fmt.Errorf("sandbox %s: %w: %s; %s; or, if agents may do all that you may, set sandbox.mode: none "+
			"in the settings of this host", held.Mode, ErrImpossible, h.Problem, h.Fix)
	case held.Isolated() && !h.Isolation:
		return Held{}, fmt.Errorf("sandbox %s: %w: bubblewrap cannot create network namespaces; allow them, or set "+
			"sandbox.network: host in the settings of this host", held.Mode, ErrImpossible)
	}
	return held, nil
}

// Named returns the addresses of the services that variables of an operator name: APIs and registries.
func Named(environ []string) (all []string) {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		if !slices.Contains(named, name) {
			continue
		}
		for _, text := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == '|' || r == ' ' }) {
			u, err := url.Parse(text)
			if err != nil || u.Hostname() == "" {
				continue
			}
			port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
			if address := net.JoinHostPort(u.Hostname(), port); port != "" && !slices.Contains(all, address) {
				all = append(all, address)
			}
		}
	}
	return all
}

// ModelsAndRegistries are the addresses that calls reach about a task of an account without write access, besides those of
// Named: public APIs of models, and public package registries.
var ModelsAndRegistries = []string{
	"*.anthropic.com", "claude.ai", "*.claude.ai", "*.openai.com", "chatgpt.com", "*.chatgpt.com", "*.googleapis.com",
	"registry.npmjs.org", "registry.yarnpkg.com", "pypi.org", "files.pythonhosted.org", "proxy.golang.org", "sum.golang.org",
	"index.crates.io", "static.crates.io", "crates.io", "repo.maven.apache.org", "rubygems.org", "index.rubygems.org",
}

// named are the variables of model APIs and registries. A definition may pass others on, which open nothing.
var named = []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "OPENAI_BASE_URL",
	"GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "npm_config_registry", "NPM_CONFIG_REGISTRY", "YARN_NPM_REGISTRY_SERVER", "PIP_INDEX_URL",
	"PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX", "GOPROXY", "GOSUMDB",
	"CARGO_REGISTRIES_CRATES_IO_INDEX"}

// String describes the restriction in a few words: "workspace, network api.example.com:443".
func (h Held) String() string {
	switch h.Mode {
	case None:
		return None
	case Own:
		return "that of the agent"
	}
	return h.Mode + ", network " + strings.Join(h.Network, " ")
}
