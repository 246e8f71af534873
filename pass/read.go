package pass

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/pipeline"
)

// Read judges a reply. file is the artifact as the agent left it in its working copy, nil when it wrote none or left it unchanged;
// before is the artifact that the pass began with. The same reply is always read the same way.
func Read(role pipeline.Role, notes []pipeline.Note, reply string, file, before []byte) Reading {
	r := Reading{Outcome: OK}
	builds := role.Gives == pipeline.GivesArtifact
	wrote := builds && strings.TrimSpace(string(file)) != ""
	text := strings.ReplaceAll(reply, "\r\n", "\n")
	subject := text
	switch {
	case strings.TrimSpace(reply) == "" && !wrote:
		r.fail(OutputEmpty, "the reply is empty")
	case wrote:
		subject = r.takeFile(string(file), before)
	case builds:
		subject = r.takeReply(reply, before)
	}
	r.readNotes(role, notes, text)
	r.check(role, subject)
	r.readTally(role, text)
	r.readScore(role.Score, text)
	r.readVerdict(role.Verdict, text)
	return r
}

// unjudged makes a reply without the verdict that it was asked for one that cannot be used: what it decides stays open.
func (r *Reading) unjudged(why string) {
	r.warn("No verdict: %s", why)
	if r.Outcome != OK {
		return
	}
	r.fail(OutputNoVerdict, "the reply has no verdict: %s", why)
	r.Artifact, r.Modified, r.Validation.Passed = nil, false, false
}

func (r *Reading) fail(outcome Outcome, format string, args ...any) {
	r.Outcome, r.Message = outcome, fmt.Sprintf(format, args...)
}

// takeFile takes the artifact that the agent wrote. Only a file that holds or replaces a page can be a broken page.
func (r *Reading) takeFile(file string, before []byte) string {
	page := htmlStart.MatchString(file) || htmlStart.Match(before)
	if page && !htmlStart.MatchString(file) && !truncated(file) {
		r.fail(OutputNoArtifact, "the file the agent wrote holds no page: neither <!DOCTYPE html> nor <html")
		return file
	}
	if page && (begunHTML(file) || !htmlEnd.MatchString(file)) {
		r.fail(OutputTruncated, "the file the agent wrote breaks off after %d characters, before </html>; it ends %q", CountChars(file), tail(file))
		return file
	}
	return r.keep(file, before)
}

// takeReply takes the artifact out of the reply.
func (r *Reading) takeReply(reply string, before []byte) string {
	page := extract(reply)
	switch {
	case page != "":
		return r.keep(page, before)
	case truncated(reply):
		r.fail(OutputTruncated, "the reply breaks off after %d characters, before </html>; it ends %q", CountChars(reply), tail(reply))
	default:
		r.fail(OutputNoArtifact, "the reply holds no whole page: no html fence, and nothing from <!DOCTYPE html> or <html to </html>")
	}
	return reply
}

func (r *Reading) keep(artifact string, before []byte) string {
	r.Artifact = Stored(artifact)
	r.Modified = modified(before, r.Artifact)
	return string(r.Artifact)
}

// tail is where a text breaks off.
func tail(text string) string {
	runes := []rune(strings.TrimSpace(text))
	return string(runes[max(0, len(runes)-40):])
}

// CountChars counts characters the way people and logs do: Unicode code points.
func CountChars(s string) int { return utf8.RuneCountInString(s) }

// structural says whether a failed check means that the reply is not the answer that was asked for: a report without any of its sections.
func structural(role pipeline.Role, failed []string) bool {
	return role.Gives == pipeline.GivesReport && slices.ContainsFunc(role.Checks, func(c pipeline.Check) bool {
		return len(c.Any) > 0 && slices.Contains(failed, c.Name)
	})
}
