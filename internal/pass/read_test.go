package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

var (
	bothNotes = []pipeline.Note{
		{Name: "conviction", File: "conviction-layer.md", Marker: "CONVICTION_ADDITION"},
		{Name: "discovery", File: "discovery-log.md", Marker: "DISCOVERY_LOG"},
	}
	builder = pipeline.Role{
		Name: "builder", Gives: pipeline.GivesArtifact, Notes: []string{"conviction", "discovery"},
		Checks: []pipeline.Check{
			{Name: "non-empty"}, {Name: "minimum-length", Over: 500}, {Name: "html-present"}, {Name: "html-complete"},
			{Name: "container-width", Between: []int{940, 960}},
		},
	}
	verifier = pipeline.Role{
		Name: "verifier", Gives: pipeline.GivesReport, Notes: []string{"conviction", "discovery"},
		Checks: []pipeline.Check{
			{Name: "non-empty"}, {Name: "minimum-length", Over: 500},
			{Name: "has-observations", Any: []string{"DEEPLY INTEGRATED", "SURFACE-LEVEL", "ABSENT"}},
			{Name: "no-html-artifact", None: []string{"<!DOCTYPE html>", "<html"}},
		},
		Tally: []pipeline.Tally{{Name: "deep", Heading: "DEEPLY INTEGRATED"},
			{Name: "surface", Heading: "SURFACE-LEVEL"}, {
				Name: "absent", Heading: "ABSENT",
			}},
	}
)

var (
	judge = pipeline.Role{
		Name: "judge", Gives: pipeline.GivesReport, Verdict: &pipeline.Verdict{Find: `VERDICT: (\w*)`},
	}
	judgingBuilder = pipeline.Role{Name: "builder", Gives: pipeline.GivesArtifact, Verdict: judge.Verdict}
)

const blocks = "\n<!-- CONVICTION_ADDITION_START -->\nBorders speak.\n<!-- CONVICTION_ADDITION_END " +
	"-->\n<!--DISCOVERY_LOG_START-->one<!--  DISCOVERY_LOG_END  -->\n"

// page is a whole page of the width that the builder's check wants.
func page(body string) string {
	return "<!DOCTYPE html>\n<html>\n<style>main{max-width:950px}</style>\n<body>" + body + strings.Repeat("x", 2000) +
		"</body>\n</html>"
}

func TestReadExtractsArtifact(t *testing.T) {
	whole := page("one")
	sample := page("<pre>\n```\ncode\n```\n</pre>")
	lower := strings.ReplaceAll(strings.ToLower(whole), "<!doctype html>\n", "")
	fragment := "```html\n<div>only this</div>\n```\n"
	for name, c := range map[string]struct{ reply, file, want string }{
		"a fence": {
			reply: "Here it is.\n```html\n" + whole + "\n```\nDone." + blocks, want: whole,
		},
		"a fence of capital letters":             {reply: "```HTML\n" + whole + "\n```", want: whole},
		"a longer fence":                         {reply: "````html\n" + sample + "\n````", want: sample},
		"a fence that was never closed":          {reply: "```html\n" + whole + "\n", want: whole},
		"note blocks inside the fence":           {reply: "```html\n" + whole + blocks + "```", want: whole},
		"a fence that an inner fence ends early": {reply: "```html\n" + sample + "\n```\n", want: sample},
		"a fragment in a fence, then the page":   {reply: fragment + whole, want: whole},
		"a fragment and the page, both fenced":   {reply: fragment + "```html\n" + whole + "\n```", want: whole},
		"no fence, from the doctype on": {
			reply: "Sure!\n" + strings.ToLower(whole) + "\nBye", want: strings.ToLower(whole),
		},
		"no fence and no doctype":            {reply: "Sure!\n" + lower + "\nBye", want: lower},
		"the tags mentioned before the page": {reply: "From <!DOCTYPE html> to </html>:\n" + whole, want: whole},
		"windows lines": {
			reply: "```html\r\n" + strings.ReplaceAll(whole, "\n", "\r\n") + "\r\n```",
			want:  strings.ReplaceAll(whole, "\n", "\r\n"),
		},
		"the file it wrote": {
			reply: "I wrote the file." + blocks, file: "\n" + whole + "\n\n", want: whole,
		},
		"the file before the reply": {reply: "```html\n" + page("reply") + "\n```", file: whole,
			want: whole},
		"a file and no word":                      {file: whole, want: whole},
		"an emptied file and a page in the reply": {reply: whole, file: "\n", want: whole},
		"a discovery list that ends in dots":      {reply: whole + "\nand more...\n", want: whole},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(builder, bothNotes, c.reply, []byte(c.file), []byte(page("before")))
			require.Equal(t, run.CategoryOK, r.Outcome, r.Message)
			require.Equal(t, c.want+"\n", string(r.Artifact))
			require.True(t, r.Modified)
		})
	}
}

func TestReadRejectsUnusableReplies(t *testing.T) {
	cut := "<!DOCTYPE html>\n<html><body>" + strings.Repeat("y", 600)
	long := strings.Repeat("words ", 100)
	for name, c := range map[string]struct {
		role        pipeline.Role
		reply, file string
		want        run.Category
		message     string
	}{
		"nothing": {role: builder, want: run.CategoryOutputEmpty, message: "the reply is empty"},
		"white space": {
			role: verifier, reply: " \n\t", want: run.CategoryOutputEmpty, message: "the reply is empty",
		},
		"an empty file and no word": {
			role: builder, file: " ", want: run.CategoryOutputEmpty, message: "the reply is empty",
		},
		"a page that breaks off": {
			role: builder, reply: cut, want: run.CategoryOutputTruncated,
			message: "the reply breaks off after 628 characters",
		},
		"a page that breaks off in a fence": {
			role: builder, reply: "```html\n" + cut, want: run.CategoryOutputTruncated, message: "before </html>",
		},
		"three dots and a newline": {
			role: builder, reply: "Then I...\n", want: run.CategoryOutputTruncated, message: `it ends "Then I..."`,
		},
		"the rest left out": {
			role: builder, reply: "<p>so</p> <!-- rest", want: run.CategoryOutputTruncated, message: "breaks off",
		},
		"a file that breaks off": {
			role: builder, reply: page("x"), file: cut, want: run.CategoryOutputTruncated,
			message: "the file the agent wrote breaks off",
		},
		"words only": {
			role: builder, reply: "I changed nothing.", want: run.CategoryNoArtifact, message: "no whole page",
		},
		"a fragment": {
			role: builder, reply: "```html\n<div>a</div>\n```", want: run.CategoryNoArtifact, message: "no whole page",
		},
		"words only, and no checks": {
			role: pipeline.Role{Gives: pipeline.GivesArtifact}, reply: "I changed nothing.",
			want:    run.CategoryNoArtifact,
			message: "no whole page",
		},
		"a file without a page": {
			role: builder, reply: "done", file: "done", want: run.CategoryNoArtifact, message: "holds no page",
		},
		"a report without its verdict": {
			role: judge, reply: "Looks fine.", want: run.CategoryValidationFailed,
			message: `the reply has no verdict: nothing matches VERDICT: (\w*)`,
		},
		"an empty verdict": {
			role: judge, reply: "VERDICT: ", want: run.CategoryValidationFailed, message: "is empty",
		},
		"a page without its verdict": {
			role: judgingBuilder, reply: page("x"), want: run.CategoryValidationFailed, message: "no verdict",
		},
		"a file without its verdict": {
			role: judgingBuilder, reply: "done", file: page("x"), want: run.CategoryValidationFailed,
			message: "no verdict",
		},
		"a report without its sections": {
			role: verifier, reply: long, want: run.CategoryValidationFailed,
			message: "none of the sections it was asked for (has-observations)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(c.role, bothNotes, c.reply, []byte(c.file), []byte(page("before")))
			require.Equal(t, c.want, r.Outcome)
			require.Contains(t, r.Message, c.message)
			require.Nil(t, r.Artifact)
			require.False(t, r.Validation.Passed, "also where the role has no checks")
			require.False(t, r.Modified)
		})
	}
}

func TestReadOfNonBuilderRoles(t *testing.T) {
	long := "ABSENT " + strings.Repeat("words ", 100)
	for name, reply := range map[string]string{
		"a page that breaks off": long + "<html><body>",
		"three dots":             long + "...",
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(verifier, nil, reply, nil, []byte(page("before")))
			require.Equal(t, run.CategoryOK, r.Outcome, r.Message)
		})
	}
	r := Read(builder, nil, "done", []byte("# A text...\n"), []byte("# An older text\n"))
	require.Equal(t, run.CategoryOK, r.Outcome, "an artifact that never was a page need not be one")
	require.Equal(t, "# A text...\n", string(r.Artifact))
}

func TestReadDetectsModifiedArtifact(t *testing.T) {
	for name, c := range map[string]struct {
		before string
		want   bool
	}{
		"the same bytes":          {page("a") + "\n", false},
		"without a final newline": {page("a"), false},
		"with spaces at the end":  {page("a") + " \r\n\n", false},
		"another word":            {page("b"), true},
		"another space inside":    {page(" a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(builder, nil, page("a"), nil, []byte(c.before))
			require.Equal(t, c.want, r.Modified)
			require.Equal(t, page("a")+"\n", string(r.Artifact))
		})
	}
}

func TestReadUsesFirstMarkedBlocks(t *testing.T) {
	twice := strings.Replace(blocks, "Borders speak.", "  Later.  ", 1)
	for name, c := range map[string]struct {
		reply    string
		want     []Text
		warnings []string
	}{
		"both":    {blocks, []Text{{"conviction", "Borders speak."}, {"discovery", "one"}}, []string{}},
		"twice":   {blocks + twice, []Text{{"conviction", "Borders speak."}, {"discovery", "one"}}, []string{}},
		"trimmed": {twice, []Text{{"conviction", "Later."}, {"discovery", "one"}}, []string{}},
		"no discovery": {
			strings.ReplaceAll(blocks, "DISCOVERY", "X"), []Text{{"conviction", "Borders speak."}},
			[]string{"Discovery log entry missing"},
		},
		"an empty block": {
			strings.Replace(blocks, ">one<", "> <", 1), []Text{{"conviction", "Borders speak."}},
			[]string{"Discovery log entry missing"},
		},
		"a block not ended": {
			"<!-- DISCOVERY_LOG_START --> one", nil,
			[]string{"Conviction layer entry missing", "Discovery log entry missing"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(builder, bothNotes, page("a")+c.reply, nil, nil)
			require.Equal(t, c.want, r.Notes)
			require.Equal(t, c.warnings, r.Validation.Warnings)
		})
	}
	r := Read(verifier, bothNotes, "ABSENT "+strings.Repeat("words ", 100), nil, nil)
	require.NotContains(t, strings.Join(r.Validation.Warnings, "\n"), "entry missing", "only builders are asked")
	r = Read(pipeline.Role{Gives: pipeline.GivesReport}, bothNotes, blocks, nil, nil)
	require.Empty(t, r.Notes, "a role adds to its own notes only")
}
