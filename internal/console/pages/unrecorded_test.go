package pages

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/testenv"
)

// TestAcceptedAnswerIsNotAskedForAgain until its directory records it: the inbox shows the next question, and another
// answer is not sent.
func TestAcceptedAnswerIsNotAskedForAgain(t *testing.T) {
	d := newDesk(t)
	s := asking(t, first, morning)
	dir := s.write(d.root)
	asking(t, second, morning).write(d.root)
	q, open := s.state.Asks()
	require.True(t, open)
	d.answers.Keep(first, q, api.Given{Action: "continue", By: "grace", At: morning})

	_, page := d.get("/inbox?run=" + first)
	require.Contains(t, page, `action="/runs/`+second+`/do/decide"`, "the next question is shown")
	require.NotContains(t, page, `href="/inbox?run=`+first)
	testenv.Golden(t, *update, "accepted", d.show("/runs/"+first)+d.show("/runs/"+first+"/question"))

	code, page, _ := d.post("/runs/"+first+"/do/decide", url.Values{"question": {"h-1"}, "digest": {"d-h-1"},
		"action": {"halt"}})
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, shownText(page), "Continue was accepted by the run")
	require.Contains(t, shownText(page), "Your answer “Halt” was not sent")
	require.Zero(t, d.connected)

	before := len(s.lines)
	s.decide("h-1", "continue")
	s.pass(3, "Third.")
	s.ask("h-2")
	s.extend(dir, before)
	_, page = d.get("/inbox?run=" + first)
	require.Contains(t, page, `action="/runs/`+first+`/do/decide"`, "the next question of the run is open")
}
