package activities

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/workflows/contract"
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

// TestUnstoredAnswerKeepsItsWorkspace: the disk was full when the answer was to be stored, and the run was paused. What the
// call left in the workspace is no edit, and is there when the answer is read. A run that goes back reads none.
func TestUnstoredAnswerKeepsItsWorkspace(t *testing.T) {
	for name, back := range map[string]bool{"resume": false, "revert": true} {
		t.Run(name, func(t *testing.T) {
			h := onTree(t, edit)
			h.in.RunID = "run-1"
			full, exited := h.worker(), atomic.Bool{}
			full.cfg.OnPoint = func(p Point, _ string) {
				if p == PointExited {
					exited.Store(true)
				}
			}
			full.openStore = func(ctx context.Context, url string) (*store.Store, error) {
				return store.OpenOn(ctx, disk.Disk{Hook: func(disk.Step) error {
					if exited.Load() {
						return syscall.ENOSPC
					}
					return nil
				}}, url)
			}
			_, err := h.passOf(t.Context(), full)
			failed(t, err, contract.ErrUnstored)
			if back {
				in := contract.InspectInput{Target: h.target(), Tree: &h.tree, Back: true}
				require.Len(t, must(do(t, h.acts.Inspect, in))(t).Recovered, 1)
				require.Equal(t, "a\n", read(t, filepath.Join(h.workspace(), "a.txt")))
				return
			}
			require.Equal(t, contract.InspectResult{}, h.inspect(h.tree))
			res := h.accepted()
			require.Equal(t, edited, h.files(res.Changes.Tree))
			require.Equal(t, 1, h.started())
			now := h.tree
			now.Tree = res.Changes.Tree
			require.Equal(t, contract.InspectResult{}, h.inspect(now), "the workspace is compared again")
		})
	}
}
