package e2e_test

import (
	"flag"
	"maps"
	"math/rand"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/test/e2e/point"
)

// What chooses the points of a walk.
var (
	walkAll = flag.Bool("walk.all", false,
		"walk all points; without it, a sample: of each class the first, the last and some of the others")
	walkSeed = flag.Int64("walk.seed", 1, "of the sample")
	walkOnly = flag.String("walk.only", "", "walk only the points whose file and step match: -walk.only events.jsonl")
)

// sampleSize returns how many of a class's points are in a sample: the first, the last, and one of every thirty between
// them.
func sampleSize(points int) int { return min(points, 2+points/30) }

// choose returns the numbers of the points to walk, in order.
func choose(t *testing.T, points []point.Point, root string) []int {
	t.Helper()
	only, err := regexp.Compile(*walkOnly)
	require.NoError(t, err)
	classes := map[string][]int{}
	for _, p := range points {
		if only.MatchString(placeOf(p, root)) {
			classes[class(p, root)] = append(classes[class(p, root)], p.N)
		}
	}
	require.NotEmpty(t, classes, "no point matches -walk.only")
	random := rand.New(rand.NewSource(*walkSeed))
	var chosen []int
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		if numbers := classes[c]; *walkAll {
			chosen = append(chosen, numbers...)
		} else {
			chosen = append(chosen, sample(random, numbers)...)
		}
	}
	slices.Sort(chosen)
	return chosen
}

// sample returns the first and the last of ascending numbers, and random ones between them.
func sample(random *rand.Rand, numbers []int) []int {
	size := sampleSize(len(numbers))
	if size == len(numbers) {
		return numbers
	}
	out := []int{numbers[0], numbers[len(numbers)-1]}
	for _, i := range random.Perm(len(numbers) - 2)[:size-2] {
		out = append(out, numbers[1+i])
	}
	return out
}

func TestSampleHoldsFirstLastAndOthers(t *testing.T) {
	var hundred []int
	for n := range 100 {
		hundred = append(hundred, 3*n+1)
	}
	got := sample(rand.New(rand.NewSource(1)), hundred)
	require.Len(t, got, 5)
	require.Contains(t, got, 1)
	require.Contains(t, got, 298)
	slices.Sort(got)
	require.Len(t, slices.Compact(got), 5, "a point is chosen twice")
	require.Equal(t, got, slices.Sorted(slices.Values(sample(rand.New(rand.NewSource(1)), hundred))),
		"the seed decides")
	require.NotEqual(t, got, slices.Sorted(slices.Values(sample(rand.New(rand.NewSource(2)), hundred))))
	for n := range 4 {
		require.Len(t, sample(rand.New(rand.NewSource(1)), hundred[:n]), min(n, 2), "of %d", n)
	}
}
