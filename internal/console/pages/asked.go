package pages

import (
	"net/http"
	"net/url"

	"github.com/passbook-run/passbook/internal/console/access"
)

// asked shows the open question of a run, or how the question of a link was answered.
func (s *site) asked(r *http.Request) (screen, error) {
	sub, err := s.local(r, "")
	if err != nil {
		return screen{}, err
	}
	id, _ := access.From(r.Context())
	if sub.Asks == nil || id.Question != "" && id.Question != sub.Asks.ID {
		about := sub.stale(url.Values{"question": {id.Question}})
		return screen{name: "answered", title: "Answered", body: about.body}, nil
	}
	q, err := s.question(r.Context(), sub)
	if err != nil {
		return screen{}, err
	}
	if q == nil {
		return screen{}, &missingError{what: "the open question of run " + sub.Row.RunID}
	}
	return screen{name: "asked", title: q.Asked.Text, body: q}, nil
}
