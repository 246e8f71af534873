package activities

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// judge makes a pass's result of an answer. All that it needs of the reply was read out of it when it came.
func (a *Activities) judge(ctx context.Context, s *store.Store, in work.PassInput, ans *answer) (work.PassResult, error) {
	res := work.PassResult{StartedAt: run.Time(ans.Exit.Started), DurationMS: ans.Exit.Duration.Milliseconds(), ExitCode: ans.Exit.Code}
	res.Validation = run.Validation{Checks: []run.Check{}, Warnings: []string{}}
	if ans.Spawn != nil {
		fail(&res, ans.Spawn)
		return res, nil
	}
	res.Envelope = ans.Envelope
	plan, err := a.plan(ctx, s, in.At.Plan)
	if err != nil {
		return res, err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return res, err
	}
	if ans.Version < answerVersion {
		if err := a.readAgain(ctx, s, in, ans); err != nil {
			return res, err
		}
	} else if err := a.restorePage(ctx, s, in, *ans); err != nil {
		return res, err
	}
	j := judge{a: a, ctx: ctx, s: s, in: in, ans: ans, plan: plan, step: step, role: role}
	if step.Kind == pipeline.KindRun && ans.Read.Failure == nil {
		j.command(&res)
		return res, nil
	}
	res.Spend = ans.Read.Spend
	failure := ans.Read.Failure
	if failure == nil {
		failure = j.noTree()
	}
	if failure != nil {
		fail(&res, failure)
		out := ans.Stdout
		res.Output = &out
		return res, nil
	}
	return res, j.take(&res)
}

type judge struct {
	a    *Activities
	ctx  context.Context
	s    *store.Store
	in   work.PassInput
	ans  *answer
	plan *pipeline.Plan
	step pipeline.PlanStep
	role pipeline.Role
}

func fail(res *work.PassResult, f *agent.Failure) {
	res.Outcome, res.Message, res.Diagnostics = string(f.Category), f.Message, f.Diagnostics
	res.RateLimited, res.Permanent, res.ExitCode = f.RateLimited, f.Permanent, f.ExitCode
}

// take takes over what the reply gives.
func (j judge) take(res *work.PassResult) error {
	r := j.ans.Read
	res.Outcome, res.Message, res.Modified = r.Outcome, r.Message, r.Modified
	res.Structural = r.Outcome != string(pass.OK)
	res.Unjudged = res.Structural && j.role.Verdict != nil
	res.Validation, res.Tally = r.Validation, r.Tally
	res.Validation.Warnings = slices.Clone(r.Validation.Warnings) // whoever joined the call judges the same answer
	res.Score, res.ScoreWhy, res.Verdict = r.Score, r.ScoreWhy, r.Verdict
	res.Reply = r.Text
	if res.Structural {
		res.Output = r.Text
		return nil
	}
	res.Artifact = r.Artifact
	var err error
	if res.Changes, err = j.changes(); err != nil {
		return err
	}
	res.Modified = res.Modified || res.Changes != nil
	res.Validation.Warnings = append(res.Validation.Warnings, j.leftOut(res.Changes != nil)...)
	res.Notes, err = j.notes(r.Notes)
	return err
}

// command reads what a command came to: its exit code is its value, what it printed its reply. That it fails is an answer.
func (j judge) command(res *work.PassResult) {
	res.Outcome, res.Reply, res.Value = string(pass.OK), j.ans.Read.Text, "ok"
	res.Validation.Passed = j.ans.Exit.Code == 0
	if j.ans.Exit.Code != 0 {
		res.Value = "failed"
	}
	res.Validation.Checks = append(res.Validation.Checks, run.Check{
		Name: "exit-code", Passed: res.Validation.Passed, Detail: fmt.Sprintf("exit code %d", j.ans.Exit.Code),
	})
}

// notes stores what the reply adds to each notes file: the entry, and the file with it.
func (j judge) notes(found []noted) ([]run.NoteAppended, error) {
	var out []run.NoteAppended
	for _, t := range found {
		for _, n := range j.in.Notes {
			if n.Name != t.Name {
				continue
			}
			ev, err := j.note(n, t.Text)
			if err != nil {
				return nil, err
			}
			out = append(out, ev)
		}
	}
	return out, nil
}

func (j judge) note(n run.Notes, body string) (run.NoteAppended, error) {
	ev := run.NoteAppended{Note: n.Name, File: n.File, Step: stepKey(j.plan, j.in.At), Heading: j.in.Heading}
	var whole []byte
	var err error
	if n.Entries > 0 {
		if whole, err = load(j.ctx, j.s, n.Whole.Digest); err != nil {
			return ev, err
		}
		whole = append(whole, '\n')
	}
	if ev.Entry, err = j.a.keep(j.ctx, j.s, body); err != nil {
		return ev, err
	}
	ev.Whole, err = j.a.keep(j.ctx, j.s, string(whole)+j.in.Heading+"\n"+body+"\n")
	ev.Entry.Chars = utf8.RuneCountInString(body)
	return ev, err
}

func stepKey(plan *pipeline.Plan, at work.StepRef) string {
	_, _, step, _, err := find(plan, at)
	if err != nil {
		return "" // the call was made from this plan, so it is there
	}
	return step.Key
}

func validation(v pass.Validation) run.Validation {
	out := run.Validation{Passed: v.Passed, Checks: []run.Check{}, Warnings: []string{}}
	for _, c := range v.Checks {
		out.Checks = append(out.Checks, run.Check(c))
	}
	out.Warnings = append(out.Warnings, v.Warnings...)
	return out
}

func tally(counts []pass.Count) []run.Count {
	var out []run.Count
	for _, c := range counts {
		out = append(out, run.Count(c))
	}
	return out
}
