package activities

import (
	"context"
	"fmt"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// reading is all that is ever wanted of a reply. It is made once, of the bytes as they came: those are not kept, and from text with hidden secrets
// another artifact or score could be read. The artifact is the user's data and is as the agent gave it; every word is hidden where it is secret.
type reading struct {
	Failure *agent.Failure `json:"failure,omitempty"` // there is no reply; then only Spend is valid beside it
	Spend   run.Spend      `json:"spend"`
	Text    *run.Blob      `json:"text,omitempty"` // of the reply; of a command all that it printed

	Outcome    string         `json:"outcome,omitempty"`
	Message    string         `json:"message,omitempty"`
	Artifact   *run.Blob      `json:"artifact,omitempty"`
	Modified   bool           `json:"modified,omitempty"`
	Validation run.Validation `json:"validation"`
	Notes      []noted        `json:"notes,omitempty"`
	Tally      []run.Count    `json:"tally,omitempty"`
	Score      *float64       `json:"score,omitempty"`
	ScoreWhy   string         `json:"score_why,omitempty"`
	Verdict    string         `json:"verdict,omitempty"`
}

// noted is what a reply adds to a notes file.
type noted struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// reading reads a reply.
func (a *Activities) reading(ctx context.Context, s *store.Store, in work.PassInput, ans *answer, stdout, stderr string) (reading, error) {
	plan, err := a.plan(ctx, s, in.At.Plan)
	if err != nil {
		return reading{}, err
	}
	_, _, step, role, err := find(plan, in.At)
	if err != nil {
		return reading{}, err
	}
	if step.Kind == pipeline.KindRun && !ans.Exit.TimedOut {
		text, err := a.keep(ctx, s, stdout+stderr)
		return reading{Text: &text}, err
	}
	ag, _ := agentOf(plan, step, role)
	reply, failure := a.readReply(ag, ans.Exit, stdout, stderr, in.Prompt.Chars)
	if odd := oddOutput(ans, len(stdout)); odd != nil && (failure == nil || failure.Category == agent.OutputEmpty || failure.Category == agent.OutputTruncated) {
		failure = odd
	}
	r := reading{Failure: failure, Spend: boundSpend(spend(reply))}
	if failure != nil {
		return r, nil
	}
	text, err := a.keep(ctx, s, reply.Text)
	if err != nil {
		return r, err
	}
	r.Text = &text
	file, before, err := artifacts(ctx, s, in, ans)
	if err != nil {
		return r, err
	}
	got := readPass(role, plan.Notes, ans, reply.Text, file, before)
	shown, shownFile := a.cfg.Redact(reply.Text), a.cfg.Redact(string(file))
	if shown == reply.Text && shownFile == string(file) {
		err = a.take(ctx, s, &r, got, got)
		return r, err
	}
	err = a.take(ctx, s, &r, got, readPass(role, plan.Notes, ans, shown, []byte(shownFile), before))
	return r, err
}

// readAgain reads an answer of a release that kept the reply as it came.
func (a *Activities) readAgain(ctx context.Context, s *store.Store, in work.PassInput, ans *answer) error {
	stdout, err := load(ctx, s, ans.Stdout.Digest)
	if err != nil {
		return err
	}
	stderr, err := load(ctx, s, ans.Stderr.Digest)
	if err != nil {
		return err
	}
	ans.Read, err = a.reading(ctx, s, in, ans, string(stdout), string(stderr))
	return err
}

// restorePage reads the artifact out of a reply again if the store has lost it. Where secrets were hidden in the reply it comes out as another one:
// then it is lost.
func (a *Activities) restorePage(ctx context.Context, s *store.Store, in work.PassInput, ans answer) error {
	page := ans.Read.Artifact
	if page == nil {
		return nil
	}
	if there, err := s.Has(ctx, store.Digest(page.Digest)); there || err != nil {
		return err
	}
	if err := a.readAgain(ctx, s, in, &ans); err != nil {
		return err
	}
	if got := ans.Read.Artifact; got == nil || got.Digest != page.Digest {
		return fmt.Errorf("the artifact of call %s: %w", ans.Call, store.ErrMissing)
	}
	return nil
}

// readReply reads the envelope. The words of a failure quote what came, cut to length: they are made of the outputs as they are stored, so that no
// cut goes through a secret.
func (a *Activities) readReply(ag pipeline.Agent, exit agent.Exit, stdout, stderr string, promptChars int) (agent.Reply, *agent.Failure) {
	var price *agent.Price
	if ag.Price != nil {
		price = &agent.Price{Input: ag.Price.Input, Output: ag.Price.Output}
	}
	reply, failure := agent.ReadReply(replyKind(ag), []byte(stdout), exit, stderr, price, promptChars)
	if failure == nil {
		return reply, nil
	}
	if _, shown := agent.ReadReply(replyKind(ag), []byte(a.cfg.Redact(stdout)), exit, a.cfg.Redact(stderr), price, promptChars); shown != nil {
		failure.Message, failure.Diagnostics = shown.Message, shown.Diagnostics
	}
	a.hideAll(&failure.Message, &failure.Diagnostics)
	return reply, failure
}

// take takes over what was read: judgements from the reply as it came, words from the one that is shown.
func (a *Activities) take(ctx context.Context, s *store.Store, r *reading, got, shown pass.Reading) error {
	if shown.Outcome == got.Outcome {
		got.Message = shown.Message
	}
	r.Outcome, r.Message, r.Modified = string(got.Outcome), got.Message, got.Modified
	r.Validation, r.Tally = validation(got.Validation), tally(got.Tally)
	r.Score, r.ScoreWhy, r.Verdict = got.Score, got.ScoreText, got.Verdict
	a.hideAll(&r.Message, &r.ScoreWhy, &r.Verdict)
	for i := range r.Validation.Checks {
		a.hideAll(&r.Validation.Checks[i].Detail)
	}
	for _, n := range shown.Notes {
		r.Notes = append(r.Notes, noted{Name: n.Label, Text: a.cfg.Redact(n.Body)})
	}
	if got.Outcome != pass.OK || len(got.Artifact) == 0 {
		return nil
	}
	b, err := keepData(ctx, s, got.Artifact)
	r.Artifact = &b
	return err
}

// artifacts gives the artifact as the agent wrote it, if it did, and as it was before.
func artifacts(ctx context.Context, s *store.Store, in work.PassInput, ans *answer) (file, before []byte, err error) {
	if ans.File != nil {
		if file, err = load(ctx, s, ans.File.Digest); err != nil {
			return nil, nil, err
		}
	}
	if in.Artifact != nil {
		before, err = load(ctx, s, in.Artifact.Digest)
	}
	return file, before, err
}

func spend(r agent.Reply) run.Spend {
	t := run.Tokens{Input: int64(r.Tokens.Input), Output: int64(r.Tokens.Output), CacheRead: int64(r.Tokens.CacheRead), CacheWrite: int64(r.Tokens.CacheWrite)}
	return run.Spend{Tokens: t, USD: run.Cents(r.CostUSD), Estimated: r.Estimated, Model: r.Model}
}
