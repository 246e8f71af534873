package pages

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/console/login"
)

// TestBrowsersAreLoggedOutOneByOne: the page offers every session but its own. A client without one does not see it.
func TestBrowsersAreLoggedOutOneByOne(t *testing.T) {
	d := newDesk(t)
	book, err := login.Open(d.state, "8400", false)
	require.NoError(t, err)
	for range 2 {
		_, err := book.NewSession(&http.Request{})
		require.NoError(t, err)
	}
	all, err := login.List(d.state, book.Now())
	require.NoError(t, err)
	own, other := all[0].ID, all[1].ID
	code, _ := d.get("/sessions")
	require.Equal(t, http.StatusNotFound, code, "without a session")
	code, _, _ = d.post("/sessions/"+other, url.Values{})
	require.Equal(t, http.StatusNotFound, code)

	d.session = own
	_, page := d.get("/sessions")
	require.Contains(t, page, `action="/sessions/`+other)
	require.NotContains(t, page, `action="/sessions/`+own)
	code, _, _ = d.post("/sessions/none", url.Values{})
	require.Equal(t, http.StatusUnprocessableEntity, code)
	code, _, _ = d.post("/sessions/"+other, url.Values{})
	require.Equal(t, http.StatusSeeOther, code)
	_, page = d.get("/sessions")
	require.NotContains(t, page, other)
	require.Contains(t, page, own)
}
