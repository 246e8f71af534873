package pipeline

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What a role gives.
const (
	GivesArtifact = "artifact" // the whole artifact, in the reply or as the file it changed
	GivesReport   = "report"   // words only
	GivesChanges  = "changes"  // changes to the workspace
	GivesOutcome  = "outcome"  // a command's: ok or failed; no role of a definition
)

// CommandRole is the name under which commands are counted.
const CommandRole = "command"

func (d *decoder) roles(o object) {
	n := o.need("roles", "roles: {NAME: {prompt: PATH, gives: report}}")
	if n == nil {
		return
	}
	d.named(n, "roles", "role", func(key, value *yaml.Node, path string) {
		d.def.Roles = append(d.def.Roles, d.role(key, value, path))
	})
}

func (d *decoder) role(key, value *yaml.Node, path string) Role {
	r := Role{Name: key.Value}
	o, ok := d.object(value, path, "prompt", "gives", "checks", "notes", "tally", "score", "verdict", "agent", "limits", "with")
	if !ok {
		return r
	}
	if o.need("gives", "gives: artifact, report or changes") != nil {
		r.Gives = o.oneOf("gives", GivesArtifact, GivesReport, GivesChanges)
	}
	d.checkGives(o, r.Gives)
	r.Checks = d.checks(o)
	r.Notes = d.roleNotes(o)
	r.Tally = d.tally(o)
	r.Score = d.score(o)
	r.Verdict = d.verdict(o)
	r.Agent = d.roleAgent(o)
	r.Limits = d.limits(o, d.def.Limits)
	r.With = d.with(o)
	if n := o.need("prompt", "prompt: the path of its prompt file"); n != nil {
		r.Prompt, r.Places = d.prompt(n, o.at("prompt"), r.With)
	}
	return r
}

func (d *decoder) checkGives(o object, gives string) {
	switch {
	case gives == GivesArtifact && d.def.Artifact == nil:
		d.problemAt(o.line("gives"), "%s is artifact, and the pipeline has none; write artifact: {file: NAME, seed: PATH} at the top", o.at("gives"))
	case gives == GivesChanges && d.def.Workspace == nil:
		d.problemAt(o.line("gives"), "%s is changes, and the pipeline has no workspace; write workspace: {git: worktree} at the top", o.at("gives"))
	}
}

func (d *decoder) roleNotes(o object) []string {
	names := o.texts("notes")
	known := make([]string, len(d.def.Notes))
	for i, n := range d.def.Notes {
		known[i] = n.Name
	}
	for i, n := range names {
		if !slices.Contains(known, n) {
			d.problemAt(o.line("notes"), "%s has %q, not a note of this pipeline; %s", o.at("notes"), n, suggest(n, known))
		}
		if slices.Contains(names[:i], n) {
			d.problemAt(o.line("notes"), "%s has %q twice; keep one", o.at("notes"), n)
		}
	}
	return names
}

func (d *decoder) roleAgent(o object) string {
	known := make([]string, 0, len(d.def.Agents))
	for _, a := range d.def.Agents {
		if a.Name != "" {
			known = append(known, a.Name)
		}
	}
	if !o.has("agent") {
		if len(known) > 0 && len(known) == len(d.def.Agents) {
			d.problem(o.node, "%s names no agent, and there is no default one; %s", o.path, suggest("", known))
		}
		return ""
	}
	agent := o.text("agent")
	if agent != "" && !slices.Contains(known, agent) {
		d.problemAt(o.line("agent"), "%s is %q, not one of agents; %s", o.at("agent"), agent, suggest(agent, known))
	}
	return agent
}

func (d *decoder) with(o object) []KeyText {
	n := o.values["with"]
	if n == nil {
		return nil
	}
	var out []KeyText
	d.named(n, o.at("with"), "key", func(key, value *yaml.Node, path string) {
		out = append(out, KeyText{Key: key.Value, Text: d.words(value, path)})
	})
	return out
}

// words is a scalar of any kind, or a list of them joined with ", ".
func (d *decoder) words(n *yaml.Node, path string) string {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = d.list(n, path)
	}
	var out []string
	for _, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			d.problem(item, "%s is %s; write a text or a list of texts", path, kindOf(item))
			continue
		}
		out = append(out, item.Value)
	}
	return strings.Join(out, ", ")
}
