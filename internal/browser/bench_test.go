package browser_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/browser"
)

// BenchmarkCycle is two sizes and three kinds: nine pictures of a page that is
// 3000 pixels high.
func BenchmarkCycle(b *testing.B) {
	exec, err := browser.Find("")
	require.NoError(b, err)
	page := browser.Page{HTML: markerPage(b), Name: "marker page"}
	for b.Loop() {
		_, err := browser.Shoot(b.Context(), browser.Options{Exec: exec}, page, cycle)
		require.NoError(b, err)
	}
}
