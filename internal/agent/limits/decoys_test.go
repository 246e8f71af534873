package limits

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// quotes are how the output of a failed call quotes a text that is not a report about the account.
var quotes = []string{
	"--- FAIL: TestLimitMessage (0.00s)\n    limit_test.go:%d: got %q\nFAIL",
	"limits_test.go:%d: want %q, got \"\"\nexit status 1",
	"+\treturn errors.New(%[2]q)\n-\treturn nil // line %[1]d",
	"@@ -%d,2 +7,2 @@\n+%s\n-old",
	"src/limits.go:%d:\tcase strings.Contains(text, %q):",
	"make: *** [test] Error %d: %s",
	"AssertionError: expected %[2]q to equal \"ok\" in case %[1]d",
	"  %d | throw new Error('%s')",
	"> %[2]s\n\nquoted from line %[1]d of the issue; the build failed",
	"# case %d prints: %s\nmake: *** [check] Error 2",
	"curl: (22) The requested URL returned error: 429 (%d)\nbody: %s",
	"fixture %d: {\"error\":{\"type\":\"rate_limit_error\",\"message\":%q}}\nTests failed",
	"TestRateLimit%d: %s",
	"%[2]s\n--- FAIL: TestQuote%[1]d (0.01s)\nFAIL\tlimits\t0.2s",
	"if got := message(); got != %[2]q { t.Fatal(%[1]d) }",
	"grep: limits/table.go:%d: text: %s",
	"\"%[2]s\" is what TestMessage%[1]d prints",
	"panic: unexpected message in row %d: %s",
	"expected(%[1]d).toBe(`%[2]s`)",
	"const message%d = `%s`",
}

// TestDecoys makes 1,000 reports that quote the texts of limits, and requires that none is taken for one: all are of
// failed calls, in the error report, in the output and in standard error.
func TestDecoys(t *testing.T) {
	var texts []string
	for _, m := range messages(t) {
		texts = append(texts, m.Text)
	}
	r := rand.New(rand.NewPCG(1, 2))
	places := []func(*Report, string){
		func(r *Report, s string) { r.Text = s }, func(r *Report, s string) { r.Printed = s },
		func(r *Report, s string) { r.Stderr = s },
	}
	seen := map[string]bool{}
	for i := range 1000 {
		text := fmt.Sprintf(quotes[i%len(quotes)], 2+r.IntN(400), texts[r.IntN(len(texts))])
		if r.IntN(3) == 0 {
			text = strings.Repeat("ok   package\n", r.IntN(9)) + text + "\nerror: the build failed\n"
		}
		decoy := Report{Program: []string{"claude", "codex", "gemini", ""}[r.IntN(4)], Exit: 1 + r.IntN(2)}
		place := r.IntN(len(places))
		if place == 0 { // the first line of an error report is the program's own
			text = "Command failed with exit code 1\n" + text
		}
		places[place](&decoy, text)
		seen[text] = true
		got := decoy.Limit(time.Date(2026, 11, 22, 7, 0, 0, 0, time.UTC), time.UTC)
		require.Empty(t, got.Kind, "%d: %+v", i, decoy)
	}
	require.Greater(t, len(seen), 900)
}

// TestQuotedInErrorReport has the quote in the first line of the error report, too.
func TestQuotedInErrorReport(t *testing.T) {
	for _, text := range []string{
		"make: *** [test] Error 1: TestRateLimit: want 429, got 200",
		`"You've hit your limit · resets 3pm" is not shown`,
		"--- FAIL: TestLimit: You've hit your limit · resets 3pm",
		"limits_test.go:12: API Error: 529 Overloaded",
		"API Error: 400 prompt is too long: 429 tokens over the limit",
		"The handler returns 429 when the caller hits its rate limit",
		"Your quota will reset after 53s is the text shown",
		"I could not finish: the tests of overloaded_error and rate_limit_error fail",
	} {
		for _, program := range []string{"claude", "codex", "gemini", ""} {
			got := Report{Program: program, Text: text, Exit: 1}.Limit(time.Now(), time.UTC)
			require.Empty(t, got.Kind, "%s: %s", program, text)
		}
	}
}
