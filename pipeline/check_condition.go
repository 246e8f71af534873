package pipeline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// domain is what a name of a condition can be. The zero value is any word or number.
type domain struct {
	words  []string    // if they can be listed
	ranges [][]float64 // of scores, if it is one
}

// checkPossible reports conditions that no result of the stage can meet.
func (d *decoder) checkPossible(at location, s Stage, u Until) {
	for _, group := range u.groups {
		for _, name := range (Until{groups: [][]comparison{group}}).Names() {
			var about []comparison
			for _, c := range group {
				if c.name == name {
					about = append(about, c)
				}
			}
			if why := d.domainOf(s, name).refuses(about); why != "" {
				d.wrong(at, "waits for %s", why)
			}
		}
	}
}

// domainOf returns what a name can be in a stage.
func (d *decoder) domainOf(s Stage, name string) domain {
	if _, gain := ScoreGain(name); gain {
		return domain{}
	}
	if words, known := d.possible(s, name); known && name != "score" {
		return domain{words: words}
	}
	var ranges [][]float64
	for _, p := range s.Steps {
		r, isRole := d.roleNamed(p.Role)
		if !isRole || r.Score == nil || name != "score" && name != p.As {
			continue
		}
		if len(r.Score.Range) != 2 || r.Score.Range[0] >= r.Score.Range[1] {
			return domain{} // reported by another check
		}
		ranges = append(ranges, r.Score.Range)
	}
	return domain{ranges: ranges}
}

// refuses returns why no value meets all comparisons of a name, or "".
func (v domain) refuses(all []comparison) string {
	for _, c := range all {
		switch {
		case v.meets(c):
		case len(v.words) > 0:
			return fmt.Sprintf("%s, and %s is only ever %s; write one of them", c, c.name,
				strings.Join(v.words, " or "))
		default:
			return fmt.Sprintf("%s, and %s is only ever %s; write a number in the range of its role", c, c.name,
				v.scale())
		}
	}
	if v.meets(all...) {
		return ""
	}
	texts := make([]string, len(all))
	for i, c := range all {
		texts[i] = c.String()
	}
	return strings.Join(texts, " and ") + ", which exclude each other; join them with or, or drop one of them"
}

func (v domain) scale() string {
	var texts []string
	for _, r := range v.ranges {
		texts = append(texts, fmt.Sprintf("from %g to %g", r[0], r[1]))
	}
	return strings.Join(texts, " or ")
}

// meets reports whether one value meets all comparisons.
func (v domain) meets(all ...comparison) bool {
	return slices.ContainsFunc(v.candidates(all), func(value string) bool {
		return !slices.ContainsFunc(all, func(c comparison) bool { return !c.holds(value) })
	})
}

// candidates lists values among which is one that meets the comparisons, if there is any: all words, or the bounds of
// the numbers and one between each two.
func (v domain) candidates(all []comparison) []string {
	if len(v.words) > 0 {
		return v.words
	}
	other, bounds := "other", []float64{}
	var values []string
	for _, c := range all {
		values, other = append(values, c.value), other+c.value
		if n, ok := untilNumber(c.value); ok {
			bounds = append(bounds, n-1, n, n+1)
		}
	}
	if len(v.ranges) == 0 {
		values = append(values, other)
	} else {
		values = nil
	}
	for _, r := range v.ranges {
		bounds = append(bounds, r...)
	}
	slices.Sort(bounds)
	for i, n := range bounds {
		values = v.add(values, n)
		if i > 0 {
			values = v.add(values, (bounds[i-1]+n)/2)
		}
	}
	return values
}

// add adds a number that is on the scale.
func (v domain) add(values []string, n float64) []string {
	within := func(r []float64) bool { return r[0] <= n && n <= r[1] }
	if len(v.ranges) > 0 && !slices.ContainsFunc(v.ranges, within) {
		return values
	}
	return append(values, strconv.FormatFloat(n, 'f', -1, 64))
}
