package pass

import (
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/pipeline/template"
)

// separator separates the sections of a prompt.
const separator = "\n\n---\n\n"

// Compose composes a prompt. The template is its last section. Parts that the template does not place come before
// it, in the order of the pipeline's Part constants, then the operator's feedback and instructions. The form of the
// JSON that the reply ends with follows it.
func Compose(r Request) string {
	placed := placedParts(r.Template)
	sections := []string{strings.TrimSpace(r.Adopted)}
	for _, part := range template.Parts() {
		if slices.Contains(r.Gets, part) && !placed[part] {
			sections = append(sections, r.part(part))
		}
	}
	if !placed[template.Parent] {
		sections = append(sections, r.parent())
	}
	if !placed["task"] && r.Vars.Task != "" {
		sections = append(sections, taskIntro+r.Vars.Task)
	}
	if !placed["item"] && r.Vars.Item != "" {
		sections = append(sections, itemIntro+r.Vars.Item)
	}
	if !placed[template.Feedback] {
		sections = append(sections, r.feedback())
	}
	sections = append(sections, r.steering(), withIntro(tamperedIntro, r.Tampered),
		withIntro(freshIntro, strings.Join(r.Fresh, "\n\n")), strings.TrimSpace(r.task()))
	switch r.Schema {
	case "":
	case pipeline.SchemaReview:
		sections = append(sections, verdictRequest)
	default:
		sections = append(sections, dataRequest+fence("json", strings.TrimSpace(r.SchemaText)))
	}
	sections = append(sections, withIntro(misfitIntro, r.Misfit))
	sections = slices.DeleteFunc(sections, func(s string) bool { return s == "" })
	return strings.Join(sections, separator) + "\n"
}

func placedParts(src string) map[string]bool {
	placed := map[string]bool{}
	for _, p := range template.Scan(src) {
		placed[p.Name] = true
	}
	return placed
}

// task expands the template in one pass.
func (r Request) task() string {
	var b strings.Builder
	for _, p := range template.Scan(r.Template) {
		b.WriteString(r.fill(p))
	}
	return b.String()
}

func (r Request) fill(p template.Piece) string {
	switch {
	case p.Name == template.Feedback:
		return r.feedback()
	case p.Name == template.Parent:
		return r.parent()
	case slices.Contains(template.Parts(), p.Name):
		return r.part(p.Name)
	}
	if text, known := r.Vars.lookup(p); known {
		return text
	}
	return p.Text // literal, or unknown
}

// part returns one part of the prompt as a section, or "" if it is empty.
func (r Request) part(name string) string {
	switch name {
	case pipeline.PartContext:
		return r.context()
	case pipeline.PartReferences:
		return fenced(r.References)
	case pipeline.PartNotes:
		return withIntro(r.Wording.Words().Notes, fenced(r.Notes))
	case pipeline.PartReplies:
		return withIntro(repliesIntro, fenced(r.Replies))
	case pipeline.PartPictures:
		return r.pictures()
	case pipeline.PartArtifact:
		return r.artifact()
	case pipeline.PartFiles:
		return r.files()
	default:
		return fenced(r.Content)
	}
}
