package pipeline

import (
	"regexp"

	"go.yaml.in/yaml/v3"
)

// Scripted is the first word of an agent's command that stands for Passbook's own offline agent.
const Scripted = "scripted"

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// agents reads the default agent and the named ones.
func (d *decoder) agents(o object) {
	if !o.has("agent") && !o.has("agents") {
		d.problem(o.node, "agent is missing in %s; write agent: {run: [COMMAND, ...], reply: text}", o.path)
	}
	if n := o.values["agent"]; n != nil {
		d.def.Agents = append(d.def.Agents, d.agent(n, "", "agent"))
	}
	if n := o.values["agents"]; n != nil {
		d.named(n, "agents", "agent", func(key, value *yaml.Node, path string) {
			d.def.Agents = append(d.def.Agents, d.agent(value, key.Value, path))
		})
	}
}

func (d *decoder) agent(n *yaml.Node, name, path string) Agent {
	a := Agent{Name: name}
	o, ok := d.object(n, path, "run", "reply", "price", "env")
	if !ok {
		return a
	}
	if run := o.need("run", "run: [COMMAND, ARGUMENT, ...]"); run != nil {
		a.Run = d.texts(run, o.at("run"))
	}
	a.Reply = d.reply(o, a.Run)
	if price := o.values["price"]; price != nil {
		a.Price = d.price(price, o.at("price"))
	}
	a.Env = d.env(o)
	return a
}

func (d *decoder) reply(o object, run []string) string {
	switch {
	case o.has("reply"):
		return o.oneOf("reply", "claude-json", "text")
	case len(run) > 0 && run[0] == Scripted:
		return "claude-json"
	default:
		o.need("reply", "reply: claude-json or reply: text")
		return ""
	}
}

func (d *decoder) price(n *yaml.Node, path string) *Price {
	p := &Price{}
	o, ok := d.object(n, path, "input", "output")
	if ok && o.need("input", "input: USD per million tokens") != nil {
		o.number("input", &p.Input, 0, 1e6)
	}
	if ok && o.need("output", "output: USD per million tokens") != nil {
		o.number("output", &p.Output, 0, 1e6)
	}
	return p
}

func (d *decoder) env(o object) []string {
	env := o.texts("env")
	for _, e := range env {
		if !envName.MatchString(e) {
			d.problemAt(o.line("env"), "%s has %q, not the name of an environment variable; write names only, such as [API_KEY]", o.at("env"), e)
		}
	}
	return env
}
