package pipeline

import (
	"io/fs"
	"path"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
)

// checkCommands reports commands that name a file beside the definition. A call runs in a separate folder, which has
// the workspace but nothing else of the definition's folder; a notice runs in the system's temporary folder.
func (d *decoder) checkCommands() {
	agents := []location{{"agent", "run"}}
	for _, name := range d.keys(location{"agents"}) {
		agents = append(agents, location{"agents", name, "run"})
	}
	for i := range d.items(location{"notify"}) {
		d.checkCommand(location{"notify"}.item(i).key("run"))
	}
	if d.def.Workspace != nil || len(d.def.Projects) > 0 {
		return
	}
	for _, at := range agents {
		d.checkCommand(at)
	}
	for si, s := range d.def.Stages {
		for pi, p := range s.Steps {
			words := strings.Fields(p.Run)
			if at := d.steps(location{"stages"}.item(si), s).item(pi).key("run"); len(words) > 0 && d.beside(words[0]) {
				d.wrong(at, "names %s, which is beside the pipeline, and a call runs in a separate folder; write its "+
					"absolute path", words[0])
			}
		}
	}
}

func (d *decoder) checkCommand(at location) {
	for i, word := range d.items(at) {
		relative := i == 0 && strings.Contains(word.Value, "/") && !path.IsAbs(word.Value)
		switch {
		case i == 0 && word.Value == Scripted:
			return
		case d.beside(word.Value):
			d.problem(word, "%s names %s, which is beside the pipeline, and a call runs in a separate folder; write "+
				"its absolute path", d.name(at), word.Value)
		case relative:
			d.problem(word, "%s begins with %s, and a call runs in a separate folder; write an absolute path, or a "+
				"program in PATH", d.name(at), word.Value)
		}
	}
}

// beside reports whether a word of a command is the relative path of a file in the definition's folder.
func (d *decoder) beside(word string) bool {
	name := path.Clean(word)
	if word == "" || word[0] == '-' || !fs.ValidPath(name) {
		return false
	}
	info, err := fs.Stat(d.folder, name)
	return err == nil && info.Mode().IsRegular()
}

// checkNetworks reports networks that need a sandbox where there is none.
func (d *decoder) checkNetworks() {
	check := func(at location, c Confinement) {
		if c.Sandbox == SandboxNone && len(c.Network) > 0 {
			d.wrong(at.key("network"), "is %s, and without a sandbox the network is that of the host; write sandbox: "+
				"workspace, or leave network out", strings.Join(c.Network, ", "))
		}
	}
	for _, a := range d.def.Agents {
		check(d.agentAt(a), a.Confinement)
	}
	for si, s := range d.def.Stages {
		for pi, p := range s.Steps {
			check(d.steps(location{"stages"}.item(si), s).item(pi), p.Confinement)
		}
	}
}

// checkUsage reports agents that report what they used: it is not searched for.
func (d *decoder) checkUsage() {
	for _, a := range d.def.Agents {
		if a.Usage != nil && a.Reply != adapter.Text && a.Reply != "" {
			d.wrong(d.agentAt(a).key("usage"), "is for reply: text, and %s reports what a call used; leave it out", a.Reply)
		}
	}
}

// checkBudget reports agents whose cost nothing reports: a budget in USD would never stop them.
func (d *decoder) checkBudget() {
	if b := d.def.Budget; b.Deadline != "" {
		if _, err := ParseDeadline(b.Deadline); err != nil {
			d.wrong(location{"budget", "deadline"}, "cannot be read: %v", err)
		}
	}
	if b := d.def.Budget; b.Tokens > 0 && b.PerPass.Tokens > b.Tokens {
		d.wrong(location{"budget", "per_pass", "tokens"}, "is %d, and the budget of the run is %d; write at most that",
			b.PerPass.Tokens, b.Tokens)
	}
	if d.def.Budget.USD <= 0 {
		return
	}
	if most := d.def.Budget.PerPass.USD; most > d.def.Budget.USD {
		d.wrong(location{"budget", "per_pass", "usd"}, "is %g, and the budget of the run is %g; write at most that", most,
			d.def.Budget.USD)
	}
	for _, a := range d.def.Agents {
		used := slices.ContainsFunc(d.def.Roles, func(r Role) bool {
			return r.Agent == a.Name || slices.Contains(r.Limits.Fallback, a.Name)
		})
		at := d.agentAt(a)
		if !used || a.Price != nil || d.get(at) == nil {
			continue
		}
		const advice = "write price: {input: ..., output: ...}, or drop the budget"
		const setting = "add the model to the setting prices, " + advice
		model := adapter.Model(a.Run)
		known := slices.ContainsFunc(d.priced, func(has func(string) bool) bool { return has(model) })
		switch kind, _ := adapter.Find(a.Reply); {
		case kind.Cost == adapter.ReportsNone && a.Usage != nil && strings.Contains(a.Usage.Find, "(?P<usd>"):
		case kind.Cost == adapter.ReportsNone:
			d.wrong(at, "replies with text, which has no cost, and the budget is %g USD; %s", d.def.Budget.USD, advice)
		case kind.Cost == adapter.ReportsTokens && model != "" && !known:
			d.wrong(at, "reports tokens, the price of model %s is unknown, and the budget is %g USD; %s", model,
				d.def.Budget.USD, setting)
		}
	}
}

func (d *decoder) agentAt(a Agent) location {
	if a.Name == "" {
		return location{"agent"}
	}
	return location{"agents", a.Name}
}

// maxAlternatives bounds the list of words that a pattern can match.
const maxAlternatives = 20

// alternatives lists the texts that the group of a pattern can match; false: they are not a short list of words.
func alternatives(pattern string) ([]string, bool) {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, false
	}
	group := captured(re)
	if group == nil {
		return nil, false
	}
	words, ok := matched(group.Sub[0])
	return words, ok && len(words) > 0
}

func captured(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpCapture {
		return re
	}
	for _, sub := range re.Sub {
		if found := captured(sub); found != nil {
			return found
		}
	}
	return nil
}

// matched lists what an expression of literals, alternatives and short classes matches.
func matched(re *syntax.Regexp) ([]string, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return []string{string(re.Rune)}, re.Flags&syntax.FoldCase == 0
	case syntax.OpEmptyMatch:
		return []string{""}, true
	case syntax.OpCapture:
		return matched(re.Sub[0])
	case syntax.OpQuest:
		words, ok := matched(re.Sub[0])
		return append(words, ""), ok
	case syntax.OpCharClass:
		return classTexts(re.Rune)
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			words, ok := matched(sub)
			if all = append(all, words...); !ok || len(all) > maxAlternatives {
				return nil, false
			}
		}
		return all, true
	case syntax.OpConcat:
		all := []string{""}
		for _, sub := range re.Sub {
			words, ok := matched(sub)
			if all = joined(all, words); !ok || len(all) > maxAlternatives {
				return nil, false
			}
		}
		return all, true
	}
	return nil, false
}

func classTexts(ranges []rune) (all []string, ok bool) {
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if all = append(all, string(r)); len(all) > maxAlternatives {
				return nil, false
			}
		}
	}
	return all, true
}

func joined(begin, end []string) (all []string) {
	for _, a := range begin {
		for _, b := range end {
			all = append(all, a+b)
		}
	}
	return all
}
