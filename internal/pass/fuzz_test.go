package pass

import (
	"bytes"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
)

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"", "```html\n" + page("a") + "\n```" + blocks, page("a"), "<html", "...", "## ABSENT\n- a\n- (none)",
		"PA-05: 4.3/4", "STATUS: done\r\n",
		"````html\n```\n</html>", "\xff<!DOCTYPE html>\xfe</html>",
	} {
		f.Add(seed, seed, seed)
	}
	role := builder
	role.Tally, role.Score, role.Verdict = verifier.Tally, pa05, &pipeline.Verdict{Find: `^STATUS: (done|more)$`}
	f.Fuzz(func(t *testing.T, reply, file, before string) {
		r := Read(role, bothNotes, reply, []byte(file), []byte(before))
		if (r.Artifact != nil) != (r.Outcome == run.CategoryOK) {
			t.Fatalf("outcome %s with an artifact of %d bytes", r.Outcome, len(r.Artifact))
		}
		if (r.Message == "") != (r.Outcome == run.CategoryOK) {
			t.Fatalf("outcome %s with the message %q", r.Outcome, r.Message)
		}
		if r.Artifact != nil && !bytes.Equal(r.Artifact, Stored(string(r.Artifact))) {
			t.Fatalf("the artifact %q is not in its stored form", r.Artifact)
		}
		if len(r.Validation.Checks) != len(role.Checks) || len(r.Tally) != len(role.Tally) {
			t.Fatal("a check or a tally is missing")
		}
		report := Read(verifier, bothNotes, reply, nil, []byte(before))
		if report.Outcome == run.CategoryOutputTruncated || report.Outcome == run.CategoryNoArtifact ||
			report.Artifact != nil {
			t.Fatalf("a report is judged as an artifact: %s", report.Outcome)
		}
	})
}

func FuzzCompose(f *testing.F) {
	f.Add("{{references}} {{with.focus}}", "{{notes}}", "a", "```")
	f.Add(`\{{set}} {{set}}{{`, "````\n```", "x\n---\ny", "")
	f.Fuzz(func(t *testing.T, template, reference, artifact, label string) {
		r := full(template)
		r.References = []Text{{label, reference}}
		r.Artifact.Body = artifact
		prompt := Compose(r)
		if !strings.HasSuffix(prompt, "\n") {
			t.Fatal("no newline at the end")
		}
		if !strings.Contains(prompt, strings.TrimSpace(reference)) ||
			!strings.Contains(prompt, strings.TrimSpace(artifact)) {
			t.Fatal("a text did not come through as it is")
		}
		if prompt != Compose(r) {
			t.Fatal("not the same twice")
		}
	})
}
