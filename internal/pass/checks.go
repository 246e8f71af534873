package pass

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/lazyregexp"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// shortArtifact is the length in characters below which an artifact causes a warning.
const shortArtifact = 2000

// check runs the role's checks on the artifact, or on the reply if there is none, and fills Validation.
func (r *Reading) check(role pipeline.Role, subject string) {
	var failed []string
	for _, c := range role.Checks {
		problem := failureOf(c, subject)
		r.Validation.Checks = append(r.Validation.Checks, run.Check{Name: c.Name, Passed: problem == "", Detail: problem})
		if problem != "" {
			failed = append(failed, c.Name)
		}
	}
	r.Validation.Passed = len(failed) == 0
	if r.Outcome == run.CategoryOK && structural(role, failed) {
		r.fail(run.CategoryValidationFailed, "the reply has none of the sections it was asked for (%s)",
			strings.Join(failed, ", "))
	}
	r.Validation.Passed = r.Validation.Passed && r.Outcome == run.CategoryOK
	if n := CountChars(string(r.Artifact)); r.Artifact != nil && n < shortArtifact {
		r.warn("Artifact is short: %d characters", n)
	}
}

func (r *Reading) warn(format string, args ...any) {
	r.Validation.Warnings = append(r.Validation.Warnings, fmt.Sprintf(format, args...))
}

// failureOf returns why a text fails a check, or "".
func failureOf(c pipeline.Check, text string) string {
	switch c.Name {
	case pipeline.CheckNonEmpty:
		return unlessOK(strings.TrimSpace(text) != "", "empty")
	case pipeline.CheckMinimumLength:
		n := CountChars(text)
		return unlessOK(n > c.Over, "%d characters, not more than %d", n, c.Over)
	case pipeline.CheckHTMLPresent:
		return unlessOK(htmlStart.MatchString(text), "neither <!DOCTYPE html> nor <html")
	case pipeline.CheckHTMLComplete:
		return unlessOK(htmlEnd.MatchString(text) && bodyEnd.MatchString(text), "no </html> or no </body>")
	case pipeline.CheckContainerWidth:
		return checkWidth(c.Between, text)
	default:
		return checkWords(c, text)
	}
}

func unlessOK(ok bool, format string, args ...any) string {
	if ok {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// maxWidth matches widths. One after an opening bracket is a condition of @media, @container or a media attribute.
var maxWidth = lazyregexp.New(`(?i)(\(\s*)?max-width\s*:\s*([0-9]{1,9}(?:\.[0-9]+)?)px`)

// checkWidth checks the largest max-width in pixels.
func checkWidth(between []int, text string) string {
	largest, found := 0.0, false
	for _, m := range maxWidth.FindAllStringSubmatch(text, -1) {
		if m[1] != "" {
			continue
		}
		if w, err := strconv.ParseFloat(m[2], 64); err == nil {
			largest, found = max(largest, w), true
		}
	}
	switch {
	case !found:
		return "no max-width in pixels"
	case len(between) == 2 && (largest < float64(between[0]) || largest > float64(between[1])):
		return fmt.Sprintf("the largest max-width is %gpx, not %d to %d", largest, between[0], between[1])
	default:
		return ""
	}
}

// checkWords checks words that must occur (case-sensitive) and words that must not (case-insensitive).
func checkWords(c pipeline.Check, text string) string {
	occurs := func(word string) bool { return strings.Contains(text, word) }
	if len(c.Any) > 0 && !slices.ContainsFunc(c.Any, occurs) {
		return "none of: " + strings.Join(c.Any, ", ")
	}
	lower := strings.ToLower(text)
	for _, word := range c.None {
		if strings.Contains(lower, strings.ToLower(word)) {
			return "holds " + word
		}
	}
	return ""
}
