package workflows_test

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"

	"github.com/passbook-run/passbook/test/histories"
)

var recordFrom = flag.String("record", "", "choose the historiesDir histories afresh from those in this folder")

// TestRecord replaces the historiesDir histories by a small choice from a folder that has everything that is required, and
// executes every statement that any of them executes.
func TestRecord(t *testing.T) {
	if *recordFrom == "" {
		t.Skip("histories are recorded with -record FOLDER only")
	}
	require.NotEmpty(t, testing.CoverMode(), "record with -cover")
	candidates, chosen := candidatesIn(t, *recordFrom)
	missing := required(t)
	for _, name := range chosen {
		candidates[name] = candidate{candidates[name].history, candidates[name].size, detected(t, candidates[name].history)}
		missing = without(missing, candidates[name].parts)
	}
	for name, c := range candidates {
		if c.parts == nil && len(missing) > 0 {
			candidates[name] = candidate{c.history, c.size, detected(t, c.history)}
		}
	}
	more, missing := cover(missing, candidates)
	require.Empty(t, missing, "no test of test/e2e executes these")
	chosen = append(chosen, more...)
	old, err := filepath.Glob(filepath.Join(historiesDir, "*"+histories.Suffix)) // beside them is the list of releases
	require.NoError(t, err)
	for _, path := range old {
		require.NoError(t, os.Remove(path))
	}
	for _, name := range chosen {
		require.NoError(t, histories.Write(historiesDir, name, candidates[name].history))
	}
	t.Logf("historiesDir %d of %d histories", len(chosen), len(candidates))
}

// candidatesIn reads the histories in a folder that replay, and lists those that execute a statement which no smaller
// one executes.
func candidatesIn(t *testing.T, folder string) (all map[string]candidate, widening []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"+histories.Suffix))
	require.NoError(t, err)
	size := map[string]int64{}
	for _, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		size[path] = info.Size()
	}
	slices.SortStableFunc(paths, func(a, b string) int { return cmp.Compare(size[a], size[b]) })
	all = map[string]candidate{}
	for _, path := range paths {
		h, err := histories.Read(path)
		require.NoError(t, err)
		before := testing.Coverage()
		if histories.Replay(h, histories.Options{}) != nil {
			continue // recorded by other code, or with a secret that only its worker removes
		}
		name := strings.TrimSuffix(filepath.Base(path), histories.Suffix)
		if all[name] = (candidate{history: h, size: size[path]}); testing.Coverage() > before {
			widening = append(widening, name)
		}
	}
	return all, widening
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
