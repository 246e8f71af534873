package pass

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func TestHeadings(t *testing.T) {
	for line, want := range map[string]struct {
		level int
		text  string
	}{
		"## It":          {2, "It"},
		"**It**:":        {7, "It"},
		"3. __It__":      {7, "It"},
		"12) ABSENT":     {7, "ABSENT"},
		"ABCD":           {7, "ABCD"},
		"ABC":            {},
		"AB1C D":         {7, "AB1C D"},
		"A1BCD E":        {7, "A1BCD E"},
		"ABCD1":          {},
		"ABCD12":         {},
		"(ABCD)":         {},
		"ABCD e":         {},
		"":               {},
		"- ABCD":         {},
		"###### deepest": {6, "deepest"},
	} {
		level, text := headingOf(line)
		require.Equal(t, want.level, level, line)
		require.Equal(t, want.text, text, line)
	}
}

func TestTopItems(t *testing.T) {
	for section, want := range map[string]int{
		"- a\n- bbb":                    2,
		"- aaa\n- b":                    2,
		"  - a\n- b\n  - c\n- d":        2,
		"\t- a\n    - b\n        - c":   2,
		"text\n":                        0,
		"1. a\n2) b\n• c\n- none\n* d.": 4,
	} {
		require.Equal(t, want, topItems(strings.Split(section, "\n")), section)
	}
}

func TestReadTally(t *testing.T) {
	one, none := 1, 0
	role := pipeline.Role{Gives: pipeline.GivesReport, Tally: []pipeline.Tally{{Name: "open", Heading: "STILL TO DO"}}}
	r := Read(role, nil, "## Still to do\n- a\n", nil, nil)
	require.Equal(t, []run.Count{{Name: "open", Count: &one}}, r.Tally)
	require.Empty(t, r.Validation.Warnings)

	r = Read(role, nil, "## open\n- a\n", nil, nil)
	require.Equal(t, []run.Count{{Name: "open"}}, r.Tally)
	require.Equal(t, []string{`Heading "STILL TO DO" not found`}, r.Validation.Warnings)

	role.Tally = append(role.Tally, pipeline.Tally{Name: "done", Heading: "DONE"})
	r = Read(role, nil, "# STILL TO DO\n- a\n# DONE\n", nil, nil)
	require.Equal(t, []run.Count{{Name: "open", Count: &one}, {Name: "done", Count: &none}}, r.Tally)
}

func TestReadKeepsWholeFence(t *testing.T) {
	before := "<!-- version 2 -->\n"
	page := "<!DOCTYPE html>\n<html><body>a</body></html>"
	for name, row := range map[string]struct{ reply, want string }{
		"a comment before the page":       {"Here.\n```html\n" + before + page + "\n```\nDone.", before + page},
		"a fence that was never closed":   {"```html\n" + before + page, before + page},
		"an empty fence before":           {"```html\n```\nThe page:\n" + page, page},
		"an indented end":                 {"```html\n" + before + page + "\n  ```\n</html>", before + page},
		"a fence without a page before":   {"```html\n<p>\n```\n```html\n" + before + page + "\n```", before + page},
		"a page without a body":           {"<html><p>a</html>", "<html><p>a</html>"},
		"a mention of tags, then a page":  {"From <html> to </html>: " + page, page},
		"no end in a fence, then an end":  {"```html\n<p>a\n```\n" + page, page},
		"text after the end of the fence": {"```html\n" + page + "\n```\nEnd with </html>.", page},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, row.want, extract(row.reply)) })
	}
}

func TestReadMessages(t *testing.T) {
	long := strings.Repeat("ä", 60) + "<html>"
	r := Read(pipeline.Role{Gives: pipeline.GivesArtifact}, nil, long, nil, nil)
	require.Equal(t, `the reply breaks off after 66 characters, before </html>; it ends "`+strings.Repeat("ä", 34)+
		`<html>"`, r.Message)

	page := []byte("<html><p>a</html>")
	for name, row := range map[string]struct {
		file string
		want run.Category
	}{
		"a page":               {"<html><p>b</html>", run.CategoryOK},
		"two pages, one open":  {"<html></html><!DOCTYPE html>", run.CategoryOK},
		"a begun page":         {"<html><p>b", run.CategoryOutputTruncated},
		"the rest is left out": {"<p>b</p> <!-- rest", run.CategoryOutputTruncated},
		"the end of a page":    {"b</html><html>", run.CategoryOutputTruncated},
		"no page":              {"b", run.CategoryNoArtifact},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(pipeline.Role{Gives: pipeline.GivesArtifact}, nil, "Done.", []byte(row.file), page)
			require.Equal(t, row.want, r.Outcome, r.Message)
		})
	}
}

func TestReadValidation(t *testing.T) {
	build := pipeline.Role{Gives: pipeline.GivesArtifact}
	stored := func(n int) []byte { return []byte("<html>" + strings.Repeat("x", n-14) + "</html>") }
	require.Equal(t, run.Validation{Passed: true, Checks: []run.Check{}, Warnings: []string{}},
		Read(build, nil, "Done.", stored(2000), nil).Validation, "the newline at its end is a character")
	require.Equal(t, []string{"Artifact is short: 1999 characters"},
		Read(build, nil, "Done.", stored(1999), nil).Validation.Warnings)

	report := pipeline.Role{Gives: pipeline.GivesReport, Checks: []pipeline.Check{{Name: "has-one", Any: []string{"ONE"}}}}
	r := Read(report, nil, "two", nil, nil)
	require.Equal(t, run.CategoryValidationFailed, r.Outcome)
	require.Equal(t, "the reply has none of the sections it was asked for (has-one)", r.Message)
	require.Equal(t, []run.Check{{Name: "has-one", Detail: "none of: ONE"}}, r.Validation.Checks)
	report.Checks[0] = pipeline.Check{Name: "short", Over: 10}
	require.Equal(t, run.CategoryOK, Read(report, nil, "two", nil, nil).Outcome, "a wrong length is not a missing section")
}

func TestReadVerdictMessages(t *testing.T) {
	for name, row := range map[string]struct {
		verdict pipeline.Verdict
		reply   string
		want    string // the verdict, or why there is none
	}{
		"no match":         {pipeline.Verdict{Find: `SO: (\w+)`}, "x", `nothing matches SO: (\w+)`},
		"an empty match":   {pipeline.Verdict{Find: `SO:(\w*)`}, "SO:", `the match of SO:(\w*) is empty`},
		"a broken pattern": {pipeline.Verdict{Find: `(`}, "x", "the pattern cannot be used: error parsing regexp"},
		"no group":         {pipeline.Verdict{Find: `yes|no`}, "no, yes", "yes"},
		"two groups":       {pipeline.Verdict{Find: `(yes|no) (\w+)`}, "no more", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(pipeline.Role{Gives: pipeline.GivesReport, Verdict: &row.verdict}, nil, row.reply, nil, nil)
			if r.Outcome == run.CategoryOK {
				require.Equal(t, row.want, r.Verdict)
				return
			}
			require.Contains(t, r.Message, "the reply has no verdict: "+row.want)
			require.Contains(t, strings.Join(r.Validation.Warnings, "\n"), "No verdict: "+row.want)
		})
	}
}

func TestJSONBlocks(t *testing.T) {
	for text, want := range map[string][]string{
		"```json\n1\n```":                       {"1\n"},
		"```\n{\n```":                           {"{\n"},
		"```\n[1]\n```":                         {"[1]\n"},
		"```go\n{\n```":                         nil,
		"```JSON\n 1\n```\n```\n{}\n```":        {" 1\n", "{}\n"},
		"````json\n```\n1\n```x\n````":          {"```\n1\n```x\n"},
		"```json\n1\n```x\n2\n```":              {"1\n```x\n2\n"},
		"```json\n1\n``\n2\n````":               {"1\n``\n2\n"},
		"x\n```json\n1\n```\ny\n```json\n2\n":   {"1\n"},
		"```json\n\n1\n```\n``\n```json\n```\n": {"\n1\n", ""},
	} {
		require.Equal(t, want, jsonBlocks(text), text)
	}
}

func TestReadWholeReview(t *testing.T) {
	no := false
	got, err := readReview("```json\n[1\n```\n```json\n" + `{"verdict":"rejected","ship_ready":false,"summary":"s",
"findings":["f"],"blockers":[{"severity":"high","file":"b.go","line":2,"text":"b"}],"gaps":["g"]}` + "\n```")
	require.NoError(t, err)
	require.Equal(t, &Review{Verdict: "rejected", ShipReady: &no, Summary: "s", Findings: []Finding{{Text: "f"}},
		Blockers: []Finding{{Severity: "high", File: "b.go", Line: 2, Text: "b"}}, Gaps: []Finding{{Text: "g"}}}, got)

	got, err = readReview("```json\n{\"verdict\":\"incomplete\"}\n```")
	require.NoError(t, err)
	require.Equal(t, &Review{Verdict: "incomplete", Findings: []Finding{}, Blockers: []Finding{}, Gaps: []Finding{}}, got,
		"lists are never null")
}
