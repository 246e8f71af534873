package pass

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

var pa05 = &pipeline.Score{
	Name: "PA-05", Find: `PA-05(?:\s+(?:score|overall))?\W*([0-4](?:\.\d+)?)\s*/\s*4`, Take: "last",
	Range: []float64{0, 4},
}

func TestReadScore(t *testing.T) {
	first := *pa05
	first.Take = "first"
	for name, c := range map[string]struct {
		score *pipeline.Score
		reply string
		want  any
		why   string
	}{
		"plain":                     {pa05, "PA-05: 3.5/4", 3.5, ""},
		"overall, bold":             {pa05, "**PA-05 Overall: 3.5/4**", 3.5, ""},
		"score, bold":               {pa05, "**PA-05 Score:** 3.5/4", 3.5, ""},
		"name bold":                 {pa05, "**PA-05:** 3.5/4", 3.5, ""},
		"number bold":               {pa05, "PA-05: **3**/4", 3.0, ""},
		"number as code":            {pa05, "PA-05: `2.5` / 4", 2.5, ""},
		"the last one":              {pa05, "Last cycle PA-05: 2.5/4, now PA-05: **3.5**/4", 3.5, ""},
		"the first one":             {&first, "PA-05: 2.5/4, then PA-05: 3.5/4", 2.5, ""},
		"small letters":             {pa05, "pa-05 overall: 4/4", 4.0, ""},
		"nought":                    {pa05, "PA-05: 0/4", 0.0, ""},
		"above the range":           {pa05, "PA-05: 4.3/4", nil, "4.3 is outside 0..4"},
		"the last one out of range": {pa05, "PA-05: 3/4\nPA-05: 4.5/4", nil, "4.5 is outside 0..4"},
		"another question":          {pa05, "PA-05a DESIGNED: 3/4", nil, "no match"},
		"thirty-five":               {pa05, "PA-05: 35/4", nil, "no match"},
		"none":                      {pa05, "Ship it.", nil, "no match"},
		"a word": {&pipeline.Score{Find: `grade (\w+)`}, "grade good", nil,
			`"good" is not a number`},
		"a pattern with marks": {&pipeline.Score{Find: `\*\*(\d)\*\*`}, "so **3** then", 3.0, ""},
		"a broken pattern": {
			&pipeline.Score{Find: `(`}, "3", nil,
			"the pattern cannot be used: error parsing regexp: missing closing ): `(?im)(`",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(pipeline.Role{Gives: pipeline.GivesReport, Score: c.score}, nil, c.reply, nil, nil)
			require.Equal(t, run.CategoryOK, r.Outcome)
			require.Equal(t, c.why, r.ScoreWhy)
			if c.want == nil {
				require.Nil(t, r.Score)
				require.Equal(t, []string{"No score " + c.score.Name + ": " + c.why}, r.Validation.Warnings)
				return
			}
			require.NotNil(t, r.Score)
			require.Equal(t, c.want, *r.Score)
			require.Empty(t, r.Validation.Warnings)
		})
	}
}

func TestReadVerdict(t *testing.T) {
	status := &pipeline.Verdict{Find: `^STATUS: (done|more)$`}
	for name, c := range map[string]struct{ reply, want string }{
		"alone":         {"STATUS: done", "done"},
		"on a line":     {"Well.\nSTATUS: more\nBye.", "more"},
		"the last":      {"STATUS: more\nSTATUS: done\n", "done"},
		"windows lines": {"Well.\r\nSTATUS: done\r\n", "done"},
		"bold":          {"**STATUS: done**", "done"},
		"inside a line": {"The STATUS: done", ""},
		"another word":  {"STATUS: maybe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Read(pipeline.Role{Gives: pipeline.GivesReport, Verdict: status}, nil, c.reply, nil, nil)
			require.Equal(t, c.want, r.Verdict)
			require.Equal(t, c.want == "", len(r.Validation.Warnings) == 1)
			require.Equal(t, c.want == "", r.Outcome == run.CategoryValidationFailed,
				"a reply without its verdict is a failed attempt")
		})
	}
}

func TestReadCountsDepth(t *testing.T) {
	for name, c := range map[string]struct {
		reply string
		want  [3]int // -1: the heading is missing
	}{
		"marked headings": {
			"## WHAT IS DEEPLY INTEGRATED\n- a\n- b\n\n## WHAT IS SURFACE-LEVEL\n* c\n\n## WHAT IS ABSENT\n1. d\n2. " +
				"e\n3) " +
				"f\n## WHAT SURPRISED ME\n- no", [3]int{2, 1, 3},
		},
		"bold headings": {
			"**WHAT IS DEEPLY INTEGRATED:**\n- a\n\n**What is surface-level**\n- b\n- c\n\n**3. WHAT IS ABSENT**:\n- d",
			[3]int{1, 2, 1},
		},
		"capitals alone": {
			"WHAT IS DEEPLY INTEGRATED\n- a\n2. WHAT IS SURFACE-LEVEL\n- b\nABSENT:\n- c\n- d\n", [3]int{1, 1, 2},
		},
		"nested items": {
			"# DEEPLY INTEGRATED\n- a\n  - a1\n  - a2\n- b\n# SURFACE-LEVEL\n  - c\n    1. c1\n  - d\n# ABSENT\n",
			[3]int{2, 2, 0},
		},
		"none said": {
			"# DEEPLY INTEGRATED\n(none)\n# SURFACE-LEVEL\n- (none)\n# ABSENT\n- *None.*\n", [3]int{0, 0, 0},
		},
		"a heading missing": {"# DEEPLY INTEGRATED\n- a\n# ABSENT\n- b", [3]int{1, -1, 1}},
		"subheadings": {
			"## DEEPLY INTEGRATED\n### R1\n- a\n**More of it**\n- b\n## SURFACE-LEVEL\n## ABSENT\n", [3]int{2, 0, 0},
		},
		"bold items": {
			"# DEEPLY INTEGRATED\n- **R1**: yes\n* **R2**: yes\n# SURFACE-LEVEL\n# ABSENT", [3]int{2, 0, 0},
		},
		"prose is not a heading": {
			"# DEEPLY INTEGRATED\nNothing is absent here.\n- a\n# SURFACE-LEVEL\n- b\n", [3]int{1, 1, -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			role := pipeline.Role{Gives: pipeline.GivesReport, Tally: verifier.Tally}
			r := Read(role, nil, c.reply, nil, nil)
			missing := 0
			for i, want := range c.want {
				if want < 0 {
					missing++
					require.Nil(t, r.Tally[i].Count, r.Tally[i].Name)
				} else {
					require.NotNil(t, r.Tally[i].Count, r.Tally[i].Name)
					require.Equal(t, want, *r.Tally[i].Count, r.Tally[i].Name)
				}
			}
			require.Len(t, r.Validation.Warnings, missing)
		})
	}
}
