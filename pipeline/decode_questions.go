package pipeline

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Types of an ask; they are those of hand-offs in package run.
const (
	AskAlways   = "human_feedback_always"
	AskOnReject = "human_feedback_on_reject" // only when the last verdict was not approved
	AskBypass   = "human_bypass"             // likewise, and the step before it is not done again
)

// questions lays o's `questions` over base.
func (d *decoder) questions(o object, base Questions) Questions {
	n := o.values["questions"]
	if n == nil {
		return base
	}
	q, _ := d.object(n, o.at("questions"), "remind", "expires", "on_expiry")
	return d.patience(q, base)
}

// patience reads how long a question waits.
func (d *decoder) patience(q object, base Questions) Questions {
	q.duration("remind", &base.Remind)
	q.duration("expires", &base.Expires)
	if q.has("on_expiry") {
		base.OnExpiry = q.oneOf("on_expiry", "halt", "continue", "remind")
	}
	switch {
	case base.Expires > 0 && base.OnExpiry == "":
		base.OnExpiry = "halt"
	case base.Expires == 0 && q.has("on_expiry"):
		d.problemAt(q.line("on_expiry"), "%s says what happens when nobody answers in time, and there is no expires; write expires: 72h or leave it out", q.at("on_expiry"))
	}
	return base
}

// ask reads a question: its words, or a mapping with them and how it is asked.
func (d *decoder) ask(o object, step *Step) {
	n := o.values[KindAsk]
	if n.Kind != yaml.MappingNode {
		step.Ask, step.AskType = o.text(KindAsk), AskAlways
		return
	}
	a, _ := d.object(n, o.path+" ask", "question", "type", "remind", "expires", "on_expiry")
	step.Ask = a.needText("question", "question: what a person is asked")
	step.AskType = a.oneOf("type", AskAlways, AskOnReject, AskBypass)
	q := d.patience(a, d.def.Questions)
	step.Questions = &q
}

func (d *decoder) delivery(o object) {
	n := o.values["delivery"]
	if n == nil {
		return
	}
	f, ok := d.object(n, "delivery", "to", "branch", "commit", "paths", "message")
	if !ok {
		return
	}
	if w := d.def.Workspace; w == nil || w.Git == "" {
		d.problem(n, "delivery needs a git workspace; write workspace: {git: worktree}, or leave delivery out")
	}
	if PlanOnly(d.def.Kind) {
		d.problem(n, "a pipeline of kind %s delivers nothing; leave kind or delivery out", d.def.Kind)
	}
	v := &Delivery{Paths: f.texts("paths"), Message: f.text("message"), Commit: true}
	if f.need("to", "to: branch or to: checkout") != nil {
		v.To = f.oneOf("to", "branch", "checkout")
	}
	v.Branch = f.text("branch")
	if v.Branch != "" && v.To == "checkout" {
		d.problemAt(f.line("branch"), "delivery.branch goes with to: branch; a delivery to the checkout takes the branch that is checked out there")
	}
	if strings.HasPrefix(v.Branch, "-") || strings.ContainsAny(v.Branch, " ~^:?*[\\") || strings.Contains(v.Branch, "..") {
		d.problemAt(f.line("branch"), "delivery.branch is %q, which git takes for no branch; write a name such as passbook/work", v.Branch)
	}
	if f.has("commit") {
		v.Commit = f.yesNo("commit")
		if v.To == "branch" {
			d.problemAt(f.line("commit"), "delivery.commit goes with to: checkout; a branch always gets a commit")
		}
	}
	for i, p := range v.Paths {
		v.Paths[i], _ = d.localPath(f.values["paths"], "delivery.paths", p)
	}
	d.def.Delivery = v
}
