package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/agent/scripted"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// oracle is the pipeline as a plain loop: no workflow, no activities, no journal, no directory. It shares with the
// engine how a definition is expanded, how a prompt is composed and how a reply is read; everything in between it does
// its own way.
type oracle struct {
	t       *testing.T
	folder  string
	plan    *pipeline.Plan
	page    []byte
	notes   map[string]string
	replies map[string][]pass.Text // by step
	score   float64
}

// foretell runs a definition as a plain loop.
func foretell(t *testing.T, definition string) *oracle {
	t.Helper()
	folder, name := filepath.Split(definition)
	def, problems := pipeline.Parse(name, read(t, definition), os.DirFS(folder))
	require.Empty(t, problems)
	o := &oracle{t: t, folder: folder, plan: pipeline.Expand(def), notes: map[string]string{},
		replies: map[string][]pass.Text{}}
	o.page = []byte(strings.TrimRight(o.file(o.plan.Artifact.Seed), " \t\r\n") + "\n")
	for _, stage := range o.plan.Stages {
		o.stage(stage)
	}
	return o
}

func (o *oracle) file(name string) string {
	return string(read(o.t, filepath.Join(o.folder, filepath.FromSlash(name))))
}

func (o *oracle) stage(s pipeline.PlanStage) {
	for n := 1; n <= s.MaxRounds(); n++ {
		for _, step := range s.RoundAt(n).Steps {
			if s.Threshold != nil && o.score >= *s.Threshold {
				return
			}
			o.step(s, n, step)
		}
	}
}

func (o *oracle) step(s pipeline.PlanStage, n int, step pipeline.PlanStep) {
	switch step.Kind {
	case "role":
		o.replies[step.Key] = []pass.Text{{Label: step.Role, Body: o.ask(s, n, step, step.Role, "")}}
	case "together":
		var all []pass.Text
		for _, m := range step.Members {
			all = append(all, pass.Text{Label: m, Body: o.ask(s, n, step, m, m)})
		}
		o.replies[step.Key] = all
	}
}

// ask makes one call and takes what comes back.
func (o *oracle) ask(s pipeline.PlanStage, n int, step pipeline.PlanStep, name, member string) string {
	role, ok := o.plan.Role(name)
	require.True(o.t, ok)
	reply := o.agent(pass.Compose(o.request(s, n, step, role, member)))
	r := pass.Read(role, o.plan.Notes, reply, nil, o.page)
	require.Equal(o.t, run.CategoryOK, r.Outcome, r.Message)
	if r.Artifact != nil {
		o.page = r.Artifact
	}
	if r.Score != nil && member == "" {
		o.score = *r.Score
	}
	round := s.RoundAt(n)
	for _, note := range r.Notes {
		entry := fmt.Sprintf("## Pass %d (%s, Rotation %s, %s)\n%s\n", step.Number, round.Set, step.Order, name,
			note.Body)
		if o.notes[note.Label] != "" {
			entry = o.notes[note.Label] + "\n" + entry
		}
		o.notes[note.Label] = entry
	}
	return reply
}

func (o *oracle) request(s pipeline.PlanStage, n int, step pipeline.PlanStep, role pipeline.Role,
	member string) pass.Request {
	round := s.RoundAt(n)
	r := pass.Request{
		Template: o.file(role.Prompt), Gives: role.Gives, Gets: o.plan.PartsOf(step, role.Name),
		Replies:  o.replies[step.Sees],
		Artifact: pass.Text{Label: o.plan.Artifact.File, Body: string(o.page)},
		Vars: pass.Vars{
			Description: step.DescriptionOf(member, n), Role: role.Name, Pass: step.Number, Passes: o.plan.Total,
			Set:   round.Set,
			Theme: round.Theme, Round: n, Rounds: s.MaxRounds(),
		},
	}
	for _, w := range role.With {
		r.Vars.With = append(r.Vars.With, pass.Text{Label: w.Key, Body: w.Text})
	}
	for _, note := range o.plan.Notes {
		if text := o.notes[note.Name]; text != "" {
			r.Notes = append(r.Notes, pass.Text{Label: note.Name, Body: text})
		}
	}
	o.texts(&r, round.Set, step)
	return r
}

// texts adds the files: those that are always read, and the set's in the step's order.
func (o *oracle) texts(r *pass.Request, set string, step pipeline.PlanStep) {
	for _, f := range o.plan.AlwaysRead {
		t := pass.Text{Label: f.Label, Body: o.file(f.Path)}
		if f.Label == "Content" {
			r.Content = append(r.Content, t)
		} else {
			r.References = append(r.References, t)
		}
	}
	for _, label := range step.Files {
		for _, s := range o.plan.Sets {
			for _, f := range s.Files {
				if s.ID == set && f.Label == label {
					r.Files = append(r.Files, pass.Text{Label: label, Body: o.file(f.Path)})
				}
			}
		}
	}
}

// agent asks the scripted agent, in this process.
func (o *oracle) agent(prompt string) string {
	var out, errs bytes.Buffer
	code := scripted.Main(strings.NewReader(prompt), &out, &errs, func(string) string { return "" })
	require.Zero(o.t, code, errs.String())
	var envelope struct {
		Result string `json:"result"`
	}
	require.NoError(o.t, json.Unmarshal(out.Bytes(), &envelope))
	return envelope.Result
}

// artifact is the digest of the page that the loop ends with.
func (o *oracle) artifact() string { return sum(o.page) }
