// Package access is who sends a request to the console. The server puts it into the context of a request before a
// handler runs; pages and the API read it.
package access

import (
	"context"
	"errors"

	"github.com/passbook-run/passbook/internal/api"
)

// Identity is who sends a request.
type Identity struct {
	Name string     // of the token, or of the user who opened the login link
	Can  api.Access // what the request may do

	// of a link in a notice, which is about one question of one run: its path, and the id of the question
	Base, Question string
}

type (
	identityKey struct{}
	csrfKey     struct{}
	requestKey  struct{}
	sessionKey  struct{}
)

// With returns a context with an identity.
func With(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// From returns the identity of a request; false without one.
func From(ctx context.Context) (Identity, bool) {
	id, ok := ctx.Value(identityKey{}).(Identity)
	return id, ok
}

// WithCSRF returns a context with the token that each form of a browser's session carries.
func WithCSRF(ctx context.Context, token string) context.Context {
	return context.WithValue(ctx, csrfKey{}, token)
}

// CSRF returns the token that each form carries in the hidden field csrf. It is empty without a browser's session.
func CSRF(ctx context.Context) string {
	token, _ := ctx.Value(csrfKey{}).(string)
	return token
}

// WithSession returns a context with the id of a browser's session.
func WithSession(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, sessionKey{}, id)
}

// Session returns the id of the session of a browser; empty: the request has none.
func Session(ctx context.Context) string {
	id, _ := ctx.Value(sessionKey{}).(string)
	return id
}

// ErrRevoked is the cause of the end of a context whose token or session was revoked during the request.
var ErrRevoked = errors.New("the token or the login was revoked")

// Revoked reports whether a request ends because its token or session was revoked.
func Revoked(ctx context.Context) bool { return errors.Is(context.Cause(ctx), ErrRevoked) }

// WithRequest returns a context with the id of a request that may be repeated and has one effect.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// Request returns the id of a request that may be repeated; empty: it has none.
func Request(ctx context.Context) string {
	id, _ := ctx.Value(requestKey{}).(string)
	return id
}
