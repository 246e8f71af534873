package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/fakes3"
	"github.com/passbook-run/passbook/run"
)

// TestStoreAfterGC sweeps a store that two runs share, one of which is over and one of which rests, and then asks
// everything of it: the one is written again to the byte and promoted, the other goes on to its end, and both are
// sound.
func TestStoreAfterGC(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"file", "s3"} {
		t.Run(kind, func(t *testing.T) {
			url, extra := "", []string{"PASSBOOK_CONTINUE_AFTER=5"}
			if kind == "s3" {
				url = fakes3.Start(t)
				extra = append(extra, "PASSBOOK_STORE="+url)
			}
			h := newEnv(t, extra...)
			if kind == "file" {
				url = "file://" + filepath.Join(h.state(), "store")
			}
			over, rests := h.dir("over"), h.dir("rests")
			h.begin(over)
			h.finish(over)
			for _, counted := range []string{h.log, h.faults + ".attempts"} { // the other run's calls are counted anew
				require.NoError(t, os.Remove(counted))
			}

			h.spoil(slow("5", "600"))
			h.begin(rests)
			h.mid("005")
			s, err := store.Open(t.Context(), url)
			require.NoError(t, err)
			defer s.Close()
			garbage, err := s.Put(t.Context(), []byte("nobody names this"))
			require.NoError(t, err)
			h.starter("pause", rests, "--now")
			until(t, "the run rests", func() bool { return statusIs(rests, run.Paused) })

			require.Contains(t, h.starter("store", "gc", "--older-than", "0s", "--delete"), "Deleted: 1 objects, 17 B.")
			there, err := s.Has(t.Context(), garbage)
			require.NoError(t, err)
			require.False(t, there)

			h.sound(over)
			h.sound(rests)
			h.starter("promote", over, "--to", h.dir("out.html"))
			require.Equal(t, artifactOf(t, over), sum(read(t, h.dir("out.html"))))
			// the one file that no journal leads to
			require.NoError(t, os.Remove(filepath.Join(over, "promotions.jsonl")))
			whole, id := tree(t, over), metaOf(t, over).RunID
			require.NoError(t, os.RemoveAll(over))
			h.starter("rebuild", id, "--output-dir", over)
			sameTree(t, whole, tree(t, over))
			h.starter("resume", rests)
			h.finish(rests)
			h.undisturbed(rests, 1)
			h.sound(rests)
		})
	}
}
