package pass

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

// Read evaluates a reply. file is the artifact as the agent left it in its working copy, nil if unchanged; before
// is the artifact that the pass began with. The result depends only on the arguments.
func Read(role pipeline.Role, notes []pipeline.Note, reply string, file, before []byte) Reading {
	r := Reading{Reading: run.Reading{Outcome: run.CategoryOK,
		Validation: run.Validation{Checks: []run.Check{}, Warnings: []string{}}}}
	builds := role.Gives == pipeline.GivesArtifact
	wrote := builds && strings.TrimSpace(string(file)) != ""
	text := strings.ReplaceAll(reply, "\r\n", "\n")
	subject := text
	switch {
	case strings.TrimSpace(reply) == "" && !wrote:
		r.fail(run.CategoryOutputEmpty, "the reply is empty")
	case wrote:
		subject = r.readFile(string(file), before)
	case builds:
		subject = r.readReply(reply, before)
	}
	r.readNotes(role, notes, text)
	r.check(role, subject)
	r.readTally(role, text)
	r.readScore(role.Score, text)
	r.readVerdict(role, text)
	r.readData(role, text)
	return r
}

// failNoVerdict makes a reply without its required verdict unusable.
func (r *Reading) failNoVerdict(why string) {
	r.warn("No verdict: %s", why)
	if r.Outcome != run.CategoryOK {
		return
	}
	r.fail(run.CategoryValidationFailed, "the reply has no verdict: %s", why)
	r.Artifact, r.Modified, r.Validation.Passed = nil, false, false
}

func (r *Reading) fail(outcome run.Category, format string, args ...any) {
	r.Outcome, r.Message = outcome, fmt.Sprintf(format, args...)
}

// readFile reads the artifact from the file that the agent wrote. Only a file that contains or replaces a page can
// be a broken page.
func (r *Reading) readFile(file string, before []byte) string {
	page := htmlStart.MatchString(file) || htmlStart.Match(before)
	if page && !htmlStart.MatchString(file) && !isTruncated(file) {
		r.fail(run.CategoryNoArtifact, "the file the agent wrote holds no page: neither <!DOCTYPE html> nor <html")
		return file
	}
	if page && (isTruncatedHTML(file) || !htmlEnd.MatchString(file)) {
		r.fail(run.CategoryOutputTruncated,
			"the file the agent wrote breaks off after %d characters, before </html>; it ends %q", CountChars(file),
			lastChars(file))
		return file
	}
	return r.setArtifact(file, before)
}

// readReply reads the artifact from the reply.
func (r *Reading) readReply(reply string, before []byte) string {
	page := extract(reply)
	switch {
	case page != "":
		return r.setArtifact(page, before)
	case isTruncated(reply):
		r.fail(run.CategoryOutputTruncated, "the reply breaks off after %d characters, before </html>; it ends %q",
			CountChars(reply), lastChars(reply))
	default:
		r.fail(run.CategoryNoArtifact,
			"the agent wrote no new artifact to its file, and its reply holds no whole page: no html fence, and nothing "+
				"from <!DOCTYPE html> or <html to </html>")
	}
	return reply
}

func (r *Reading) setArtifact(artifact string, before []byte) string {
	r.Artifact = Stored(artifact)
	r.Modified = modified(before, r.Artifact)
	return string(r.Artifact)
}

// lastChars returns the end of a text.
func lastChars(text string) string {
	const most = 40
	text = strings.TrimSpace(text)
	runes := []rune(text[max(0, len(text)-most*utf8.UTFMax):]) // the text may be large
	return string(runes[max(0, len(runes)-most):])
}

// CountChars counts Unicode code points.
func CountChars(s string) int { return utf8.RuneCountInString(s) }

// structural reports whether a failed check means that a report has none of its required sections.
func structural(role pipeline.Role, failed []string) bool {
	return role.Gives == pipeline.GivesReport && slices.ContainsFunc(role.Checks, func(c pipeline.Check) bool {
		return len(c.Any) > 0 && slices.Contains(failed, c.Name)
	})
}
