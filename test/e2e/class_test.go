package e2e_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/test/e2e/point"
)

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
	// nothing, or a file that nobody reads yet
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

func TestClassOfAPoint(t *testing.T) {
	for _, row := range []struct {
		path, at string
		want     string
	}{
		{"g0.turns/1.8.-.1", "answered", "call: answered"},
		{"/r/site/run/events.jsonl", "middle of write", "journal: half"},
		{"/r/site/run/meta.json.tmp.4fd1", "read back", "state: write"},
		{"/r/site/run/_orchestrator/state.json.tmp.4fd1", "rename", "state: publish"},
		{"/r/site/run/_orchestrator/logs/cost.jsonl", "create", "logs: write"},
		{"/r/site/run/_orchestrator/passes/pass-012", "sync folder", "evidence: folder"},
		{"/r/site/state/store/calls/x/claim-1.tmp.01", "link", "claims of calls: publish"},
		{"/r/site/state/store/calls/x/result", "write", "results of calls: write"},
		{"/r/site/run/artifact.html", "sync", "other: write"},
		{"/r", "sync folder", "other: folder"},
	} {
		t.Run(row.want, func(t *testing.T) {
			require.Equal(t, row.want, class(point.Point{At: row.at, Path: row.path}, "/r"))
		})
	}
}
