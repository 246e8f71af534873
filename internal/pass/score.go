package pass

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

// readScore reads the role's score. A missing or out-of-range value is not a score.
func (r *Reading) readScore(s *pipeline.Score, reply string) {
	if s == nil {
		return
	}
	r.Score, r.ScoreWhy = scoreIn(*s, reply)
	if r.Score == nil {
		r.warn("No score %s: %s", s.Name, r.ScoreWhy)
	}
}

// scoreIn returns the score, or nil and why there is none.
func scoreIn(s pipeline.Score, reply string) (score *float64, why string) {
	found, err := matches("(?im)", s.Find, reply)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("the pattern cannot be used: %v", err)
	case len(found) == 0:
		return nil, "no match"
	}
	text := found[len(found)-1]
	if s.Take == "first" {
		text = found[0]
	}
	v, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return nil, fmt.Sprintf("%q is not a number", text)
	case len(s.Range) == 2 && !(s.Range[0] <= v && v <= s.Range[1]):
		return nil, fmt.Sprintf("%s is outside %g..%g", text, s.Range[0], s.Range[1])
	default:
		return &v, ""
	}
}

// readVerdict reads the review of a role, or else the last match of its pattern.
func (r *Reading) readVerdict(role pipeline.Role, reply string) {
	v := role.Verdict
	if role.Schema == pipeline.SchemaReview {
		review, err := readReview(reply)
		if err == nil {
			r.Review, r.Verdict = review, review.Verdict
			return
		}
		if v == nil || !errors.Is(err, errNoBlock) {
			r.failNoVerdict(err.Error())
			return
		}
	}
	if v == nil {
		return
	}
	found, err := matches("(?m)", v.Find, reply)
	switch {
	case err != nil:
		r.failNoVerdict(fmt.Sprintf("the pattern cannot be used: %v", err))
	case len(found) == 0:
		r.failNoVerdict("nothing matches " + v.Find)
	case found[len(found)-1] == "":
		r.failNoVerdict("the match of " + v.Find + " is empty")
	default:
		r.Verdict = found[len(found)-1]
	}
}

var markdownMarks = strings.NewReplacer("*", "", "`", "", "__", "")

// matches returns what the pattern's group matches, in the order of the text. Emphasis marks are removed first; a
// pattern that contains them is tried on the original text.
func matches(flags, find, reply string) ([]string, error) {
	re, err := regexp.Compile(flags + find)
	if err != nil {
		return nil, err
	}
	for _, text := range []string{markdownMarks.Replace(reply), reply} {
		if found := groups(re, text); len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

func groups(re *regexp.Regexp, text string) []string {
	var out []string
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		out = append(out, strings.TrimSpace(m[min(1, len(m)-1)]))
	}
	return out
}
