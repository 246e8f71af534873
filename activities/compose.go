package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// picturesDir is where an agent finds the pictures, relative to its working directory.
const picturesDir = "pictures"

// contentLabel marks the always-read file that is the content: it comes after the files and is no reference.
const contentLabel = "Content"

// Compose makes a prompt of stored texts and stores it.
func (a *Activities) Compose(ctx context.Context, in work.ComposeInput) (work.ComposeResult, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return work.ComposeResult{}, err
	}
	text, res, err := a.composed(ctx, s, in)
	if err != nil {
		return res, err
	}
	res.Prompt, err = a.keep(ctx, s, text)
	return res, err
}

// composed makes a prompt and says what went into it; of a command the prompt is the command.
func (a *Activities) composed(ctx context.Context, s *store.Store, in work.ComposeInput) (string, work.ComposeResult, error) {
	c, err := a.composer(ctx, s, in)
	if err != nil {
		return "", work.ComposeResult{}, err
	}
	if c.step.Kind == pipeline.KindRun {
		return c.step.Run + "\n", work.ComposeResult{}, nil
	}
	req, err := c.request()
	if err != nil {
		return "", work.ComposeResult{}, err
	}
	return pass.Compose(req), work.ComposeResult{Files: c.step.Files, References: labels(req.References)}, nil
}

// composer gathers what one prompt is made of.
type composer struct {
	ctx    context.Context
	s      *store.Store
	in     work.ComposeInput
	plan   *pipeline.Plan
	stage  pipeline.PlanStage
	round  pipeline.PlanRound
	step   pipeline.PlanStep
	role   pipeline.Role
	inputs map[string]string // path → digest
}

func (a *Activities) composer(ctx context.Context, s *store.Store, in work.ComposeInput) (*composer, error) {
	plan, err := a.plan(ctx, s, in.At.Plan)
	if err != nil {
		return nil, err
	}
	stage, round, step, role, err := find(plan, in.At)
	if err != nil {
		return nil, err
	}
	c := &composer{ctx: ctx, s: s, in: in, plan: plan, stage: stage, round: round, step: step, role: role, inputs: map[string]string{}}
	var manifest rundir.Inputs
	if err := s.GetJSON(ctx, store.Digest(in.At.Inputs), &manifest); err != nil {
		return nil, err
	}
	for _, f := range manifest.Files {
		c.inputs[f.Path] = f.Digest
	}
	return c, nil
}

// find looks a call up in the plan.
func find(plan *pipeline.Plan, at work.StepRef) (pipeline.PlanStage, pipeline.PlanRound, pipeline.PlanStep, pipeline.Role, error) {
	if at.Stage < 0 || at.Stage >= len(plan.Stages) {
		return pipeline.PlanStage{}, pipeline.PlanRound{}, pipeline.PlanStep{}, pipeline.Role{}, badInput("the plan has no stage %d", at.Stage+1)
	}
	stage := plan.Stages[at.Stage]
	round := stage.RoundAt(at.Round)
	if at.Step < 0 || at.Step >= len(round.Steps) {
		return stage, round, pipeline.PlanStep{}, pipeline.Role{}, badInput("stage %s has no step %d", stage.Name, at.Step+1)
	}
	step := round.Steps[at.Step]
	name := step.Role
	if at.Member != "" {
		name = at.Member
	}
	if step.Kind == pipeline.KindRun {
		return stage, round, step, pipeline.Role{Name: pipeline.CommandRole, Gives: pipeline.GivesOutcome}, nil
	}
	role, ok := plan.Role(name)
	if !ok {
		return stage, round, step, role, badInput("the plan has no role %q", name)
	}
	return stage, round, step, role, nil
}

func (c *composer) request() (pass.Request, error) {
	template, err := c.input(c.role.Prompt)
	if err != nil {
		return pass.Request{}, err
	}
	r := pass.Request{Template: template, Gives: c.role.Gives, Gets: c.plan.PartsOf(c.step, c.role.Name), Vars: c.vars()}
	r.Feedback = words(c.in.Given)
	fills := []func(*pass.Request) error{c.alwaysRead, c.files, c.notes, c.replies, c.pictures, c.artifact}
	for _, fill := range fills {
		if err := fill(&r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// words are the operator's: for a round that is done again, and what was let pass before.
func words(g work.Given) string {
	text := g.Feedback
	for _, w := range append(slices.Clone(g.Waivers), waiverOf(g)...) {
		text += fmt.Sprintf("\n\nLet pass by an operator in phase %s; do not hold it against the work: %s", w.Phase, w.Feedback)
	}
	return strings.TrimSpace(text)
}

func waiverOf(g work.Given) []run.Waiver {
	if g.Waiver == nil {
		return nil
	}
	return []run.Waiver{*g.Waiver}
}

func (c *composer) vars() pass.Vars {
	v := pass.Vars{
		Description: c.step.DescriptionOf(c.in.At.Member, c.in.At.Round), Role: c.role.Name, Pass: c.step.Number, Passes: c.plan.Total,
		Task: c.in.Given.Task, Base: c.in.Given.Base, Set: c.round.Set, Theme: c.round.Theme, Round: c.in.At.Round, Rounds: c.stage.MaxRounds(),
	}
	for _, w := range c.role.With {
		v.With = append(v.With, pass.Text{Label: w.Key, Body: w.Text})
	}
	return v
}

// input reads one of the run's input files, as it was when the run started.
func (c *composer) input(name string) (string, error) {
	digest, ok := c.inputs[name]
	if !ok {
		return "", badInput("%s is not among the run's inputs", name)
	}
	return c.text(digest)
}

func (c *composer) text(digest string) (string, error) {
	raw, err := load(c.ctx, c.s, digest)
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

// pathOf finds a file of the round's set by its label.
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
	for _, n := range c.in.Given.Notes {
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
	for _, reply := range c.in.Given.Replies {
		body, err := c.text(reply.Reply.Digest)
		if err != nil {
			return err
		}
		r.Replies = append(r.Replies, pass.Text{Label: reply.Role, Body: body})
	}
	return nil
}

func (c *composer) pictures(r *pass.Request) error {
	shots, err := readShots(c.ctx, c.s, c.in.Given.Pictures)
	for _, shot := range shots {
		r.Pictures = append(r.Pictures, path.Join(picturesDir, shot.Name))
	}
	return err
}

func (c *composer) artifact(r *pass.Request) error {
	if c.in.Given.Artifact == nil {
		return nil
	}
	body, err := c.text(c.in.Given.Artifact.Digest)
	r.Artifact = pass.Text{Label: c.plan.Artifact.File, Body: body}
	return err
}

// readShots reads a manifest of pictures; without one there are none.
func readShots(ctx context.Context, s *store.Store, manifest *run.Blob) ([]run.Shot, error) {
	if manifest == nil {
		return nil, nil
	}
	raw, err := load(ctx, s, manifest.Digest)
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
