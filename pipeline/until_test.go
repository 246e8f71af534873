package pipeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUntilEval(t *testing.T) {
	for name, c := range map[string]struct {
		until      string
		values     map[string]string
		met, known bool
	}{
		"at the threshold":            {"score >= 3.5", map[string]string{"score": "3.5"}, true, true},
		"written otherwise":           {"score == 3.50", map[string]string{"score": "3.5"}, true, true},
		"below":                       {"score >= 3.5", map[string]string{"score": "3.25"}, false, true},
		"numbers are not texts":       {"score > 9", map[string]string{"score": "10"}, true, true},
		"many digits":                 {"score > 2.6", map[string]string{"score": "2.6666666666666665"}, true, true},
		"less":                        {"score < 2", map[string]string{"score": "-1"}, true, true},
		"at most":                     {"score <= 2", map[string]string{"score": "2"}, true, true},
		"another number":              {"score != 2", map[string]string{"score": "2.0"}, false, true},
		"no score":                    {"score >= 0", map[string]string{"score": "null"}, false, true},
		"no score is not another one": {"score != 2", map[string]string{"score": "null"}, false, true},
		"no verdict":                  {"verdict != rejected", map[string]string{"verdict": ""}, false, true},
		"a word":                      {"verdict == approved", map[string]string{"verdict": "approved"}, true, true},
		"a word in other letters":     {"verdict == approved", map[string]string{"verdict": "Approved"}, false, true},
		"another word":                {"verdict != rejected", map[string]string{"verdict": "approved"}, true, true},
		"a quoted text":               {`verdict == "ship it"`, map[string]string{"verdict": "ship it"}, true, true},
		"nothing yet":                 {"score >= 3.5", nil, false, false},
		"not all yet": {"verdict == done and tests == ok", map[string]string{"verdict": "done"}, false,
			false},
		"not all yet, with or": {"verdict == done or tests == ok", map[string]string{"verdict": "done"}, false,
			false},
		"both": {"verdict == done and tests == ok",
			map[string]string{"verdict": "done", "tests": "ok"}, true, true},
		"one of both": {"verdict == done and tests == ok",
			map[string]string{"verdict": "done", "tests": "failed"}, false, true},
		"either": {"verdict == done or tests == ok",
			map[string]string{"verdict": "more", "tests": "ok"}, true, true},
		"and binds tighter, left": {"a == 1 or b == 1 and c == 1", map[string]string{"a": "1", "b": "0", "c": "0"},
			true, true},
		"and binds tighter, right": {"a == 1 and b == 1 or c == 1", map[string]string{"a": "0", "b": "0", "c": "1"},
			true, true},
		"a word is not above": {"a > 1", map[string]string{"a": "high"}, false, true},
		"no gain yet": {"score >= 3.5 or score_gain(2) < 0.1", map[string]string{"score": "4", "score_gain(2)": "null"},
			true, true},
		"a small gain": {"score >= 3.5 or score_gain(2) < 0.1", map[string]string{"score": "3", "score_gain(2)": "0.05"},
			true, true},
		"a loss":         {"score_gain(2) < 0.1", map[string]string{"score_gain(2)": "-1"}, true, true},
		"without spaces": {"score>=3.5", map[string]string{"score": "4"}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := ParseUntil(c.until)
			require.NoError(t, err)
			met, known := u.Eval(c.values)
			require.Equal(t, c.met, met, "met")
			require.Equal(t, c.known, known, "known")
		})
	}
}

func TestParseUntilReportsProblems(t *testing.T) {
	for src, want := range map[string]string{
		"":        `"" ends in the middle of a comparison; write NAME == VALUE, such as score >= 3.5`,
		"score >": `"score >" ends in the middle of a comparison; write NAME == VALUE, such as score >= 3.5`,
		"score > 3 and": `"score > 3 and" ends in the middle of a comparison; write NAME == VALUE, ` +
			`such as score >= 3.5`,
		"score = 3":            `"=" is not a comparison in "score = 3"; write ==, !=, >=, >, <= or <`,
		"score > 3 nor a == 1": `cannot read "nor" after score > 3 in "score > 3 nor a == 1"; join comparisons with and, or`,
		"(score > 3)": `"(" is not a name in "(score > 3)"; write score, score_gain(N), verdict, or the ` + "`as`" +
			` of a step`,
		"and == 3": `"and" is not a name in "and == 3"; write score, score_gain(N), verdict, or the ` + "`as`" +
			` of a step`,
		"verdict > good": `"good" is not a number in "verdict > good"; only == and != compare words`,
		"score == good":  `"good" is not a number in "score == good"; compare score with a number`,
		"score_gain(0) < 1": `"score_gain(0)" is not a name in "score_gain(0) < 1"; write score, score_gain(N), verdict, ` +
			"or the `as` of a step",
		"score_gain(2) < no":  `"no" is not a number in "score_gain(2) < no"; only == and != compare words`,
		"score_gain(2) == no": `"no" is not a number in "score_gain(2) == no"; compare score_gain(2) with a number`,
		"verdict == (":        `"(" is not a value in "verdict == ("; write a number, a word, or a text in quotes`,
	} {
		t.Run(src, func(t *testing.T) {
			_, err := ParseUntil(src)
			require.EqualError(t, err, want)
		})
	}
}

func TestUntilNames(t *testing.T) {
	u, err := ParseUntil("verdict == done and tests == ok or verdict == never")
	require.NoError(t, err)
	require.Equal(t, []string{"verdict", "tests"}, u.Names())
}

func TestThreshold(t *testing.T) {
	bar := 3.5
	for until, want := range map[string]*float64{
		"score >= 3.5":                    &bar,
		"verdict == done and score > 3.5": &bar,
		"myscore >= 3.5":                  nil,
		"score < 3.5":                     nil,
		"verdict == 'score >= 3.5'":       nil,
		"score":                           nil,
	} {
		require.Equal(t, want, Repeat{Until: until}.Threshold(), until)
	}
}
