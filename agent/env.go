package agent

import (
	"os"
	"slices"
	"sort"
	"strings"
)

// usual are the variables every agent may see; usualPrefixes the families of them: TLS, and the agent's own configuration.
var (
	usual = []string{
		"PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "NODE_EXTRA_CA_CERTS",
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	}
	usualPrefixes = []string{"SSL_", "ANTHROPIC_", "CLAUDE_"}
	// never are the marks of a surrounding agent session: with them set, claude refuses to start or behaves as a nested one.
	never = []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"}
	fixed = map[string]string{"DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1"}
)

// Environ is the environment of the child, sorted: what is allowed of From, the fixed settings, PWD, then ExtraEnv.
func (c Command) Environ() []string {
	from := c.From
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
	for name, value := range fixed {
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
		if !slices.Contains(never, name) {
			env = append(env, name+"="+value)
		}
	}
	sort.Strings(env)
	return env
}

// EnvNames are the names in Environ, sorted. They may be recorded; values may be secrets.
func (c Command) EnvNames() []string {
	var names []string
	for _, pair := range c.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Allowed are the variables of an environment that agents may see, with these names beside the usual ones.
func Allowed(from, names []string) []string {
	c := Command{Env: names}
	var out []string
	for _, pair := range from {
		name, _, ok := strings.Cut(pair, "=")
		if ok && c.allows(name) && !slices.Contains(never, name) {
			out = append(out, pair)
		}
	}
	sort.Strings(out)
	return out
}

func (c Command) allows(name string) bool {
	hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	return slices.Contains(usual, name) || slices.Contains(c.Env, name) || slices.ContainsFunc(usualPrefixes, hasPrefix)
}
