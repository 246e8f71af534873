package pipeline

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
)

// Preset is an agent that definitions use by its name. A row has all that differs between the programs.
type Preset struct {
	Name    string // and its program
	Install string // the command that installs it
	// Flags are what a call always has. It works in the sandbox of the call, so it may edit files and run commands.
	Flags []string
	Reply string // format of its output
	// Model, Effort and Allow are the arguments for a model, for its effort, and for the tools that it may use; nil: the
	// program has none.
	Model, Effort func(value string) []string
	Allow         func(tools []string) []string
	Tools         []string // what Allow gets if the definition names none
	Efforts       []string
	Last          []string // after all other arguments
	Env           []string // variables that it may read besides those of every call
	Price         *Price   // of its usual model, where it reports tokens and no cost
	// Alone are the arguments that switch on its own sandbox, and Without those that go then: for a host that has none
	// for calls.
	Alone, Without []string
	// Fixed are options that its output depends on, and Unsafe parts of arguments that switch off a sandbox or permissions,
	// or name programs that its own sandbox does not hold
	Fixed, Unsafe []string
	OnMacOS       bool // Alone is for macOS: on Linux its sandbox needs what that of a call does
}

func option(name string) func(string) []string {
	return func(value string) []string { return []string{name, value} }
}

// Presets are the agents that definitions use by name, the preferred one first.
func Presets() []Preset {
	return []Preset{
		{
			Name: "claude", Install: "npm install -g @anthropic-ai/claude-code", Reply: adapter.ClaudeStream,
			Flags: []string{"-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
				"--permission-mode", "acceptEdits"},
			Model: option("--model"), Effort: option("--effort"), Efforts: []string{"low", "medium", "high", "xhigh", "max"},
			Allow: func(tools []string) []string { return []string{"--allowedTools", strings.Join(tools, ",")} },
			Tools: []string{"Bash"},
			Env: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "AWS_REGION", "AWS_PROFILE",
				"AWS_BEARER_TOKEN_BEDROCK", "CLOUD_ML_REGION", "ANTHROPIC_VERTEX_PROJECT_ID"},
			// hooks of a repository run outside of its sandbox
			Alone: []string{"--setting-sources", "user", "--settings", `{"sandbox":{"enabled":true,"failIfUnavailable":true,` +
				`"autoAllowBashIfSandboxed":true,"allowUnsandboxedCommands":false}}`},
			OnMacOS: true,
			Fixed:   []string{"-p", "--print", "--output-format", "--input-format", "--verbose", "--include-partial-messages"},
			Unsafe: []string{"dangerously-skip-permissions", "bypassPermissions", "--settings", "--setting-sources",
				"--mcp-config", "--plugin-dir"},
		},
		{
			Name: "codex", Install: "npm install -g @openai/codex", Reply: adapter.CodexJSONL,
			Flags: []string{"exec", "--json", "--skip-git-repo-check", codexUnsandboxed},
			Model: option("--model"), Efforts: []string{"minimal", "low", "medium", "high", "xhigh"},
			Effort: func(level string) []string { return []string{"-c", "model_reasoning_effort=" + level} },
			Last:   []string{"-"},
			Env:    []string{"OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"},
			Price:  &Price{Input: 2, Output: 10},
			Alone:  []string{"--sandbox", "workspace-write"}, Without: []string{codexUnsandboxed},
			Fixed: []string{"exec", "--json"},
			Unsafe: []string{"--dangerously-", "--yolo", "danger-full-access", "sandbox_mode", "sandbox_permissions",
				"mcp_servers", "notify", "profile"},
		},
		{
			Name: "gemini", Install: "npm install -g @google/gemini-cli", Reply: adapter.GeminiJSON,
			Flags: []string{"--skip-trust", "--approval-mode", "yolo", "--output-format", "json"},
			Model: option("--model"),
			Last:  []string{"-p", "Do what is asked above."},
			Env: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
				"GOOGLE_GENAI_USE_VERTEXAI"},
			Price: &Price{Input: 2, Output: 10},
			Alone: []string{"--sandbox"}, OnMacOS: true,
			Fixed:  []string{"--output-format", "-o"},
			Unsafe: []string{"--no-sandbox", "--sandbox=false"},
		},
	}
}

// codexUnsandboxed switches off the sandbox of Codex, which cannot start in that of a call.
const codexUnsandboxed = "--dangerously-bypass-approvals-and-sandbox"

// PresetOf returns the preset with a name.
func PresetOf(name string) (Preset, bool) {
	all := Presets()
	i := slices.IndexFunc(all, func(p Preset) bool { return p.Name == name })
	if i < 0 {
		return Preset{}, false
	}
	return all[i], true
}

func presetNames() (names []string) {
	for _, p := range Presets() {
		names = append(names, p.Name)
	}
	return names
}

// Choice is what a definition chooses of a preset.
type Choice struct {
	Model  string `is:"text" eg:"opus"` // The model, as the program calls it; for an agent that is used by name.
	Effort string `is:"text" eg:"high"` // How much the model reasons, as the program calls it.
	// Tools that the agent may use without asking, as the program calls them; by default Bash.
	Allow []string `is:"text" eg:"['Bash(npm test)']"`
	Args  []string `is:"in=agent,agents text" eg:"[--add-dir, /data]"` // More arguments of the program.
}

// over returns a choice whose values replace those of another one.
func (c Choice) over(base Choice) Choice {
	if c.Model == "" {
		c.Model = base.Model
	}
	if c.Effort == "" {
		c.Effort = base.Effort
	}
	if c.Allow == nil {
		c.Allow = base.Allow
	}
	if c.Args == nil {
		c.Args = base.Args
	}
	return c
}

func (c Choice) empty() bool {
	return c.Model == "" && c.Effort == "" && c.Allow == nil && c.Args == nil
}

// Argv is the command of a preset.
func (p Preset) Argv(c Choice) []string {
	argv := append([]string{p.Name}, p.Flags...)
	if c.Model != "" {
		argv = append(argv, p.Model(c.Model)...)
	}
	if c.Effort != "" && p.Effort != nil {
		argv = append(argv, p.Effort(c.Effort)...)
	}
	if tools := c.Allow; p.Allow != nil {
		if tools == nil {
			tools = p.Tools
		}
		argv = append(argv, p.Allow(tools)...)
	}
	return slices.Concat(argv, c.Args, p.Last)
}

// Alone returns the command of an agent that is to use its own sandbox; false: it has none on this operating system.
func (a Agent) Alone(system string) ([]string, bool) {
	p, known := PresetOf(a.Use)
	if !known || len(a.Run) == 0 || len(p.Alone) == 0 || p.OnMacOS && system != "darwin" {
		return nil, false
	}
	rest := slices.DeleteFunc(slices.Clone(a.Run[1:]), func(arg string) bool { return slices.Contains(p.Without, arg) })
	at := len(rest) - len(p.Last)
	return slices.Concat(a.Run[:1], rest[:at], p.Alone, rest[at:]), true
}

// Unsafe returns the arguments of an agent that is used by name which switch off a sandbox or permissions, or name programs
// that its own sandbox does not hold.
func (a Agent) Unsafe() (all []string) {
	p, _ := PresetOf(a.Use)
	for _, word := range a.Run {
		if !slices.Contains(p.Flags, word) && slices.ContainsFunc(p.Unsafe, func(part string) bool { return strings.Contains(word, part) }) {
			all = append(all, word)
		}
	}
	return all
}

// use completes an agent of a preset: what the definition writes itself stays.
func (a *Agent) use(p Preset, c Choice) {
	a.Use, a.Choice, a.Run = p.Name, c, p.Argv(c)
	if a.Reply == "" {
		a.Reply = p.Reply
	}
	if a.Price == nil {
		a.Price = p.Price
	}
	for _, name := range p.Env {
		if !slices.Contains(a.Env, name) {
			a.Env = append(a.Env, name)
		}
	}
}

// presets completes the agents that the definition uses by name, and makes one for each role that chooses otherwise.
func (d *decoder) presets() {
	def := d.def
	for i := range def.Agents {
		a := &def.Agents[i]
		if a.Use == "" {
			continue
		}
		at := d.agentAt(*a)
		other := slices.IndexFunc(def.Agents, func(o Agent) bool { return o.Name == a.Use && o.Name != a.Name })
		if p, known := PresetOf(a.Use); known {
			d.checkChoice(at, p, a.Choice)
			a.use(p, a.Choice)
		} else if other < 0 || def.Agents[other].Use != "" && len(def.Agents[other].Run) == 0 && a.Name != "" {
			d.wrong(at.key("use"), "is %q, neither an agent that Passbook knows nor one of agents; %s", a.Use,
				suggest(a.Use, append(presetNames(), d.keys(location{"agents"})...)))
		}
	}
	for _, r := range def.Roles {
		at := location{"roles", r.Name, "agent"}
		if p, known := PresetOf(r.Agent); known && d.get(at) != nil &&
			!slices.ContainsFunc(def.Agents, func(a Agent) bool { return a.Name == r.Agent }) {
			a := Agent{Name: r.Agent}
			a.use(p, Choice{})
			def.Agents = append(def.Agents, a)
		}
	}
	for i := range def.Agents { // names of other agents, which are complete now
		a := &def.Agents[i]
		if _, known := PresetOf(a.Use); a.Use == "" || known {
			continue
		}
		if j := slices.IndexFunc(def.Agents, func(o Agent) bool { return o.Name == a.Use && len(o.Run) > 0 }); j >= 0 {
			name := a.Name
			*a = def.Agents[j]
			a.Name = name
		}
	}
	for i := range def.Roles {
		d.chosen(&def.Roles[i])
	}
}

// chosen makes the agent of a role that chooses another model, effort or tools than its agent.
func (d *decoder) chosen(r *Role) {
	if r.Choice.empty() {
		return
	}
	at := location{"roles", r.Name}
	i := slices.IndexFunc(d.def.Agents, func(a Agent) bool { return a.Name == r.Agent })
	if i < 0 {
		return // reported by another check
	}
	p, known := PresetOf(d.def.Agents[i].Use)
	if !known {
		for _, key := range []string{"model", "effort", "allow"} {
			if d.get(at.key(key)) != nil {
				d.wrong(at.key(key), "is for an agent that is used by name (%s); write it into the command of the agent",
					strings.Join(presetNames(), ", "))
			}
		}
		return
	}
	d.checkChoice(at, p, r.Choice)
	own := d.def.Agents[i]
	own.Env = slices.Clone(own.Env)
	own.use(p, r.Choice.over(own.Choice))
	own.Name = strings.TrimPrefix(own.Name+"-"+r.Name, "-")
	for slices.ContainsFunc(d.def.Agents, func(a Agent) bool { return a.Name == own.Name }) {
		own.Name += "-agent"
	}
	d.def.Agents = append(d.def.Agents, own)
	r.Agent = own.Name
}

// checkChoice reports what a program does not offer.
func (d *decoder) checkChoice(at location, p Preset, c Choice) {
	switch {
	case c.Effort != "" && p.Effort == nil:
		d.wrong(at.key("effort"), "is %q, and %s has no such setting; leave it out", c.Effort, p.Name)
	case c.Effort != "" && !slices.Contains(p.Efforts, c.Effort):
		d.wrong(at.key("effort"), "is %q; %s", c.Effort, suggest(c.Effort, p.Efforts))
	}
	own := map[string]string{}
	for key, option := range map[string]func(string) []string{"model": p.Model, "effort": p.Effort} {
		if option != nil {
			own[option("")[0]] = key
		}
	}
	for i, arg := range c.Args {
		name, _, _ := strings.Cut(arg, "=")
		switch key := own[name]; {
		case key != "" && strings.HasPrefix(name, "--"):
			d.wrong(at.key("args").item(i), "is %s; write %s: VALUE instead", arg, key)
		case slices.Contains(p.Fixed, name):
			d.wrong(at.key("args").item(i), "is %s, which %s gets already; leave it out", arg, p.Name)
		}
	}
	if c.Allow != nil && p.Allow == nil {
		d.wrong(at.key("allow"), "lists tools, and %s has no such setting; leave it out", p.Name)
	}
}
