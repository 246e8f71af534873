package pages

import (
	"net/http"
	"net/url"

	"github.com/passbook-run/passbook/internal/console/access"
)

// asked shows the open question of a run, or how the question of a link was answered.
func (s *site) asked(r *http.Request) (view, error) {
	sub, err := s.local(r, "")
	if err != nil {
		return view{}, err
	}
	id, _ := access.From(r.Context())
	if sub.Asks == nil || id.Question != "" && id.Question != sub.Asks.ID {
		about := sub.stale(url.Values{"question": {id.Question}})
		return view{name: "answered", title: "Answered", body: about.body}, nil
	}
	q, err := s.question(r.Context(), sub)
	if err != nil {
		return view{}, err
	}
	if q == nil {
		return view{}, &missingError{what: "the open question of run " + sub.Row.RunID}
	}
	return view{name: "asked", title: q.Asked.Text, body: q}, nil
}
