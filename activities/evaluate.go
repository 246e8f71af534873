package activities

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// evaluate derives a pass's result from an answer. The reply itself was read when it arrived.
func (a *Activities) evaluate(ctx context.Context, s *store.Store, in contract.PassInput,
	ans *calls.Answer) (contract.PassResult, error) {
	res := contract.PassResult{
		StartedAt: run.Time(ans.Exit.Started), DurationMS: ans.Exit.Duration.Milliseconds(), ExitCode: ans.Exit.Code,
		ResumedFrom: ans.Resumed, Tools: ans.Tools, Setup: ans.Setup,
	}
	res.Validation = run.Validation{Checks: []run.Check{}, Warnings: []string{}}
	if ans.Spawn != nil {
		setFailure(&res, ans.Spawn)
		return res, nil
	}
	res.Envelope = ans.Envelope
	p, err := a.place(ctx, s, in.At)
	if err != nil {
		return res, err
	}
	if ans.Version < calls.AnswerVersion {
		err = a.rereadAnswer(ctx, s, p, in, ans)
	} else {
		err = a.restoreArtifact(ctx, s, p, in, *ans)
	}
	if err != nil {
		return res, err
	}
	j := evaluation{place: p, a: a, ctx: ctx, s: s, in: in, ans: ans}
	if p.command() && ans.Read.Failure == nil {
		return res, j.takeCommand(&res)
	}
	res.Spend = ans.Read.Spend
	failure := ans.Read.Failure
	if failure == nil {
		failure = j.treeFailure()
	}
	if failure != nil {
		setFailure(&res, failure)
		if failure.Category == run.CategoryBudgetExceeded {
			ag, _ := p.acts()
			_, res.OverBudget = limitCost(ag, ag.Run, in.BudgetUSD)
		}
		out := ans.Stdout
		res.Output = &out
		return res, nil
	}
	return res, j.takeReply(&res)
}

type evaluation struct {
	place
	a   *Activities
	ctx context.Context
	s   *store.Store
	in  contract.PassInput
	ans *calls.Answer
}

func setFailure(res *contract.PassResult, f *agent.Failure) {
	res.Outcome, res.Message, res.Diagnostics = f.Category, f.Message, f.Diagnostics
	res.Permanent, res.ExitCode = f.Permanent, f.ExitCode
	res.Limit = limitOf(f)
}

// takeReply copies what the reply contains.
func (j evaluation) takeReply(res *contract.PassResult) error {
	r := j.ans.Read
	res.Reading = r.Reading
	res.Structural = r.Outcome != run.CategoryOK
	res.Unjudged = res.Structural && (j.role.Judges() || j.role.Schema != "")
	// the answer may be evaluated again by a joined delivery
	res.Validation.Warnings = slices.Clone(r.Validation.Warnings)
	res.Findings = r.Findings
	res.Reply = r.Text
	if res.Structural {
		res.Output = r.Text
		return nil
	}
	res.Artifact, res.Data = r.Artifact, r.Data
	if err := j.takeChanges(res); err != nil {
		return err
	}
	res.Validation.Warnings = append(res.Validation.Warnings, j.skippedWarnings(res.Changes != nil)...)
	res.Validation.Warnings = append(res.Validation.Warnings, j.ans.Notes...)
	res.Session = keptSession(j.ans)
	var err error
	if res.Scope, err = j.scope(); err != nil {
		return err
	}
	res.Notes, err = j.notes(r.Notes)
	return err
}

// takeChanges takes over what the agent changed in the workspace, except in protected files.
func (j evaluation) takeChanges(res *contract.PassResult) error {
	left, err := j.guard()
	if err != nil {
		return err
	}
	if res.Changes, err = j.changes(left); err != nil {
		return err
	}
	res.Modified = res.Modified || res.Changes != nil
	res.Tampered = j.tamperedFiles(left.tampered)
	if res.Found, err = j.find(left); err != nil {
		return err
	}
	if res.Tampered != nil {
		res.Validation.Warnings = append(res.Validation.Warnings, res.Tampered.Warning())
	}
	res.Validation.Warnings = append(res.Validation.Warnings, res.Found.Warnings()...)
	return nil
}

// takeCommand evaluates a command: its exit code is its value, its output the reply. A failed command is an answer.
func (j evaluation) takeCommand(res *contract.PassResult) (err error) {
	res.Outcome, res.Reply, res.Value = run.CategoryOK, j.ans.Read.Text, "ok"
	res.Validation.Passed = j.ans.Exit.Code == 0
	if j.ans.Exit.Code != 0 {
		res.Value = "failed"
	}
	res.Validation.Checks = append(res.Validation.Checks, run.Check{
		Name: run.CheckExitCode, Passed: res.Validation.Passed, Detail: fmt.Sprintf("exit code %d", j.ans.Exit.Code),
	})
	if j.step.Fresh != "" && !res.Validation.Passed && j.in.Before != nil {
		res.Reply, err = j.onlyInWorkspace(*res.Reply)
	}
	return err
}

// onlyInWorkspace describes a command that fails in a fresh folder, with the ends of both outputs.
func (j evaluation) onlyInWorkspace(fresh run.Blob) (*run.Blob, error) {
	const most = 16 << 10
	text := fmt.Sprintf("passes only in the workspace: %s\n", strings.TrimSpace(j.step.Run))
	for _, out := range []struct {
		where string
		of    run.Blob
	}{{fmt.Sprintf("In a fresh folder it ends with exit code %d", j.ans.Exit.Code), fresh},
		{"In the workspace it ended with exit code 0", *j.in.Before}} {
		raw, err := blobs.Get(j.ctx, j.s, out.of.Digest)
		if err != nil {
			return nil, err
		}
		end, cut := strings.TrimSpace(string(raw)), ""
		if n := len(end) - most; n > 0 {
			end, cut = strings.ToValidUTF8(end[n:], ""), fmt.Sprintf(" (the last %d of %d bytes)", most, len(end))
		}
		text += fmt.Sprintf("\n%s%s:\n\n%s\n", out.where, cut, end)
	}
	b, err := j.a.storeText(j.ctx, j.s, text)
	return &b, err
}

// notes stores the reply's additions to notes: the entry and the whole file.
func (j evaluation) notes(found []calls.Note) ([]run.NoteAppended, error) {
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

func (j evaluation) note(n run.Notes, body string) (run.NoteAppended, error) {
	ev := run.NoteAppended{Note: n.Name, File: n.File, Step: j.step.Key, Heading: j.in.Heading}
	var whole []byte
	var err error
	if n.Entries > 0 {
		if whole, err = blobs.Get(j.ctx, j.s, n.Whole.Digest); err != nil {
			return ev, err
		}
		whole = append(whole, '\n')
	}
	if ev.Entry, err = j.a.storeText(j.ctx, j.s, body); err != nil {
		return ev, err
	}
	ev.Whole, err = j.a.storeText(j.ctx, j.s, string(whole)+j.in.Heading+"\n"+body+"\n")
	ev.Entry.Chars = utf8.RuneCountInString(body)
	return ev, err
}
