package e2e_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestConsoleOfAMovedDirectory moves the directory of a run on its host. No other host is named: the API and the page
// report where it was and what to do, and what the workflow reports.
func TestConsoleOfAMovedDirectory(t *testing.T) {
	t.Parallel()
	h := newEnv(t)
	dir, _ := h.linked()
	until(t, "the run asks", func() bool { return statusIs(dir, run.AwaitingPhaseHandoff) })
	path := "/runs/" + metaOf(t, dir).RunID
	token := strings.TrimSpace(h.starter("token", "create", "reader", "--can", "read"))
	base := h.console("").url
	get := func(status int, path string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		got, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer got.Body.Close()
		text, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.Equal(t, status, got.StatusCode, string(text))
		return string(text)
	}
	require.NoError(t, os.Rename(dir, h.dir("moved")))
	where := dir + ", where it was, has no such run; if the directory was moved, move it back; if it was deleted, run: " +
		"starter rebuild"
	about := get(http.StatusOK, "/v1"+path)
	require.Contains(t, about, where)
	require.Contains(t, about, `"host":""`)
	require.Contains(t, about, `"text":"Is this the right plan?"`)
	require.Contains(t, get(http.StatusNotFound, "/v1"+path+"/evidence"), where)
	page := get(http.StatusOK, path)
	require.Contains(t, page, "It was moved or deleted.")
	require.Contains(t, page, where)
	require.Contains(t, page, "Is this the right plan?")
	require.NoError(t, os.Rename(h.dir("moved"), dir))
	require.Contains(t, get(http.StatusOK, "/v1"+path), dir)
}
