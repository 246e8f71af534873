package doctor

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/pipeline"
)

// known describes the program of an agent. Checking the login is free; it is only checked if the program's help lists
// the command, because an older version could take the words for a prompt.
type known struct {
	install string
	login   []string // exits with 0 if the user is logged in; nil: no such command
	signIn  string
	keys    []string // variables that replace a login
	file    string   // of a login, in the home; empty: not known
}

func usual() map[string]known {
	return map[string]known{
		"claude": {
			install: "npm install -g @anthropic-ai/claude-code", login: []string{"auth",
				"status"}, signIn: "claude auth login, or set ANTHROPIC_API_KEY",
			keys: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
				"CLAUDE_CODE_USE_BEDROCK",
				"CLAUDE_CODE_USE_VERTEX"},
		},
		"codex": {install: "npm install -g @openai/codex", login: []string{"login", "status"}, signIn: "codex login",
			keys: []string{"CODEX_API_KEY"}},
		"gemini": {install: "npm install -g @google/gemini-cli", keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
			file: ".gemini/oauth_creds.json", signIn: "gemini, or set GEMINI_API_KEY"},
	}
}

// agents checks the programs of the definition's agents, or the well-known ones that are installed. It finds them as
// the calls of the named run do, and otherwise as those of the next start or resume in this terminal.
func (e *examiner) agents(ctx context.Context) {
	e.from = os.Environ()
	if plan, g, ok := e.ofRun(); ok {
		if e.Agents == nil {
			e.Agents = asked(plan.Agents)
		}
		if g.variables != nil && !g.only {
			e.from = g.variables
		}
	}
	e.workersAgents()
	if e.Agents != nil {
		var seen []string
		for _, a := range e.Agents {
			if len(a.Run) > 0 && !slices.Contains(seen, a.Run[0]) {
				seen = append(seen, a.Run[0])
				e.agent(ctx, a)
			}
		}
		return
	}
	found := false
	for _, name := range []string{"claude", "codex", "gemini"} {
		if _, err := environ.LookPath(name, e.from); err == nil {
			found = true
			e.agent(ctx, pipeline.Agent{Run: []string{name}})
		} else if e.OnlyAgents {
			found = true
			e.say(Unchecked, "agents", name, usual()[name].install, "not in PATH")
		}
	}
	if !found {
		e.say(Unchecked, "agents", "agents", e.typed("doctor --config FILE"),
			"neither claude nor codex nor gemini is in PATH; name a pipeline to check its agents")
	}
}

// asked lists the agents whose programs answer these checks safely. Others are only looked up.
func asked(agents []pipeline.Agent) []pipeline.Agent {
	return slices.DeleteFunc(slices.Clone(agents), func(a pipeline.Agent) bool {
		if len(a.Run) == 0 {
			return true
		}
		_, known := usual()[filepath.Base(a.Run[0])]
		return !known && a.Run[0] != pipeline.Scripted
	})
}

func (e *examiner) agent(ctx context.Context, a pipeline.Agent) {
	name := filepath.Base(a.Run[0])
	if a.Run[0] == "scripted" {
		e.ok("agents", name, "built in")
		return
	}
	about, usual := usual()[name]
	path, err := environ.LookPath(a.Run[0], e.from)
	if err != nil {
		fix := about.install
		if fix == "" {
			fix = "install it, or give its full path under agent.run in the pipeline file"
		}
		e.say(Problem, "agents", name, fix, "%s is not in PATH (%v)", a.Run[0], err)
		return
	}
	env := agent.Command{Argv: a.Run, Env: a.Env, Environment: e.from,
		Dir: os.TempDir()}.Environ() // the environment of the agent
	output, err := ask(ctx, env, path, "--version")
	switch {
	case err != nil && usual:
		e.say(Problem, "agents", name, about.install, "%s exists and does not answer --version: %v %s", path, err, output)
		return
	case err != nil:
		e.say(Unchecked, "agents", name, "", "%s exists; it does not answer --version, which is optional", path)
		return
	}
	e.login(ctx, name, about, path, output, env)
}

// login checks whether the agent is logged in, without a paid call.
func (e *examiner) login(ctx context.Context, name string, about known, path, output string, env []string) {
	for _, key := range about.keys {
		if slices.ContainsFunc(env, func(pair string) bool {
			return strings.HasPrefix(pair, key+"=") &&
				pair != key+"="
		}) {
			e.ok("agents", name, "%s: %s, with %s (only a call shows whether it is accepted)", path, output, key)
			return
		}
	}
	home := environ.Value(env, "HOME")
	if _, err := os.Stat(filepath.Join(home, about.file)); about.file != "" && home != "" && err == nil {
		e.ok("agents", name, "%s: %s, with ~/%s (only a call shows whether it is accepted)", path, output, about.file)
		return
	}
	if key := e.unpassed(about, env); key != "" {
		e.say(Warning, "agents", name, "write env: ["+key+"] in the agent of the pipeline file",
			"%s: %s; %s is set, and calls do not get it", path, output, key)
		return
	}
	if about.login == nil || !lists(ctx, env, path, about.login[0]) {
		e.say(Unchecked, "agents", name, "", "%s: %s; only a call shows whether it is logged in", path, output)
		return
	}
	if words, err := ask(ctx, env, path, about.login...); err != nil {
		worst := Problem
		if e.Agents == nil {
			worst = Warning // it may be unused
		}
		e.say(worst, "agents", name, about.signIn, "%s: %s, not logged in (%s)", path, output, words)
		return
	}
	e.ok("agents", name, "%s: %s, logged in", path, output)
}

// unpassed returns a variable that replaces a login, and that the definition does not pass to the agent.
func (e *examiner) unpassed(about known, env []string) string {
	for _, key := range about.keys {
		if about.login == nil && environ.Value(e.from, key) != "" && environ.Value(env, key) == "" {
			return key
		}
	}
	return ""
}

// lists reports whether a program's help lists a command.
func lists(ctx context.Context, env []string, path, command string) bool {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--help")
	cmd.Env = env
	help, err := cmd.Output()
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(help)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == command {
			return true
		}
	}
	return false
}
