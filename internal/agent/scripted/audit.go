package scripted

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
)

var (
	question  = lazyregexp.New(`\bPA-\d+\b`)
	scoreLine = lazyregexp.New(`(?m)^\W*Score:\W*(\d+(?:\.\d+)?)\s*/\s*4\b`)
)

// The scale ends here.
const best = 4.0

// audit scores the page by its picture, or by its source if there is none.
func (c call) audit() (string, error) {
	polish, from, err := c.look()
	if err != nil {
		return "", err
	}
	score := 2.5 + 0.5*float64(polish) + map[string]float64{"A": -0.5, "C": 0.5}[c.letter]
	var b strings.Builder
	fmt.Fprintf(&b, "# Auditor %s\n\nSeen in %s: polish %d.\n\n", c.letter, from, polish)
	for _, q := range c.questions() {
		fmt.Fprintf(&b, "- %s: %s\n", q, answer(score))
	}
	fmt.Fprintf(&b, "\nScore: %s/4\n", decimal(min(score, best)))
	return b.String(), nil
}

func (c call) questions() []string {
	found := question.FindAllString(c.seen, -1)
	slices.Sort(found)
	return slices.Compact(found)
}

func answer(score float64) string {
	switch {
	case score >= 3.5:
		return "YES. It holds together."
	case score >= 2.5:
		return "CONDITIONAL. It is close."
	}
	return "NO. It looks assembled."
}

// weigh returns the mean of the auditors' scores, or none without scores.
func (c call) weigh() string {
	var sum float64
	scores := scoreLine.FindAllStringSubmatch(c.seen, -1)
	for _, m := range scores {
		score, _ := strconv.ParseFloat(m[1], 64)
		sum += score
	}
	if len(scores) == 0 {
		return "# Synthesis\n\nNo auditor gave a score, so there is none to weigh.\n"
	}
	mean := sum / float64(len(scores))
	advice := "More air above the headings, and one more turn of polish."
	if mean >= 3.5 {
		advice = "Ship it."
	}
	return fmt.Sprintf("# Synthesis\n\n%d auditors agree on the direction.\n\n## Direction\n%s\n\nPA-05: %s/4\n",
		len(scores), advice, decimal(mean))
}

// refine polishes the page by one.
func (c call) refine(r request) (string, error) {
	if c.page == nil {
		return "", errNoPage
	}
	c.page.polish++
	return c.page.reply(r), nil
}

// decimal writes one decimal, or two when one would lie.
func decimal(f float64) string {
	if one := strconv.FormatFloat(f, 'f', 1, 64); fmt.Sprintf("%.4f", f) == one+"000" {
		return one
	}
	return strconv.FormatFloat(f, 'f', 2, 64)
}
