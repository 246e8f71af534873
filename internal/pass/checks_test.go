package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func TestReadRunsEveryCheck(t *testing.T) {
	r := Read(builder, bothNotes, page("a")+blocks, nil, nil)
	require.Equal(t, run.Validation{Passed: true, Checks: []run.Check{
		{Name: "non-empty", Passed: true}, {Name: "minimum-length", Passed: true}, {Name: "html-present", Passed: true},
		{Name: "html-complete", Passed: true}, {Name: "container-width", Passed: true},
	}, Warnings: []string{}}, r.Validation)

	r = Read(verifier, bothNotes, "ABSENT "+strings.Repeat("words ", 100), nil, nil)
	require.Len(t, r.Validation.Checks, 4)
	require.True(t, r.Validation.Passed)
}

func TestFailedCheckKeepsArtifact(t *testing.T) {
	r := Read(builder, bothNotes, "```html\n<html><body>a</body></html>\n```"+blocks, nil, nil)
	require.Equal(t, run.CategoryOK, r.Outcome)
	require.Equal(t, "<html><body>a</body></html>\n", string(r.Artifact))
	require.False(t, r.Validation.Passed)
	require.Equal(t, []run.Check{
		{Name: "non-empty", Passed: true}, {Name: "minimum-length", Detail: "28 characters, not more than 500"},
		{Name: "html-present", Passed: true}, {Name: "html-complete", Passed: true},
		{Name: "container-width", Detail: "no max-width in pixels"},
	}, r.Validation.Checks)
	require.Equal(t, []string{"Artifact is short: 28 characters"}, r.Validation.Warnings)
}

func TestChecksApplyToArtifactFile(t *testing.T) {
	r := Read(builder, bothNotes, blocks, []byte(page("a")), nil)
	require.True(t, r.Validation.Passed, "a short reply beside a whole file")
}

func TestCheck(t *testing.T) {
	width := pipeline.Check{Name: "container-width", Between: []int{940, 960}}
	long := pipeline.Check{Name: "minimum-length", Over: 3}
	none := pipeline.Check{Name: "no-html-artifact", None: []string{"<!DOCTYPE html>", "<html"}}
	for name, c := range map[string]struct {
		check pipeline.Check
		text  string
		want  string
	}{
		"width within":           {width, "a{max-width: 940px}", ""},
		"width at the other end": {width, "a{MAX-WIDTH :960px}", ""},
		"width below":            {width, "a{max-width:800px}", "the largest max-width is 800px, not 940 to 960"},
		"the largest width counts": {
			width, "a{max-width:950px} img{max-width:1200.5px}", "the largest max-width is 1200.5px, not 940 to 960",
		},
		"a condition is not a width": {width, "@media (max-width: 1200px){a{max-width:950px}}", ""},
		"a second condition neither": {width, "@media (min-width:1px) and ( max-width:2000px){a{max-width:950px}}",
			""},
		"a condition alone":           {width, `<link media="(max-width: 950px)">`, "no max-width in pixels"},
		"no pixels":                   {width, "a{max-width:60ch}", "no max-width in pixels"},
		"not more than the length":    {long, "abc", "3 characters, not more than 3"},
		"characters, not bytes":       {long, "äöü", "3 characters, not more than 3"},
		"long enough":                 {long, "äöüß", ""},
		"an element that must not be": {none, "<HTML lang=en>", "holds <html"},
		"a doctype that must not be":  {none, "<!doctype html>", "holds <!DOCTYPE html>"},
		"nothing that must not be":    {none, "a page", ""},
		"one of the words":            {pipeline.Check{Name: "x", Any: []string{"A1", "B2"}}, "has B2", ""},
		"none of the words": {pipeline.Check{Name: "x", Any: []string{"A1", "B2"}}, "has b2",
			"none of: A1, B2"},
		"complete":                {pipeline.Check{Name: "html-complete"}, "</body></html>", ""},
		"complete without an end": {pipeline.Check{Name: "html-complete"}, "</body>", "no </html> or no </body>"},
		"present":                 {pipeline.Check{Name: "html-present"}, "<html>", ""},
		"absent":                  {pipeline.Check{Name: "html-present"}, "html", "neither <!DOCTYPE html> nor <html"},
		"blank":                   {pipeline.Check{Name: "non-empty"}, " \n", "empty"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, failureOf(c.check, c.text)) })
	}
}
