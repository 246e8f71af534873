package expression

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUses(t *testing.T) {
	for text, want := range map[string]string{
		"approved and tests.ok":                           "approved@1:0 tests.ok@1:13",
		"plan?.risk != 'none' or plan.files[0] == 'a'":    "plan?.risk@1:0 plan.files@1:24",
		"a.b.c > 1 and\n  a.b.c < 3 and a.x in [b]":       "a.b.c@1:0 a.x@2:16 b@2:24",
		"let x = 3; score > x":                            "score@1:11",
		"any(plan.files, # startsWith 'a' and n > 1)":     "plan.files@1:4 n@1:37",
		"len(scores) > 2 and scores[-1] - scores[-2] < 1": "scores@1:4",
		"true": "",
	} {
		e, err := Parse(text)
		require.NoError(t, err, text)
		var uses []string
		for _, u := range e.Uses() {
			text := u.String()
			if u.Safe {
				text = strings.Replace(text, ".", "?.", 1)
			}
			uses = append(uses, fmt.Sprintf("%s@%d:%d", text, u.Line, u.Column))
		}
		require.Equal(t, want, strings.Join(uses, " "), text)
	}
}

func TestParseReportsThePlace(t *testing.T) {
	for text, want := range map[string]Error{
		"score >= ":     {1, 8, "unexpected token EOF"},
		"a and\n and b": {2, 1, `unexpected token Operator("and")`},
		"score = 3":     {1, 6, `unexpected token Operator("=")`},
		"'half":         {1, 5, "literal not terminated"},
	} {
		_, err := Parse(text)
		require.Equal(t, &want, err, text)
	}
}

func TestCheckComparesTypes(t *testing.T) {
	known := Types{"score": Number, "tests": Object(map[string]Type{"ok": Bool, "exit": Whole, "output": String}),
		"plan": OfSchema(map[string]any{"type": "object", "properties": map[string]any{"risk": map[string]any{"type": "string"},
			"files": map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}}),
		"open": OfSchema(map[string]any{"type": "object"}), "any": Any}
	for text, want := range map[string]string{
		"score >= 3.5 and tests.ok": "", "tests.exit == 2": "", "'x' in plan.files": "", "open.what == 3": "",
		"any.thing > 2": "", "plan?.risk == 'low'": "", "len(plan.files) > 1": "", "tests.output contains 'error'": "",
		"score >= 'high'":     "invalid operation: >= (mismatched types float64 and string)",
		"tests.okay":          "unknown field okay",
		"plan.risk and true":  "invalid operation: and (mismatched types string and bool)",
		"score":               "expected bool, but got float64",
		"now() > score":       "unknown name now",
		"len(keys(plan)) > 1": "unknown name keys",
		"gone":                "unknown name gone",
		"tests.ok == 'yes'":   "invalid operation: == (mismatched types bool and string)",
	} {
		err := Check(text, known)
		if want == "" {
			require.NoError(t, err, text)
			continue
		}
		require.EqualError(t, err, want, text)
	}
}

func TestEval(t *testing.T) {
	values := map[string]any{"score": 2.5, "none": math.NaN(), "approved": true, "plan": map[string]any{"risk": "low",
		"files": []any{"a", "b"}, "n": 3.0}, "tests": map[string]any{"ok": false, "exit": 2,
		"output": strings.Repeat("line\n", 1<<18) + "error"}, "skipped": nil, "scores": []any{1.0, 2.5}, "round": 2,
		"hostile": "') or true or ('"}
	for text, want := range map[string]any{
		"score >= 2.5 and not tests.ok": true, "score == 2.5": true, "plan.n == 3": true, "tests.exit == 2": true,
		"tests.output endsWith 'error'": true, "none >= 0 or none < 0": false, "skipped?.risk == 'low'": false,
		"(skipped?.n ?? 0) > 1": false, "len(plan.files) == 2 and 'b' in plan.files": true, "scores[-1] - scores[-2] < 2": true,
		"hostile == 'x'": false, "round == 2": true, "plan.gone == nil": true,
		"skipped.risk == 'low'": "cannot fetch risk from <nil>", "skipped?.n > 1": "invalid operation: <nil> > int",
		"plan.risk > 3": "invalid operation: string > int", "plan.files[7] == 'a'": "index out of range: 7 (array length is 2)",
		"plan.risk": "invalid operation: bool(string)", "gone": "gone has no value",
		"len(1..1000000000) > 1": "memory budget exceeded",
	} {
		got, err := Eval(text, values)
		if message, fails := want.(string); fails {
			require.ErrorContains(t, err, message, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestShapeAndThreshold(t *testing.T) {
	shape := func(text string) string {
		e, err := Parse(text)
		require.NoError(t, err)
		return e.Shape()
	}
	require.Equal(t, shape("score >= 3.5 and tests.ok"), shape("score>=4 and tests.ok"))
	require.NotEqual(t, shape("score >= 3.5"), shape("score > 3.5"))
	require.NotEqual(t, shape("verdict == 'a'"), shape("verdict == 'b'"))
	for text, want := range map[string]float64{"score >= 3.5": 3.5, "approved and score > 2": 2, "score >= -1": -1,
		"score < 3": 0, "plan.score >= 3": 0, "3 <= score": 0} {
		e, err := Parse(text)
		require.NoError(t, err)
		if want == 0 {
			require.Nil(t, e.Threshold(), text)
			continue
		}
		require.Equal(t, want, *e.Threshold(), text)
	}
}

func TestPossible(t *testing.T) {
	of := func(u Use) []any {
		switch u.String() {
		case "a", "b.ok":
			return []any{true, false}
		case "n":
			return []any{0.0, 1.0, 2.0}
		case "w":
			return []any{"x", "y"}
		}
		return nil
	}
	for text, want := range map[string]bool{
		"a and b.ok": true, "a and not a": false, "n > 2": false, "n > 1 and b.ok": true, "w == 'z'": false,
		"w == 'x' and w == 'y'": false, "unknown and not unknown": true, "false": false, "n > 1 and n < 1 or a": true,
	} {
		e, err := Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, e.Possible(of), text)
	}
}

func TestNames(t *testing.T) {
	for word, want := range map[string]bool{"plan": true, "a_1": true, "not": false, "and": false, "a-b": false, "1a": false,
		"": false, "true": false, "nil": false, "in": false, "a.b": false, "let": false} {
		require.Equal(t, want, Name(word), word)
	}
}

func FuzzEval(f *testing.F) {
	for _, text := range []string{"approved and tests.ok", "plan?.risk != 'none'", "len(plan.files) > 2", "score >= 3.5",
		"map(plan.files, # + 'x') == ['a']", "let x = 1; x > 2", "1..3", "{a: 1}.a == 1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		for _, u := range e.Uses() {
			if u.Line < 1 || u.Column < 0 || len(u.Path) == 0 {
				t.Fatalf("%+v", u)
			}
		}
		values := map[string]any{"approved": true, "plan": map[string]any{"risk": "low", "files": []any{"a"}}, "score": 1.0,
			"tests": map[string]any{"ok": true}}
		first, err1 := Eval(text, values)
		second, err2 := Eval(text, values)
		if first != second || (err1 == nil) != (err2 == nil) {
			t.Fatalf("%q is %v, %v and then %v, %v", text, first, err1, second, err2)
		}
	})
}
