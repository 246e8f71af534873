package pipeline

import (
	"slices"

	"github.com/passbook-run/passbook/pipeline/template"
)

// issueInputs are the placeholders of the issue that a run is started with. A definition has those as inputs that its
// prompts name.
var issueInputs = []string{"issue.number", "issue.title", "issue.body", "issue.url"}

// takeIssue adds the inputs of an issue that a prompt names.
func (d *Definition) takeIssue(prompt string) {
	for _, piece := range template.Scan(prompt) {
		if slices.Contains(issueInputs, piece.Name) && !slices.Contains(d.inputNames(), piece.Name) {
			d.Inputs = append(d.Inputs, Input{Name: piece.Name, Type: InputString, Description: "of the issue: add --issue NUMBER"})
		}
	}
}

// Restrict bounds what calls of a run can reach, whose task is by an account without write access: these addresses, and no
// files of .worktreeinclude.
func (p *Plan) Restrict(network Network) {
	if p.Workspace != nil {
		w := *p.Workspace
		w.Bare, w.Network, p.Workspace = true, network, &w
	}
	p.Agents = slices.Clone(p.Agents)
	for i := range p.Agents {
		p.Agents[i].Network = p.Agents[i].Network.within(network)
	}
	for _, s := range p.Stages {
		for _, r := range s.Rounds {
			for i := range r.Steps {
				r.Steps[i].Network = r.Steps[i].Network.within(network)
			}
			for i := range r.Fresh {
				r.Fresh[i].Network = r.Fresh[i].Network.within(network)
			}
		}
	}
}

// within returns a network that reaches at most these addresses.
func (v Network) within(network Network) Network {
	if len(v) == 0 || slices.Contains(v, NetworkInternet) {
		return network
	}
	left := slices.DeleteFunc(slices.Clone(v), func(a string) bool { return !slices.Contains(network, a) })
	if len(left) == 0 {
		return Network{NetworkNone}
	}
	return left
}
