package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

const held = `case "$PASSBOOK_ITEM" in *p0001*|*p0003*) until [ -e "$LANES_LOG" ]; do sleep 0.1; done;; esac
echo new > "$PASSBOOK_ITEM"
echo changed
`

// TestWebUIShowsLanes reads in Temporal's Web UI which lanes of a run work, how many have ended, and their calls.
func TestWebUIShowsLanes(t *testing.T) {
	t.Parallel()
	release := filepath.Join(t.TempDir(), "release")
	h := sharedEnv(t, "LANES_LOG="+release)
	config, source := h.lanes(6, held, "{in: 'pages/*.txt', at_once: 3}")
	h.starter("run", "--config", config, "--source", source, "--output-dir", h.dir("run"), "--detach")
	until(t, "four lanes have ended", func() bool { return lanesDone(h.dir("run")) == 4 })
	w := h.webUI()
	page := ""
	until(t, "the page counts the lanes", func() bool {
		page = w.page(t, h.tab("run", "user-metadata"), "p0003")
		return strings.Contains(page, "4 of 6 lanes done, 2 active")
	})
	for _, text := range []string{"lane 2, pages/p0001.txt: workflow ", "lane 4, pages/p0003.txt: workflow "} {
		require.Contains(t, page, text)
	}
	for _, lane := range laneDirs(t, h.dir("run")) {
		if s := laneState(t, lane); !s.Status.Closed() {
			w.page(t, h.tab(filepath.Join("run", "lanes", "migrate", filepath.Base(lane)), "timeline"), "Turn")
		}
	}
	require.NoError(t, os.WriteFile(release, nil, 0o600))
	until(t, "the run is done", func() bool { return statusIs(h.dir("run"), run.Done) })
	require.Equal(t, "new\n", string(read(t, filepath.Join(h.dir("run"), "workspace", "pages", "p0003.txt"))))
	require.Contains(t, h.starter("status", h.dir("run")), "6 lanes")
}
