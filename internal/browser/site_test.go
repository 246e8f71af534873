package browser

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOthersCannotReadThePage: another user of the machine finds the port, and does not know the path.
func TestOthersCannotReadThePage(t *testing.T) {
	s, err := serve([]byte("SECRET"))
	require.NoError(t, err)
	t.Cleanup(s.close)
	status := func(url string) int {
		r, err := http.Get(url)
		require.NoError(t, err)
		require.NoError(t, r.Body.Close())
		return r.StatusCode
	}
	require.Equal(t, http.StatusOK, status(s.url()))
	for _, path := range []string{"/", "/index.html", "//", "/%2e/"} {
		require.Equal(t, http.StatusNotFound, status("http://"+s.addr+path), path)
	}
}
