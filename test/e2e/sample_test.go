package e2e_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/test/e2e/point"
)

// What chooses the points of a walk.
var (
	walkAll  = flag.Bool("walk.all", false, "walk all points; without it, a sample of each class")
	walkSeed = flag.Int64("walk.seed", 1, "seed of the sample")
	walkOnly = flag.String("walk.only", "", "walk only the points whose file and step match: -walk.only events.jsonl")
)

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
		numbers := classes[c]
		if !*walkAll {
			random.Shuffle(len(numbers), func(i, j int) { numbers[i], numbers[j] = numbers[j], numbers[i] })
			numbers = numbers[:1]
		}
		chosen = append(chosen, numbers...)
	}
	slices.Sort(chosen)
	return chosen
}

var (
	digestName = regexp.MustCompile(`[0-9a-f]{64}`)
	uuidName   = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	tempName   = regexp.MustCompile(`\.tmp\.\w+`)
	number     = regexp.MustCompile(`[0-9]+`)
)

// placeOf describes a point without what differs from run to run: the file, and the step that comes next.
func placeOf(p point.Point, root string) string {
	if !filepath.IsAbs(p.Path) {
		return "call: " + p.At
	}
	path := strings.TrimPrefix(p.Path, root)
	_, path, _ = strings.Cut(strings.TrimPrefix(path, "/"), "/") // without the site
	path = digestName.ReplaceAllString(uuidName.ReplaceAllString(tempName.ReplaceAllString(path, ""), "ID"), "DIGEST")
	return fmt.Sprintf("%s: %s", number.ReplaceAllString(cmp.Or(path, "above"), "N"), p.At)
}

// fileKinds are what the files of a run are for; the first pattern that matches a place counts.
var fileKinds = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"call", regexp.MustCompile(`^call: `)},
	{"blobs", regexp.MustCompile(`^state/store/blobs`)},
	{"claims of calls", regexp.MustCompile(`^state/store/calls.*claim`)},
	{"results of calls", regexp.MustCompile(`^state/store/calls`)},
	{"stored checkpoints", regexp.MustCompile(`^state/store/checkpoints`)},
	{"journal", regexp.MustCompile(`^run/events\.jsonl`)},
	{"logs", regexp.MustCompile(`^run/(traces|provenance)\.jsonl|^run/_orchestrator/logs`)},
	{"checkpoints", regexp.MustCompile(`^run/_orchestrator/checkpoints`)},
	{"snapshots", regexp.MustCompile(`^run/snapshots`)},
	{"evidence", regexp.MustCompile(`^run/_orchestrator/(steps|passes)`)},
	{"inputs", regexp.MustCompile(`^run/_orchestrator/(inputs|pipeline|plan|policy)`)},
	{"claim", regexp.MustCompile(`^run/run\.json`)},
	{"state", regexp.MustCompile(`^run/(meta|result)\.json|^run/_orchestrator/state\.json`)},
	{"other", regexp.MustCompile(``)},
}

// stages groups the steps of a write by what a process that dies before them leaves behind.
var stages = map[string]string{
	// nothing, or a file that no program reads yet
	"create": "write", "write": "write", "sync": "write", "read back": "write",
	"middle of write": "half",
	"rename":          "publish", "link": "publish", "remove": "publish",
	"mkdir": "folder", "sync folder": "folder",
}

// class is the kind of file that a point is about and the stage of its write; of a call it is the turn of the call.
func class(p point.Point, root string) string {
	where := placeOf(p, root)
	for _, k := range fileKinds {
		if k.pattern.MatchString(where) {
			return k.name + ": " + cmp.Or(stages[p.At], p.At)
		}
	}
	return where
}
