package pass_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/pass"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func TestReadScope(t *testing.T) {
	for name, row := range map[string]struct {
		reply string
		want  []string
		warns string // empty: nothing
	}{
		"declared": {"Plan.\n```json\n{\"scope\": [\"src/\", \"**/*_test.go\"]}\n```",
			[]string{"src/", "**/*_test.go"}, ""},
		"the last block counts": {"```json\n{\"scope\": [\"a\"]}\n```\n```json\n{\"scope\": [\"b\"]}\n```",
			[]string{"b"}, ""},
		"another block follows": {"```json\n{\"scope\": [\"a\"]}\n```\n```json\n{\"x\": 1}\n```", []string{"a"}, ""},
		"none":                  {"Plan.", nil, "no JSON block has scope"},
		"no list":               {"```json\n{\"scope\": \"src\"}\n```", nil, "has no list of paths"},
		"a path that is none": {"```json\n{\"scope\": [\"/etc\", \"a\"]}\n```", []string{"a"},
			`"/etc", which is an absolute`},
	} {
		t.Run(name, func(t *testing.T) {
			role := pipeline.Role{Name: "planner", Gives: pipeline.GivesReport, Scope: pipeline.ScopeReply}
			got := pass.Read(role, nil, row.reply, nil, nil)
			require.Equal(t, run.CategoryOK, got.Outcome, "a reply without a scope is accepted")
			require.Equal(t, row.want, got.Scope)
			warnings := strings.Join(got.Validation.Warnings, "\n")
			require.Equal(t, row.warns == "", warnings == "")
			require.Contains(t, warnings, row.warns)
		})
	}
}

func TestComposeScopeAndProtectedFiles(t *testing.T) {
	prompt := pass.Compose(pass.Request{Template: "Plan it.", Scope: true, Tampered: "By worker: test.sh (changed)"})
	require.Less(t, strings.Index(prompt, "test.sh (changed)"), strings.Index(prompt, "Plan it."))
	require.Greater(t, strings.Index(prompt, `{"scope": [`), strings.Index(prompt, "Plan it."))
	require.NotContains(t, pass.Compose(pass.Request{Template: "Plan it."}), "Protected files")
}
