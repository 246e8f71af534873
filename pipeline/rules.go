package pipeline

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// rule is about keys of one type that go together, or do not.
type rule struct {
	of any // a value of the type
	// Words that are all true: KEY is there, !KEY is not, KEY=A|B has one of these values, !KEY=A|B has not; "or" between
	// two lists of words. A key can have a path, where * is each item: roles.*.prompt.
	when string

	one  string // exactly one of these keys has to be there
	any  string // at least one
	need string // all
	not  string // none; KEY=A|B: not with these values; KEY!=A|B: only with these; KEY~X: only a text that fits X, for editors
	says string // the message; empty: that of the form
}

const (
	otherCheck   = "does not go with a check of this name; leave it out"
	builtinCheck = "non-empty|minimum-length|html-present|html-complete|container-width"
	wrongSteps   = "does not go with this stage: one with for_each has passes, any other has steps; write "
	ofRun        = "goes with run; leave it out"
	ofAsk        = "id see order limits if_failing effect env sandbox network"
	noPictures   = "takes pictures, and the pipeline has no artifact; write artifact: {file: NAME, seed: PATH} at the top"
	orderedSets  = "are of the files of a set, and the stage has no for_each; drop orders or write for_each: corpus"
	ofProject    = "does not go with projects; write it in a project's pipeline"
)

// rules are all rules.
var rules = []rule{
	{of: Definition{}, when: "!projects", need: "roles"},
	{of: Definition{}, when: "!projects", any: "agent agents"},
	{of: Definition{}, when: "projects", not: "workspace", says: "does not go with projects; each project's pipeline has its own workspace"},
	{of: Definition{}, when: "projects", not: "delivery",
		says: "does not go with projects; each project's pipeline defines where its changes go"},
	{of: Definition{}, when: "projects", not: "artifact corpus", says: ofProject},
	{of: Definition{}, when: "projects", not: "kind", says: "does not go with projects; an acceptance question follows their stages"},
	{of: Definition{}, when: "agents !agent", need: "roles.*.agent",
		says: "names no agent, and there is no default one; write agent: with one of agents"},
	{of: Definition{}, when: "artifact", not: "workspace", says: "cannot be combined with an artifact; keep the one that the passes revise"},
	{of: Definition{}, when: "!artifact", not: "roles.*.gives=artifact",
		says: "is artifact, and the pipeline has none; write artifact: {file: NAME, seed: PATH} at the top"},
	{of: Definition{}, when: "!artifact", not: "stages.*.steps.*.screenshots stages.*.passes.*.screenshots", says: noPictures},
	{of: Definition{}, when: "!workspace", not: "snapshots", says: "are of a workspace, and the pipeline has none; " +
		"write workspace: {git: worktree} or {dir: FOLDER}, or leave snapshots out"},
	{of: Definition{}, when: "!workspace", not: "roles.*.gives=changes",
		says: "is changes, and the pipeline has no workspace; write workspace: {git: worktree} at the top"},
	{of: Definition{}, when: "!workspace.git or workspace.dir", not: "delivery",
		says: "needs a git workspace; write workspace: {git: worktree}, or leave delivery out"},
	{of: Definition{}, when: "!delivery.to=pull_request", not: "after",
		says: "follows a pull request, and the pipeline opens none; write delivery: {to: pull_request}"},
	{of: Definition{}, when: "kind=planning|research", not: "delivery",
		says: "does not go with a pipeline of kind planning or research; leave kind or delivery out"},
	{of: Definition{}, when: "!corpus", not: "stages.*.for_each",
		says: "goes through the corpus, and the pipeline has none; write corpus: {NAME: {theme: ..., files: [...]}} at the top"},

	{of: Agent{}, one: "run use"},
	{of: Agent{}, when: "run", not: "model effort allow args"},
	{of: Agent{}, when: "use", not: "reply usage"},
	{of: Agent{}, when: "run !use !run.0=scripted", need: "reply"},

	{of: Budget{}, any: "usd tokens calls hours deadline"},

	{of: Workspace{}, one: "git dir"},
	{of: Workspace{}, when: "!git", not: "dirty", says: "applies to a git checkout; leave it out, or write git: worktree"},

	{of: Notify{}, one: "run webhook webhook_env"},
	{of: Notify{}, when: "!run", not: "env sandbox network", says: ofRun},
	{of: Notify{}, when: "!webhook !webhook_env", not: "secret_env", says: "goes with webhook; leave it out"},

	{of: Delivery{}, when: "!fresh or branch or commit or paths or message", need: "to"},
	{of: Delivery{}, when: "to=checkout", not: "branch",
		says: "goes with to: branch; a delivery to the checkout takes the branch that is checked out there"},
	{of: Delivery{}, when: "to=branch", not: "commit", says: "goes with to: checkout; a branch always gets a commit"},

	{of: Delivery{}, when: "to=pull_request", not: "branch", says: "goes with to: branch; a pull request has the branch of the run"},
	{of: Delivery{}, when: "to=pull_request", not: "commit", says: "goes with to: checkout; a pull request has the commits of the run"},
	{of: Delivery{}, when: "to=pull_request", not: "paths", says: "goes with to: branch or checkout; a pull request has all changes"},
	{of: Delivery{}, when: "!to=pull_request", not: "base draft reviewers", says: "goes with to: pull_request; leave it out"},

	{of: Check{}, when: "name=non-empty|html-present|html-complete", not: "over between any none", says: otherCheck},
	{of: Check{}, when: "name=minimum-length", not: "between any none", says: otherCheck},
	{of: Check{}, when: "name=minimum-length", need: "over"},
	{of: Check{}, when: "name=container-width", not: "over any none", says: otherCheck},
	{of: Check{}, when: "name=container-width", need: "between"},
	{of: Check{}, when: "name !name=" + builtinCheck, not: "over between", says: otherCheck},
	{of: Check{}, when: "!any !none", not: "name!=" + builtinCheck,
		says: "(a check of another name needs any: [...] or none: [...])"},

	{of: Stage{}, when: "for_each !steps", need: "passes"},
	{of: Stage{}, when: "for_each", not: "steps", says: wrongSteps + "passes"},
	{of: Stage{}, when: "!for_each !passes", need: "steps"},
	{of: Stage{}, when: "!for_each", not: "passes", says: wrongSteps + "steps"},
	{of: Stage{}, when: "for_each", not: "repeat", says: "does not go with for_each; keep one, and put the other in a separate stage"},
	{of: Stage{}, when: "for_each", not: "quality_gate",
		says: "is in a stage with for_each, whose passes have no score; put it into the stage that has one"},
	{of: Stage{}, when: "!for_each", not: "orders", says: orderedSets},
	{of: Stage{}, when: "!orders", not: "steps.*.order passes.*.order"},
	{of: Stage{}, when: "for_each", not: `checkpoint~^([A-Za-z0-9._-]|\{set\})*\{set\}([A-Za-z0-9._-]|\{set\})*$ ` +
		`dir~^([A-Za-z0-9._/-]|\{set\})*\{set\}([A-Za-z0-9._/-]|\{set\})*$`},
	{of: Stage{}, when: "!for_each repeat", not: `checkpoint~^([A-Za-z0-9._-]|\{n\})*\{n\}([A-Za-z0-9._-]|\{n\})*$ ` +
		`dir~^([A-Za-z0-9._/-]|\{n\})*\{n\}([A-Za-z0-9._/-]|\{n\})*$`},
	{of: Stage{}, when: "!for_each !repeat", not: `checkpoint~^[A-Za-z0-9._-]*$ dir~^[A-Za-z0-9._/-]*$`},

	{of: Step{}, one: "role together run screenshots ask"},
	{of: Step{}, when: "role", not: "env sandbox network"},
	{of: Step{}, when: "together", not: "order if_failing env sandbox network"},
	{of: Step{}, when: "run", not: "see order"},
	{of: Step{}, when: "screenshots", not: ofAsk},
	{of: Step{}, when: "ask", not: ofAsk},
}

// steps returns the location of a stage's steps: the key for its kind if present, else the other key.
func (d *decoder) steps(stage location, s Stage) location {
	keys := []string{"steps", "passes"}
	if s.ForEach != "" {
		slices.Reverse(keys)
	}
	if d.get(stage.key(keys[0])) == nil {
		return stage.key(keys[1])
	}
	return stage.key(keys[0])
}

// together applies the rules of a type to a mapping.
func (d *decoder) together(at location, n *yaml.Node, t reflect.Type, known []key) {
	var first string // of the keys of which there is one
	for _, r := range rules {
		if reflect.TypeOf(r.of) != t || !d.holds(at, r.when) {
			continue
		}
		names := strings.Fields(r.one + r.any)
		there := slices.DeleteFunc(slices.Clone(names), func(k string) bool { return d.get(at.key(k)) == nil })
		switch {
		case len(names) == 0:
		case len(there) == 0:
			i := slices.IndexFunc(known, func(k key) bool { return k.name == names[0] })
			d.problem(n, "%s has none of %s; write one, such as %s", d.name(at), strings.Join(names, ", "), known[i].example())
		case len(there) > 1 && r.one != "":
			d.problem(n, "%s has %s; keep one", d.name(at), strings.Join(there, " and "))
		}
		if first == "" && r.one != "" && len(there) > 0 {
			first = there[0]
		}
		for _, path := range strings.Fields(r.need) {
			d.needed(at, path, r, known)
		}
		for _, path := range strings.Fields(r.not) {
			d.unwanted(at, path, r, first)
		}
	}
}

// needed reports keys that are not there.
func (d *decoder) needed(at location, path string, r rule, known []key) {
	i := strings.LastIndex(path, ".")
	owners := []location{at}
	if i >= 0 {
		owners = d.reach(at, path[:i])
	}
	for _, owner := range owners {
		switch n := d.get(owner); {
		case n.Kind != yaml.MappingNode || d.get(owner.key(path[i+1:])) != nil:
		case r.says == "":
			d.missing(owner, n, path[i+1:], known)
		default:
			d.problem(n, "%s %s", d.name(owner), r.says)
		}
	}
}

// unwanted reports keys that may not be there, or have a value that they may not have.
func (d *decoder) unwanted(at location, path string, r rule, first string) {
	path, allowed, only := strings.Cut(path, "!=")
	path, refused, some := strings.Cut(path, "=")
	for _, found := range d.reach(at, path) {
		key, n, _ := d.find(found)
		switch {
		case strings.Contains(path, "~"), r.says == "" && r.when != first:
		case only && n.Tag == "!!str" && !slices.Contains(strings.Split(allowed, "|"), n.Value):
			d.problem(n, "%s is %q; %s %s", d.name(found), n.Value, suggest(n.Value, strings.Split(allowed, "|")), r.says)
		case only, some && !slices.Contains(strings.Split(refused, "|"), n.Value):
		case some:
			d.problem(n, "%s %s", d.name(found), r.says)
		case r.says == "":
			d.problem(key, "%s: %s does not go with %s; leave it out", d.name(at), path, r.when)
		default:
			d.problem(key, "%s %s", d.name(found), r.says)
		}
	}
}

// holds evaluates a condition of a rule.
func (d *decoder) holds(at location, when string) bool {
	for _, words := range strings.Split(when, " or ") {
		if !slices.ContainsFunc(strings.Fields(words), func(w string) bool {
			w, not := strings.CutPrefix(w, "!")
			path, values, some := strings.Cut(w, "=")
			n := d.get(append(slices.Clone(at), strings.Split(path, ".")...))
			return (n != nil && (!some || slices.Contains(strings.Split(values, "|"), n.Value))) == not
		}) {
			return true
		}
	}
	return false
}

// reach lists the values that a path with * leads to.
func (d *decoder) reach(at location, path string) []location {
	all := []location{at}
	for _, step := range strings.Split(path, ".") {
		var next []location
		for _, at := range all {
			switch {
			case step != "*":
				next = append(next, at.key(step))
			case at.last() == "roles":
				for _, name := range d.keys(at) {
					next = append(next, at.key(name))
				}
			default:
				for i := range d.items(at) {
					next = append(next, at.item(i))
				}
			}
		}
		all = slices.DeleteFunc(next, func(at location) bool { return d.get(at) == nil })
	}
	return all
}
