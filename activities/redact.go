package activities

import (
	"bytes"
	"context"
	"errors"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// storeText stores texts about the work: prompts, replies, notes, outputs. It redacts secrets and records the digest of
// the original. Artifacts are the user's data and are stored as they are.
func (a *Activities) storeText(ctx context.Context, s *store.Store, text string) (run.Blob, error) {
	shown := a.cfg.Redact(text)
	b, err := blobs.Put(ctx, s, []byte(shown))
	if shown != text {
		b.Raw = string(store.DigestOf([]byte(text)))
	}
	return b, err
}

// storeEnvelope stores what an agent reported besides its reply, one redacted JSON object per line; nil if nothing.
func (a *Activities) storeEnvelope(ctx context.Context, s *store.Store, kind string, stdout []byte) (*run.Blob, error) {
	shown := agent.Envelope(kind, stdout, a.cfg.Redact)
	if shown == nil {
		return nil, nil
	}
	b, err := blobs.Put(ctx, s, shown)
	if whole := agent.Envelope(kind, stdout, func(text string) string { return text }); !bytes.Equal(whole, shown) {
		b.Raw = string(store.DigestOf(whole))
	}
	return &b, err
}

// redactResult redacts the texts of a result before they reach Temporal. result is a pointer to it.
func (a *Activities) redactResult(result any) {
	switch r := result.(type) {
	case *contract.PassResult:
		a.redactAll(append(r.Texts(), &r.Diagnostics)...)
	case *contract.ForgeResult:
		for i := range r.Comments {
			a.redactAll(&r.Comments[i].Text, &r.Comments[i].By, &r.Comments[i].At)
		}
	case *contract.TurnResult:
		a.redactResult(&r.Project)
		if r.Pass != nil {
			a.redactResult(r.Pass)
		}
	case *contract.OpenResult:
		a.redactAll(&r.Task)
	case *contract.ShotsResult:
		a.redactAll(&r.Message)
		a.redactErrors(r.Recovered)
	case *contract.ProjectResult:
		a.redactErrors(r.Recovered)
	case *contract.SyncWorkspaceResult:
		a.redactErrors(r.Recovered)
	case *contract.DeliverResult:
		a.redactAll(&r.Reason)
	case *contract.AmendResult:
		for i := range r.Differences {
			a.redactAll(&r.Differences[i].Old, &r.Differences[i].New)
		}
	case *contract.Round:
		a.redactAll(&r.Title)
		for _, steps := range [][]contract.Step{r.Steps, r.Fresh} {
			for i := range steps {
				s := &steps[i]
				a.redactAll(&s.Run, &s.Ask, &s.Description, &s.LogTitle)
			}
		}
	}
}

func (a *Activities) redactErrors(all []contract.RecoveredError) {
	for i := range all {
		a.redactAll(&all[i].Message, &all[i].Diagnostics)
	}
}

func (a *Activities) redactAll(words ...*string) {
	for _, w := range words {
		*w = a.cfg.Redact(*w)
	}
}

// redactError redacts an error. Its type and whether it is retryable stay; its cause becomes text.
func (a *Activities) redactError(err error) error {
	if err == nil || temporal.IsCanceledError(err) {
		return err
	}
	words := err.Error()
	shown := a.cfg.Redact(words)
	if shown == words {
		return err
	}
	kind, o := "", temporal.ApplicationErrorOptions{}
	if app := (*temporal.ApplicationError)(nil); errors.As(err, &app) {
		kind, o.NonRetryable, shown = app.Type(), app.NonRetryable(), a.cfg.Redact(app.Message())
		if where := (contract.Heartbeat{}); app.HasDetails() && app.Details(&where) == nil {
			o.Details = []any{contract.Heartbeat{Host: where.Host, Call: where.Call}}
		}
	}
	return temporal.NewApplicationErrorWithOptions(shown, kind, o)
}
