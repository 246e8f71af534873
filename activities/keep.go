package activities

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
	"github.com/passbook-run/passbook/work"
)

// keep is the one place through which text about the work gets into the store: prompts, replies, notes, outputs of calls. Secrets in it are hidden
// here, and the digest of the text as it was stands beside it. Artifacts are the user's data and go past it (see keepData).
func (a *Activities) keep(ctx context.Context, s *store.Store, text string) (run.Blob, error) {
	shown := a.cfg.Redact(text)
	b, err := keepData(ctx, s, []byte(shown))
	if shown != text {
		b.Raw = string(store.DigestOf([]byte(text)))
	}
	return b, err
}

// keepEnvelope stores what an agent reported beside its reply, one JSON object a line, with its secrets hidden; nil: it reported nothing.
func (a *Activities) keepEnvelope(ctx context.Context, s *store.Store, kind string, stdout []byte) (*run.Blob, error) {
	shown := agent.Envelope(kind, stdout, a.cfg.Redact)
	if shown == nil {
		return nil, nil
	}
	b, err := keepData(ctx, s, shown)
	if whole := agent.Envelope(kind, stdout, func(text string) string { return text }); !bytes.Equal(whole, shown) {
		b.Raw = string(store.DigestOf(whole))
	}
	return &b, err
}

// keepData stores bytes as they are.
func keepData(ctx context.Context, s *store.Store, data []byte) (run.Blob, error) {
	d, err := s.Put(ctx, data)
	if err != nil {
		return run.Blob{}, err
	}
	return run.Blob{Digest: string(d), Size: int64(len(data)), Chars: utf8.RuneCount(data)}, nil
}

// hide is the one place through which words go to Temporal: those of a result are hidden in it. result is a pointer to it.
func (a *Activities) hide(result any) {
	switch r := result.(type) {
	case *work.PassResult:
		a.hideAll(&r.Message, &r.Diagnostics, &r.ScoreWhy, &r.Verdict)
		for i := range r.Validation.Checks {
			a.hideAll(&r.Validation.Checks[i].Detail)
		}
		for i := range r.Validation.Warnings {
			a.hideAll(&r.Validation.Warnings[i])
		}
	case *work.ShotsResult:
		a.hideAll(&r.Message)
		a.hideTroubles(r.Troubles)
	case *work.ProjectResult:
		a.hideTroubles(r.Troubles)
	case *work.CarryResult:
		a.hideTroubles(r.Troubles)
	case *work.DeliverResult:
		a.hideAll(&r.Why)
	case *work.Round:
		a.hideAll(&r.Title)
		for i := range r.Steps {
			s := &r.Steps[i]
			a.hideAll(&s.Run, &s.Ask, &s.Description, &s.LogTitle)
		}
	}
}

func (a *Activities) hideTroubles(all []work.Trouble) {
	for i := range all {
		a.hideAll(&all[i].Message, &all[i].Diagnostics)
	}
}

func (a *Activities) hideAll(words ...*string) {
	for _, w := range words {
		*w = a.cfg.Redact(*w)
	}
}

// hideError gives an error without the secrets in its words. Its kind, and whether trying again helps, stay; what caused it is said in its words.
func (a *Activities) hideError(err error) error {
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
		if where := (work.Heartbeat{}); app.HasDetails() && app.Details(&where) == nil {
			o.Details = []any{work.Heartbeat{Host: where.Host, Call: where.Call}}
		}
	}
	return temporal.NewApplicationErrorWithOptions(shown, kind, o)
}

func load(ctx context.Context, s *store.Store, digest string) ([]byte, error) {
	return s.Get(ctx, store.Digest(digest))
}

// blobs is a store as the run directory wants it.
type blobs struct{ s *store.Store }

func (b blobs) Get(ctx context.Context, digest string) ([]byte, error) { return load(ctx, b.s, digest) }

func (b blobs) Put(ctx context.Context, data []byte) (string, error) {
	d, err := b.s.Put(ctx, data)
	return string(d), err
}

// Name puts data under a name, once. What is there already stays.
func (b blobs) Name(ctx context.Context, name string, data []byte) error {
	_, err := b.s.Create(ctx, name, data)
	return err
}

// Replace puts data under a name, whatever is there.
func (b blobs) Replace(ctx context.Context, name string, data []byte) error {
	return b.s.Replace(ctx, name, data)
}

func (b blobs) ReadName(ctx context.Context, name string) ([]byte, error) {
	return b.s.ReadName(ctx, name)
}

func (b blobs) ListNames(ctx context.Context, prefix string) ([]string, error) {
	return b.s.List(ctx, prefix)
}

func (b blobs) Manifest(ctx context.Context, digest string) ([]byte, error) {
	t, err := tree.Load(ctx, b.s, store.Digest(digest))
	if err != nil {
		return nil, err
	}
	return t.Manifest(), nil
}

func (b blobs) PutTree(ctx context.Context, manifest []byte) error {
	t, err := tree.ReadManifest(manifest)
	if err != nil {
		return fmt.Errorf("%w: %v", rundir.ErrDamaged, err)
	}
	return tree.Put(ctx, b.s, t)
}

// ReadTree reads the manifest of a tree: an error says that its lines are not those of the tree that it names.
func ReadTree(manifest []byte) error {
	_, err := tree.ReadManifest(manifest)
	return err
}

func (b blobs) LayDown(ctx context.Context, digest, dir string) error {
	_, err := tree.Checkout(ctx, b.s, store.Digest(digest), dir, tree.Rules{})
	return err
}

// Blobs gives a store as the run directory wants it.
func Blobs(s *store.Store) interface {
	rundir.Blobs
	rundir.Names
	rundir.Replacer
} {
	return blobs{s}
}
