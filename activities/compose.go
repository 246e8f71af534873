package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// picturesDir is the folder of the screenshots in the agent's working directory.
const picturesDir = "pictures"

// contentLabel marks the always-read file that is the content: it comes after the files and is not a reference.
const contentLabel = "Content"

// Compose composes a prompt from stored texts and stores it.
func (a *Activities) Compose(ctx context.Context, in contract.ComposeInput) (contract.ComposeResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return contract.ComposeResult{}, err
	}
	text, res, err := a.composePrompt(ctx, s, in)
	if err != nil {
		return res, err
	}
	res.Prompt, err = a.storeText(ctx, s, text)
	return res, err
}

// composePrompt returns a prompt and what it was composed of; for a command, the command and the digests of its notes,
// with which it is another question.
func (a *Activities) composePrompt(ctx context.Context, s *store.Store,
	in contract.ComposeInput) (string, contract.ComposeResult, error) {
	c, err := a.composer(ctx, s, in)
	if err != nil {
		return "", contract.ComposeResult{}, err
	}
	if c.command() {
		text := c.step.Run + "\n"
		for _, n := range c.in.Context.Notes {
			if c.plan.Workspace == nil && n.Whole.Digest != "" {
				text += "# " + n.File + " " + n.Whole.Digest + "\n"
			}
		}
		return text, contract.ComposeResult{}, nil
	}
	req, err := c.request()
	if err != nil {
		return "", contract.ComposeResult{}, err
	}
	return pass.Compose(req), contract.ComposeResult{Files: c.step.Files, References: labels(req.References)}, nil
}

// composer collects the parts of one prompt.
type composer struct {
	place
	a      *Activities
	ctx    context.Context
	s      *store.Store
	in     contract.ComposeInput
	inputs map[string]string // path → digest
}

func (a *Activities) composer(ctx context.Context, s *store.Store, in contract.ComposeInput) (*composer, error) {
	p, err := a.place(ctx, s, in.At)
	if err != nil {
		return nil, err
	}
	var manifest rundir.Inputs
	err = s.GetJSON(ctx, store.Digest(in.At.Inputs), &manifest)
	return &composer{place: p, a: a, ctx: ctx, s: s, in: in, inputs: manifest.Digests()}, err
}

// place is what the plan has for a call.
type place struct {
	plan  *pipeline.Plan
	stage pipeline.PlanStage
	round pipeline.PlanRound
	step  pipeline.PlanStep
	role  pipeline.Role
}

func (a *Activities) place(ctx context.Context, s *store.Store, at contract.StepRef) (p place, err error) {
	if p.plan, err = a.plan(ctx, s, at.Plan); err != nil {
		return p, err
	}
	p.stage, p.round, p.step, p.role, err = find(p.plan, at)
	return p, err
}

// command reports whether the step has no agent.
func (p place) command() bool { return p.step.Kind == pipeline.KindRun }

// acts returns the agent of the step, or the shell.
func (p place) acts() (pipeline.Agent, bool) { return agentOf(p.plan, p.step, p.role) }

// find returns the plan's entries for a call.
func find(plan *pipeline.Plan,
	at contract.StepRef) (pipeline.PlanStage, pipeline.PlanRound, pipeline.PlanStep, pipeline.Role, error) {
	if at.Stage < 0 || at.Stage >= len(plan.Stages) {
		return pipeline.PlanStage{}, pipeline.PlanRound{}, pipeline.PlanStep{}, pipeline.Role{},
			badInput("read the plan: no stage %d", at.Stage+1)
	}
	stage := plan.Stages[at.Stage]
	round := stage.RoundAt(at.Round)
	step, ok := round.At(at.Step)
	if !ok {
		return stage, round, step, pipeline.Role{}, badInput("read the plan: stage %s has no step %d", stage.Name, at.Step+1)
	}
	name := step.Role
	if at.Member != "" {
		name = at.Member
	}
	if step.Kind == pipeline.KindRun {
		return stage, round, step, pipeline.Role{Name: pipeline.CommandRole, Gives: pipeline.GivesOutcome}, nil
	}
	role, ok := plan.Role(name)
	if !ok {
		return stage, round, step, role, badInput("read the plan: no role %q", name)
	}
	role.Agent = cmp.Or(at.Agent, role.Agent)
	return stage, round, step, role, nil
}

func (c *composer) request() (pass.Request, error) {
	template, err := c.input(c.role.Prompt)
	if err != nil {
		return pass.Request{}, err
	}
	r := pass.Request{Template: template, Gives: c.role.Gives,
		Schema: c.role.Schema, SchemaText: c.role.SchemaText, Gets: c.plan.PartsOf(c.step, c.role.Name),
		Tampered: tamperedText(c.in.Context.Tampered), Misfit: c.in.Context.Misfit,
		Vars: c.vars(), Wording: run.Wording(c.plan.Wording)}
	if r.Vars.Outputs, err = c.outputs(); err != nil {
		return r, err
	}
	r.Feedback = operatorFeedback(c.in.Context)
	if r.Vars.Item, err = c.a.item(c.ctx, c.s, c.in.Context.Item); err != nil {
		return r, err
	}
	if r.Steering, err = c.steering(); err != nil {
		return r, err
	}
	fills := []func(*pass.Request) error{c.adopted, c.alwaysRead, c.fresh, c.files, c.notes, c.replies, c.parent, c.answers, c.pictures,
		c.artifact}
	for _, fill := range fills {
		if err := fill(&r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// operatorFeedback returns the feedback for a repeated round and the waivers of earlier ones.
func operatorFeedback(g contract.StepContext) string {
	text := g.Feedback
	for _, w := range append(slices.Clone(g.Waivers), waiverOf(g)...) {
		text += fmt.Sprintf("\n\nAccepted by an operator in phase %s; do not count it against the work: %s", w.Phase,
			w.Feedback)
	}
	return strings.TrimSpace(text)
}

// fresh adds what passes only in the workspace.
func (c *composer) fresh(r *pass.Request) error {
	for _, b := range c.in.Context.Fresh {
		text, err := blobs.Get(c.ctx, c.s, b.Digest)
		if err != nil {
			return err
		}
		r.Fresh = append(r.Fresh, string(text))
	}
	return nil
}

// tamperedText describes protected files that were restored.
func tamperedText(t *run.Tampered) string {
	if t == nil {
		return ""
	}
	return "By " + t.Role + ": " + t.Text()
}

func waiverOf(g contract.StepContext) []run.Waiver {
	if g.Waiver == nil {
		return nil
	}
	return []run.Waiver{*g.Waiver}
}

func (c *composer) vars() pass.Vars {
	v := pass.Vars{
		Description: c.step.DescriptionOf(c.in.At.Member, c.in.At.Round), Role: c.role.Name, Pass: c.step.Number,
		Passes: c.plan.Total,
		Task:   c.in.Context.Task, Base: c.in.Context.Base, Set: c.round.Set, Theme: c.round.Theme,
		Round:  c.in.At.Round,
		Rounds: max(c.stage.MaxRounds(), c.in.At.Round), // an operator may request more
	}
	for _, in := range c.plan.Inputs {
		if in.Value != nil {
			v.Inputs = append(v.Inputs, pass.Text{Label: in.Name, Body: *in.Value})
		}
	}
	for _, w := range c.role.With {
		v.With = append(v.With, pass.Text{Label: w.Key, Body: w.Text})
	}
	return v
}

// outputs are those that the prompt has, by id. Those that are missing are nil.
func (c *composer) outputs() (map[string]any, error) {
	values := map[string]any{}
	for _, id := range c.role.Uses {
		values[id] = nil
	}
	for _, o := range c.in.Context.Outputs {
		v, err := outputValue(c.ctx, c.s, o, true)
		if err != nil {
			return nil, fmt.Errorf("read the output of %s: %w", o.ID, err)
		}
		values[o.ID] = v
	}
	return values, nil
}

// input reads one of the run's input files as of its start.
func (c *composer) input(name string) (string, error) {
	digest, ok := c.inputs[name]
	if !ok {
		return "", badInput("read input %s: not among the run's inputs", name)
	}
	return c.text(digest)
}

func (c *composer) text(digest string) (string, error) {
	raw, err := blobs.Get(c.ctx, c.s, digest)
	return string(raw), err
}

func (c *composer) alwaysRead(r *pass.Request) error {
	for _, f := range c.plan.AlwaysRead {
		body, err := c.input(f.Path)
		if err != nil {
			return err
		}
		t := pass.Text{Label: f.Label, Body: body}
		if f.Label == contentLabel {
			r.Content = append(r.Content, t)
		} else {
			r.References = append(r.References, t)
		}
	}
	return nil
}

func (c *composer) files(r *pass.Request) error {
	for _, label := range c.step.Files {
		body, err := c.input(c.pathOf(label))
		if err != nil {
			return err
		}
		r.Files = append(r.Files, pass.Text{Label: label, Body: body})
	}
	return nil
}

// pathOf returns the path of a file of the round's set.
func (c *composer) pathOf(label string) string {
	for _, set := range c.plan.Sets {
		for _, f := range set.Files {
			if set.ID == c.round.Set && f.Label == label {
				return f.Path
			}
		}
	}
	return ""
}

func (c *composer) notes(r *pass.Request) error {
	for _, n := range c.in.Context.Notes {
		if n.Entries == 0 {
			continue
		}
		body, err := c.text(n.Whole.Digest)
		if err != nil {
			return err
		}
		r.Notes = append(r.Notes, pass.Text{Label: n.Name, Body: body})
	}
	return nil
}

func (c *composer) replies(r *pass.Request) error {
	for _, reply := range c.in.Context.Replies {
		body, err := c.text(reply.Reply.Digest)
		if err != nil {
			return err
		}
		r.Replies = append(r.Replies, pass.Text{Label: reply.Role, Body: body})
	}
	return nil
}

// parent adds the brief of the run that this one follows up.
func (c *composer) parent(r *pass.Request) (err error) {
	if c.in.Context.Parent != nil {
		r.Parent, err = c.text(c.in.Context.Parent.Digest)
	}
	return err
}

// adopted adds the text about the conversation that the call continues.
func (c *composer) adopted(r *pass.Request) (err error) {
	if c.in.Context.Adopted != nil {
		r.Adopted, err = c.text(c.in.Context.Adopted.Digest)
	}
	return err
}

// answers adds the question that the operator's feedback answers, with the outputs that it was about. Those of the
// replies part are not repeated.
func (c *composer) answers(r *pass.Request) error {
	about := c.in.Context.About
	if about == nil || c.in.Context.Feedback == "" {
		return nil
	}
	r.Answers = &pass.Answers{Question: about.Question, Verdict: about.Verdict}
	for _, o := range []*run.Output{about.Work, about.Review} {
		if o == nil || slices.ContainsFunc(c.in.Context.Replies,
			func(p run.Reply) bool { return p.Reply.Digest == o.Digest }) {
			continue
		}
		body, err := c.text(o.Digest)
		if err != nil {
			return err
		}
		r.Answers.Outputs = append(r.Answers.Outputs, pass.Text{Label: "Output of " + o.Role, Body: body})
	}
	return nil
}

func (c *composer) pictures(r *pass.Request) error {
	shots, err := readShots(c.ctx, c.s, c.in.Context.Pictures)
	for _, shot := range shots {
		r.Pictures = append(r.Pictures, path.Join(picturesDir, shot.Name))
	}
	return err
}

func (c *composer) artifact(r *pass.Request) error {
	if c.in.Context.Artifact == nil {
		return nil
	}
	body, err := c.text(c.in.Context.Artifact.Digest)
	r.Artifact = pass.Text{Label: c.plan.Artifact.File, Body: body}
	return err
}

// readShots reads a manifest of screenshots.
func readShots(ctx context.Context, s *store.Store, manifest *run.Blob) ([]run.Shot, error) {
	if manifest == nil {
		return nil, nil
	}
	raw, err := blobs.Get(ctx, s, manifest.Digest)
	if err != nil {
		return nil, err
	}
	var shots []run.Shot
	return shots, json.Unmarshal(raw, &shots)
}

func labels(texts []pass.Text) []string {
	var out []string
	for _, t := range texts {
		out = append(out, t.Label)
	}
	return out
}
