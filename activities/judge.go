package activities

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// judge reads an answer: first what the process left, then what the reply holds.
func (a *Activities) judge(ctx context.Context, s *store.Store, in work.PassInput, ans *answer) (work.PassResult, error) {
	res := work.PassResult{StartedAt: run.Time(ans.Exit.Started), DurationMS: ans.Exit.Duration.Milliseconds(), ExitCode: ans.Exit.Code}
	res.Validation = run.Validation{Checks: []run.Check{}, Warnings: []string{}}
	if ans.Spawn != nil {
		a.fail(&res, ans.Spawn)
		return res, nil
	}
	plan, err := a.plan(ctx, s, in.At.Plan)
	if err != nil {
		return res, err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return res, err
	}
	j := judge{a: a, ctx: ctx, s: s, in: in, ans: ans, plan: plan, step: step, role: role}
	if step.Kind == pipeline.KindRun && !ans.Exit.TimedOut {
		return res, j.command(&res)
	}
	reply, failure, err := j.reply()
	if err != nil {
		return res, err
	}
	res.Spend = spend(reply)
	if res.Superseded, err = j.superseded(); err != nil {
		return res, err
	}
	if failure == nil {
		failure = j.noTree()
	}
	if failure != nil {
		a.fail(&res, failure)
		out := ans.Stdout
		res.Output = &out
		return res, nil
	}
	return res, j.read(&res, reply)
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

// fail takes a failure over. Its words go into the journal, so they pass the redaction here.
func (a *Activities) fail(res *work.PassResult, f *agent.Failure) {
	res.Outcome, res.Message, res.Diagnostics = string(f.Category), a.cfg.Redact(f.Message), a.cfg.Redact(f.Diagnostics)
	res.RateLimited, res.Permanent, res.ExitCode = f.RateLimited, f.Permanent, f.ExitCode
}

func spend(r agent.Reply) run.Spend {
	t := run.Tokens{Input: int64(r.Tokens.Input), Output: int64(r.Tokens.Output), CacheRead: int64(r.Tokens.CacheRead), CacheWrite: int64(r.Tokens.CacheWrite)}
	return run.Spend{Tokens: t, USD: run.Cents(r.CostUSD), Estimated: r.Estimated, Model: r.Model}
}

// superseded adds up what later answers of the same call have cost.
func (j judge) superseded() (*run.Spend, error) {
	later, err := ledger{s: j.s, call: j.in.Call}.superseded(j.ctx)
	if err != nil || len(later) == 0 {
		return nil, err
	}
	var sum run.Totals
	for _, ans := range later {
		reply, _, err := j.replyOf(&ans)
		if err != nil {
			return nil, err
		}
		c := spend(reply)
		sum.Add(c.Tokens, c.USD, c.Estimated)
	}
	return &run.Spend{Tokens: sum.Tokens, USD: sum.USD, Estimated: sum.EstimatedUSD > 0}, nil
}

// reply reads the envelope.
func (j judge) reply() (agent.Reply, *agent.Failure, error) { return j.replyOf(j.ans) }

func (j judge) replyOf(ans *answer) (agent.Reply, *agent.Failure, error) {
	if ans.Spawn != nil {
		return agent.Reply{}, nil, nil
	}
	stdout, err := load(j.ctx, j.s, ans.Stdout.Digest)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	stderr, err := load(j.ctx, j.s, ans.Stderr.Digest)
	if err != nil {
		return agent.Reply{}, nil, err
	}
	ag, _ := agentOf(j.plan, j.step, j.role)
	var price *agent.Price
	if ag.Price != nil {
		price = &agent.Price{Input: ag.Price.Input, Output: ag.Price.Output}
	}
	reply, failure := agent.ReadReply(replyKind(ag), stdout, ans.Exit, string(stderr), price, j.in.Prompt.Chars)
	return reply, failure, nil
}

// read takes everything out of the reply that the role is to give.
func (j judge) read(res *work.PassResult, reply agent.Reply) error {
	file, before, err := j.files()
	if err != nil {
		return err
	}
	r := pass.Read(j.role, j.plan.Notes, reply.Text, file, before)
	res.Outcome, res.Message, res.Modified = string(r.Outcome), r.Message, r.Modified
	res.Structural = r.Outcome != pass.OK
	res.Validation, res.Tally = validation(r.Validation), tally(r.Tally)
	res.Score, res.ScoreWhy, res.Verdict = r.Score, r.ScoreText, r.Verdict
	text, err := j.a.keep(j.ctx, j.s, reply.Text)
	if err != nil {
		return err
	}
	res.Reply = &text
	if r.Outcome != pass.OK {
		res.Output = &text
		return nil
	}
	if len(r.Artifact) > 0 {
		b, err := keepData(j.ctx, j.s, r.Artifact)
		if err != nil {
			return err
		}
		res.Artifact = &b
	}
	if res.Changes, err = j.changes(); err != nil {
		return err
	}
	res.Modified = res.Modified || res.Changes != nil
	res.Validation.Warnings = append(res.Validation.Warnings, j.leftOut(res.Changes != nil)...)
	res.Notes, err = j.notes(r.Notes)
	return err
}

// command reads what a command came to: its exit code is its value, what it printed its reply. That it fails is an answer.
func (j judge) command(res *work.PassResult) error {
	var said []byte
	for _, b := range []run.Blob{j.ans.Stdout, j.ans.Stderr} {
		text, err := load(j.ctx, j.s, b.Digest)
		if err != nil {
			return err
		}
		said = append(said, text...)
	}
	text, err := j.a.keep(j.ctx, j.s, string(said))
	if err != nil {
		return err
	}
	res.Outcome, res.Reply, res.Value = string(pass.OK), &text, "ok"
	res.Validation.Passed = j.ans.Exit.Code == 0
	if j.ans.Exit.Code != 0 {
		res.Value = "failed"
	}
	res.Validation.Checks = append(res.Validation.Checks, run.Check{
		Name: "exit-code", Passed: res.Validation.Passed, Detail: fmt.Sprintf("exit code %d", j.ans.Exit.Code),
	})
	return nil
}

// files gives the artifact as the agent wrote it, if it did, and as it was before.
func (j judge) files() (file, before []byte, err error) {
	if j.ans.File != nil {
		if file, err = load(j.ctx, j.s, j.ans.File.Digest); err != nil {
			return nil, nil, err
		}
	}
	if j.in.Artifact != nil {
		before, err = load(j.ctx, j.s, j.in.Artifact.Digest)
	}
	return file, before, err
}

// notes stores what the reply adds to each notes file: the entry, and the file with it.
func (j judge) notes(found []pass.Text) ([]run.NoteAppended, error) {
	var out []run.NoteAppended
	for _, t := range found {
		for _, n := range j.in.Notes {
			if n.Name != t.Label {
				continue
			}
			ev, err := j.note(n, t.Body)
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
	_, _, step, _, _ := find(plan, at)
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
