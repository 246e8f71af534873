package workflows_test

import (
	"cmp"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"runtime/coverage"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"github.com/passbook-run/passbook/test/histories"
)

var recordFrom = flag.String("record", "", "choose the stored histories afresh from those in this folder")

// TestRecord replaces the stored histories by a small choice from a folder that has everything that is required, and
// executes every statement that any of them executes.
func TestRecord(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("histories are recorded with -record FOLDER only")
	}
	require.Equal(t, "atomic", testing.CoverMode(), "record with -covermode atomic")
	paths, err := filepath.Glob(filepath.Join(*recordFrom, "*"+histories.Suffix))
	require.NoError(t, err)
	candidates := map[string]candidate{}
	for _, path := range paths {
		h, err := histories.Read(path)
		require.NoError(t, err)
		if histories.Replay(h, histories.Options{}) != nil {
			continue // recorded by other code, or with a secret that only its worker removes
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		candidates[strings.TrimSuffix(filepath.Base(path), histories.Suffix)] = candidate{h, info.Size(), detected(t, h)}
	}
	chosen, missing := cover(required(t), candidates)
	require.Empty(t, missing, "no test of test/e2e executes these")
	chosen = append(chosen, wider(t, chosen, candidates)...)
	old, err := filepath.Glob(filepath.Join(stored, "*"+histories.Suffix)) // beside them is the list of releases
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	for _, name := range chosen {
		require.NoError(t, histories.Write(stored, name, candidates[name].history))
	}
	t.Logf("stored %d of %d histories, which execute %.1f %% of the statements", len(chosen), len(candidates),
		100*testing.Coverage())
}

// wider lists the histories that execute a statement which neither the chosen ones nor the others listed execute.
func wider(t *testing.T, chosen []string, from map[string]candidate) (added []string) {
	t.Helper()
	bySize := slices.SortedFunc(maps.Keys(from), func(a, b string) int {
		return cmp.Or(cmp.Compare(from[a].size, from[b].size), cmp.Compare(a, b))
	})
	for range 2 { // the second time in the opposite order: it leaves out what later ones made superfluous
		require.NoError(t, coverage.ClearCounters())
		replayed(t, chosen, from)
		added = nil
		for _, name := range bySize {
			before := testing.Coverage()
			if replayed(t, []string{name}, from); testing.Coverage() > before {
				added = append(added, name)
			}
		}
		bySize = slices.Clone(added)
		slices.Reverse(bySize)
	}
	return added
}

func replayed(t *testing.T, names []string, from map[string]candidate) {
	t.Helper()
	for _, name := range names {
		require.NoError(t, histories.Replay(from[name].history, histories.Options{}))
	}
}

// candidate is a recorded history.
type candidate struct {
	history *historypb.History
	size    int64
	parts   []histories.Part // that it protects
}

// detected lists the parts of a history at which an additional command makes its replay fail. Of parts where none can
// be planted, it lists those that occur.
func detected(t *testing.T, h *historypb.History) []histories.Part {
	t.Helper()
	return slices.DeleteFunc(partsOf(t, h), func(p histories.Part) bool {
		return plantable(p) && !detects(h, p)
	})
}

// cover chooses histories until they have all parts: each time the one that adds most for its size.
func cover(required []histories.Part, from map[string]candidate) (chosen []string, missing []histories.Part) {
	missing = slices.Clone(required)
	for len(missing) > 0 {
		best, most := "", 0.0
		for name, c := range from {
			gain := float64(len(missing)-len(without(missing, c.parts))) / float64(c.size+4<<10)
			if gain > most || gain == most && gain > 0 && name < best {
				best, most = name, gain
			}
		}
		if best == "" {
			return chosen, missing
		}
		chosen, missing = append(chosen, best), without(missing, from[best].parts)
	}
	return chosen, nil
}

// without are the required parts that do not occur among others.
func without(required, others []histories.Part) []histories.Part {
	return slices.DeleteFunc(slices.Clone(required), func(p histories.Part) bool {
		return slices.ContainsFunc(others, func(other histories.Part) bool { return p.Covers(other) })
	})
}

// The choice has every part, and says what nothing has.
func TestCover(t *testing.T) {
	from := map[string]candidate{
		"large": {size: 1 << 20, parts: []histories.Part{"signal pause", "signal decide", "timer until 12:00"}},
		"one":   {size: 10, parts: []histories.Part{"signal pause"}},
		"two":   {size: 10, parts: []histories.Part{"signal decide", "signal pause"}},
	}
	chosen, missing := cover([]histories.Part{"signal pause", "signal decide"}, from)
	require.Equal(t, []string{"two"}, chosen)
	require.Empty(t, missing)
	chosen, missing = cover([]histories.Part{"signal decide", "timer until ", "reset"}, from)
	require.Equal(t, []string{"two", "large"}, chosen)
	require.Equal(t, []histories.Part{"reset"}, missing)
}
