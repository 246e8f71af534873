package pages

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBrowsersAreLoggedOutOneByOne: the page offers every session but its own. A client without one does not see it.
func TestBrowsersAreLoggedOutOneByOne(t *testing.T) {
	d := newDesk(t)
	for range 2 {
		d.logins.NewSession(&http.Request{})
	}
	all := d.logins.List()
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
