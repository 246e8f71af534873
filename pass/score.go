package pass

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

// readScore finds the role's score. What is out of range or absent is no score, never a guess.
func (r *Reading) readScore(s *pipeline.Score, reply string) {
	if s == nil {
		return
	}
	r.Score, r.ScoreText = scoreIn(*s, reply)
	if r.Score == nil {
		r.warn("No score %s: %s", s.Name, r.ScoreText)
	}
}

// scoreIn is the score, or nil and why there is none.
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

// readVerdict finds the last word that the role's pattern matches.
func (r *Reading) readVerdict(v *pipeline.Verdict, reply string) {
	if v == nil {
		return
	}
	found, err := matches("(?m)", v.Find, reply)
	switch {
	case err != nil:
		r.unjudged(fmt.Sprintf("the pattern cannot be used: %v", err))
	case len(found) == 0:
		r.unjudged("nothing matches " + v.Find)
	case found[len(found)-1] == "":
		r.unjudged("the match of " + v.Find + " is empty")
	default:
		r.Verdict = found[len(found)-1]
	}
}

var markdownMarks = strings.NewReplacer("*", "", "`", "", "__", "")

// matches lists what the pattern's group takes, in the order of the text. Marks of emphasis are looked through; a pattern that asks
// for them is tried on the text as it is.
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
