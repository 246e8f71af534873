package passbook_test

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/format"
)

// formats are the versions that a release freezes. A change of one after a release comes with the upgrade of older files
// ([format.State]) or their refusal, and an entry of CHANGELOG.md. Golden files hold formats that have no version: lines
// of events.jsonl (package run), definitions (pipeline/definition.schema.json), settings and commands (docs/cli).
var formats = map[string]string{
	// A run directory.
	"run.ClaimVersion":      "1", // run.json
	"run.StateVersion":      "2", // the state that events.jsonl folds into; also of a workflow that continues
	"rundir.MetaVersion":    "1", // meta.json
	"rundir.StateSchema":    "3", // state.json
	"rundir.ResultVersion":  "1", // result.json
	"pipeline.PlanVersion":  "2", // plan.json
	"rundir.SegmentVersion": "1", // archived segments of events.jsonl
	// A store.
	"run.CheckpointVersion":       "1",
	"internal/store/tree.version": "1", // manifests of snapshots
	// A state directory; format.json has the version of the whole.
	"internal/agent/gate.version":      "1",
	"internal/allow.version":           "1",
	"internal/calls.Version":           "1", // stored calls
	"internal/calls.AnswerVersion":     "2", // their answers
	"internal/environ.version":         "1",
	"internal/supervisor.Version":      "1", // between workers and supervisors, also of other releases
	"internal/workspace.recordVersion": "1",
	// Clients.
	"docs/openapi.json": "1", // HTTP API; MCP has the same operations
}

var nameOfVersion = regexp.MustCompile(`(^v|V)ersion$|Schema$`)

// TestFormatsOfARelease names everything that a release freezes, in one table.
func TestFormatsOfARelease(t *testing.T) {
	found := map[string]string{}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			for name, value := range numbers(d) {
				found[path.Dir(s.path)+"."+name] = value
			}
		}
	}
	api := regexp.MustCompile(`(?m)^ {4}"version": "(.+)"$`).FindStringSubmatch(read(t, "docs/openapi.json"))
	require.NotNil(t, api)
	found["docs/openapi.json"] = api[1]
	require.Equal(t, formats, found)
	require.Equal(t, 1, format.State().Version(), "no step upgrades state directories")
}

// numbers returns the constants of a declaration that are the number of a version.
func numbers(d ast.Decl) map[string]string {
	found := map[string]string{}
	g, ok := d.(*ast.GenDecl)
	if !ok || g.Tok != token.CONST {
		return nil
	}
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if i >= len(v.Values) || !nameOfVersion.MatchString(name.Name) {
				continue
			}
			if value, ok := v.Values[i].(*ast.BasicLit); ok && value.Kind == token.INT {
				found[name.Name] = value.Value
			}
		}
	}
	return found
}
