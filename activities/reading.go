package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/internal/price"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/expression"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// readAnswer reads a reply.
func (a *Activities) readAnswer(ctx context.Context, s *store.Store, p place, in contract.PassInput, ans *calls.Answer,
	stdout, stderr string) (calls.Reading, error) {
	if p.command() && agent.CannotRun(ans.Exit.Code) {
		return calls.Reading{Failure: agent.CommandFailure(p.step.Run, ans.Exit.Code, stdout, stderr)}, nil
	}
	if p.command() && !ans.Exit.TimedOut {
		text, err := a.storeText(ctx, s, stdout+stderr)
		return calls.Reading{Text: &text}, err
	}
	ag, _ := p.acts()
	reply, failure := a.readReply(ag, ans.Exit, stdout, stderr, in.Prompt.Chars)
	if bad := outputFailure(ans, len(stdout)); bad != nil &&
		(failure == nil || failure.Category == run.CategoryOutputEmpty ||
			failure.Category == run.CategoryOutputTruncated) {
		failure = bad
	}
	r := calls.Reading{Failure: failure, Spend: limitSpend(spend(reply, failure)), Full: reply.Full}
	if p.command() { // a command asks no agent
		r.Spend = run.Spend{}
	}
	if failure != nil {
		return r, nil
	}
	text, err := a.storeText(ctx, s, reply.Text)
	if err != nil {
		return r, err
	}
	r.Text = &text
	file, before, err := artifacts(ctx, s, in, ans)
	if err != nil {
		return r, err
	}
	got := readPass(p.role, p.plan.Notes, ans, reply.Text, file, before)
	shown, shownFile := a.cfg.Redact(reply.Text), a.cfg.Redact(string(file))
	if shown == reply.Text && shownFile == string(file) {
		err = a.fillReading(ctx, s, &r, got, got)
		return r, err
	}
	err = a.fillReading(ctx, s, &r, got, readPass(p.role, p.plan.Notes, ans, shown, []byte(shownFile), before))
	return r, err
}

// rereadAnswer reads an answer of a release that stored the reply only.
func (a *Activities) rereadAnswer(ctx context.Context, s *store.Store, p place, in contract.PassInput, ans *calls.Answer) error {
	stdout, err := blobs.Get(ctx, s, ans.Stdout.Digest)
	if err != nil {
		return err
	}
	stderr, err := blobs.Get(ctx, s, ans.Stderr.Digest)
	if err != nil {
		return err
	}
	ans.Read, err = a.readAnswer(ctx, s, p, in, ans, string(stdout), string(stderr))
	return err
}

// restoreArtifact reads the artifact from the reply again if the store lost it. If the reply was redacted, it is lost.
func (a *Activities) restoreArtifact(ctx context.Context, s *store.Store, p place, in contract.PassInput,
	ans calls.Answer) error {
	page := ans.Read.Artifact
	if page == nil {
		return nil
	}
	if there, err := s.Has(ctx, store.Digest(page.Digest)); there || err != nil {
		return err
	}
	if err := a.rereadAnswer(ctx, s, p, in, &ans); err != nil {
		return err
	}
	if got := ans.Read.Artifact; got == nil || got.Digest != page.Digest {
		return fmt.Errorf("the artifact of call %s: %w", ans.Call, store.ErrMissing)
	}
	return nil
}

// pricesOf returns what the tokens of an agent cost.
func (a *Activities) pricesOf(ag pipeline.Agent) agent.Prices {
	prices := agent.Prices{Known: a.prices, Model: adapter.Model(ag.Run)}
	if p := ag.Price; p != nil {
		own := price.Of(p.Input, p.Output, p.CacheRead, p.CacheWrite)
		prices.Own = &own
	}
	return prices
}

// readReply reads the envelope. Messages of a failure quote the output: they come from the redacted one, so that
// no truncation splits a secret.
func (a *Activities) readReply(ag pipeline.Agent, exit agent.Exit, stdout, stderr string,
	promptChars int) (agent.Reply, *agent.Failure) {
	prices := a.pricesOf(ag)
	if u := ag.Usage; u != nil {
		if find, err := regexp.Compile(u.Find); err == nil { // checked when the definition was read
			prices.Usage = find
		}
	}
	reply, failure := agent.ReadReply(replyKind(ag), []byte(stdout), exit, stderr, prices, promptChars)
	if failure == nil {
		return reply, nil
	}
	if _, shown := agent.ReadReply(replyKind(ag), []byte(a.cfg.Redact(stdout)), exit, a.cfg.Redact(stderr), prices,
		promptChars); shown != nil {
		failure.Message, failure.Diagnostics = shown.Message, shown.Diagnostics
	}
	a.redactAll(&failure.Message, &failure.Diagnostics)
	return reply, failure
}

// fillReading fills a reading: results come from the original reply, texts from the redacted one.
func (a *Activities) fillReading(ctx context.Context, s *store.Store, r *calls.Reading, got, shown pass.Reading) error {
	if shown.Outcome == got.Outcome {
		got.Message = shown.Message
	}
	r.Reading = got.Reading
	a.redactAll(r.Texts()...)
	for _, p := range shown.Scope {
		r.Scope = append(r.Scope, a.cfg.Redact(p))
	}
	for _, n := range shown.Notes {
		r.Notes = append(r.Notes, calls.Note{Name: n.Label, Text: a.cfg.Redact(n.Body)})
	}
	if err := a.keepReview(ctx, s, r, got.Review); err != nil {
		return err
	}
	if err := a.keepData(ctx, s, r, got.Data); err != nil {
		return err
	}
	if got.Outcome != run.CategoryOK || len(got.Artifact) == 0 {
		return nil
	}
	b, err := blobs.Put(ctx, s, got.Artifact)
	r.Artifact = &b
	return err
}

// keepReview stores a review, which is also the output of its role.
func (a *Activities) keepReview(ctx context.Context, s *store.Store, r *calls.Reading, review *pass.Review) error {
	if review == nil {
		return nil
	}
	stored, err := a.storeReview(ctx, s, review)
	r.Findings, r.Data = &stored, &run.Blob{Digest: stored.Digest}
	return err
}

// keepData stores the JSON of a reply. Secrets are hidden in its texts, so that it stays JSON.
func (a *Activities) keepData(ctx context.Context, s *store.Store, r *calls.Reading, data []byte) error {
	if data == nil {
		return nil
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fmt.Errorf("read the JSON of a reply: %w", err)
	}
	b, err := blobs.Put(ctx, s, []byte(expression.JSON(a.redactValue(value))))
	r.Data = &b
	return err
}

// redactValue hides secrets in the texts of a value.
func (a *Activities) redactValue(value any) any {
	switch v := value.(type) {
	case string:
		return a.cfg.Redact(v)
	case []any:
		for i := range v {
			v[i] = a.redactValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = a.redactValue(v[key])
		}
	}
	return value
}

// storeReview stores findings as JSON, and counts them.
func (a *Activities) storeReview(ctx context.Context, s *store.Store, review *pass.Review) (run.Findings, error) {
	raw, err := json.MarshalIndent(review, "", "  ")
	if err != nil {
		return run.Findings{}, err
	}
	stored, err := a.storeText(ctx, s, string(raw)+"\n")
	return run.Findings{
		Digest: stored.Digest, ShipReady: review.ShipReady, Findings: len(review.Findings),
		Blockers: len(review.Blockers), Gaps: len(review.Gaps),
	}, err
}

// artifacts returns the artifact as the agent wrote it, if it did, and as it was before.
func artifacts(ctx context.Context, s *store.Store, in contract.PassInput,
	ans *calls.Answer) (file, before []byte, err error) {
	if ans.File != nil {
		if file, err = blobs.Get(ctx, s, ans.File.Digest); err != nil {
			return nil, nil, err
		}
	}
	if in.Artifact != nil {
		before, err = blobs.Get(ctx, s, in.Artifact.Digest)
	}
	return file, before, err
}

// spend is what a call cost. An agent that failed and reported nothing may have cost something, unless it did not
// start.
func spend(r agent.Reply, failure *agent.Failure) run.Spend {
	known := r.Known
	if failure != nil && failure.Category == run.CategorySpawnFailed {
		known = ""
	}
	return run.Spend{Tokens: r.Tokens, USD: run.Cents(r.CostUSD), Estimated: r.Estimated, Model: r.Model, Known: known,
		Prices: r.Prices, ListPrice: r.ListPrice}
}

func elapsedMS(t time.Time) int64 { return time.Since(t).Milliseconds() }
