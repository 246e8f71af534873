package activities

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/activities/contract"
)

// TestCallOfEarlierHistoryIsEnded: after a reset, the call that still works in the workspace is ended before the next
// one enters it, and before it is restored. What it leaves counts for nothing.
func TestCallOfEarlierHistoryIsEnded(t *testing.T) {
	for name, next := range map[string]func(h *trees){
		"by another call": func(h *trees) {
			h.in.DecisionID = "another question"
			require.Equal(h.t, edited, h.files(h.accepted().Changes.Tree))
		},
		"by a sync": func(h *trees) { h.carryTo(h.tree) },
	} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, `sh if mkdir "$`+folder+`/first"; then echo junk >junk.txt; exec sleep 600; fi; `+edit[len("sh "):])
			h.in.RunID = "run-1"
			first := h.begin(context.Background(), h.acts)
			h.awaitStart(1)
			h.await(func() bool {
				_, err := os.Stat(filepath.Join(h.workspace(), "junk.txt"))
				return err == nil
			})
			next(h)
			out := <-first
			require.ErrorContains(t, out.err, "its run has gone back")
			require.Equal(t, contract.InspectResult{}, h.inspect(h.tree))
			require.NoFileExists(t, filepath.Join(h.workspace(), "junk.txt"))
		})
	}
}
