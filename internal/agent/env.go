package agent

import (
	"os"
	"slices"
	"sort"
	"strings"
)

// usual are the variables that every agent gets; usualPrefixes also cover TLS and the agent's own configuration.
var (
	defaultEnv = []string{
		"PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
	defaultEnvPrefixes = []string{"SSL_"}
	// agentEnvPrefixes are for agents only: a shell command runs what an agent has written
	agentEnvPrefixes = []string{"ANTHROPIC_", "CLAUDE_"}
	// deniedEnv are the variables of a surrounding agent session: with them, claude refuses to start or behaves as a
	// nested session.
	deniedEnv = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"}
	fixedEnv  = map[string]string{"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
)

// Environ returns the environment of the child, sorted: the allowed part of From, fixed settings, PWD, then
// ExtraEnv.
func (c Command) Environ() []string {
	from := c.Environment
	if from == nil {
		from = os.Environ()
	}
	values := map[string]string{}
	for _, pair := range from {
		name, value, ok := strings.Cut(pair, "=")
		if ok && c.allows(name) {
			values[name] = value
		}
	}
	for name, value := range fixedEnv {
		values[name] = value
	}
	values["PWD"] = c.Dir
	for name, value := range c.ExtraEnv {
		values[name] = value
	}
	if c.Mark != "" {
		values[MarkEnv] = c.Mark
	}
	var env []string
	for name, value := range values {
		if !slices.Contains(deniedEnv, name) {
			env = append(env, name+"="+value)
		}
	}
	sort.Strings(env)
	return env
}

// EnvNames returns the names in Environ, sorted. They may be recorded; values may be secrets.
func (c Command) EnvNames() []string {
	var names []string
	for _, pair := range c.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// AllowedEnv returns the variables of an environment that agents get, including these names.
func AllowedEnv(from, names []string) []string {
	c := Command{Env: names}
	var out []string
	for _, pair := range from {
		name, _, ok := strings.Cut(pair, "=")
		if ok && c.allows(name) && !slices.Contains(deniedEnv, name) {
			out = append(out, pair)
		}
	}
	sort.Strings(out)
	return out
}

func (c Command) allows(name string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(defaultEnv, name) || slices.Contains(c.Env, name) ||
		slices.ContainsFunc(defaultEnvPrefixes, hasPrefix) ||
		!c.Shell && slices.ContainsFunc(agentEnvPrefixes, hasPrefix)
}
