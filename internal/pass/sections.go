package pass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

const (
	repliesIntro  = "# What came before\n\nThe whole reply of the step before this one, as it was given."
	picturesIntro = "# Pictures\n\nOpen and inspect each of these files:"
	noPictures    = "# Pictures\n\nThere are no pictures of this round. Judge the page by its source instead."
	taskIntro     = "# The task\n\n"
	parentIntro   = "# The run that this one continues"
	feedbackIntro = "# The operator's feedback"
	steeringIntro = "# Instructions of the operator"
	tamperedIntro = "# Protected files\n\nThe last change also changed files that are protected. They were restored, " +
		"and every later change of them will be, too. Do the work without changing them."
	freshIntro = "# Passes only in the workspace\n\nThe work is accepted only if this also passes in a fresh folder. It has " +
		"the files of the work and what setting it up installs; files that git ignores, and what was installed by hand, are " +
		"missing there."
	answersIntro  = "An operator was asked about the work so far: "
	wanted        = "The operator answered:"
	artifactIntro = "# The artifact as it is now"
)

// context describes the agent's role, position and task.
func (r Request) context() string {
	v := r.Vars
	lines := []string{r.Wording.Words().Heading + " — " + strings.Join(strings.Fields(v.Description), " "), ""}
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	add("Role", v.Role)
	add("Pass", progress(v.Pass, v.Passes))
	add("Round", progress(v.Round, v.Rounds))
	add("Set", strings.Trim(v.Set+" — "+v.Theme, " —"))
	add("Produce", r.produce())
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func progress(n, total int) string {
	if n == 0 || total == 0 {
		return numberOrEmpty(n)
	}
	return fmt.Sprintf("%d of %d", n, total)
}

func (r Request) produce() string {
	switch r.Gives {
	case pipeline.GivesArtifact:
		file := r.Artifact.Label
		if file == "" {
			file = "the artifact"
		}
		return fmt.Sprintf(
			"the whole of %s, revised, from its first line to its last: in your reply in one fence, or as the file "+
				"of that "+
				"name in your working directory", file,
		)
	case pipeline.GivesChanges:
		return "changes to the files of your working directory, and a short report of them"
	case pipeline.GivesReport:
		return "a report, in words; change no files"
	default:
		return ""
	}
}

// fenced returns a heading and a fence for each text.
func fenced(texts []Text) string {
	sections := make([]string, len(texts))
	for i, t := range texts {
		sections[i] = heading(t.Label) + "\n\n" + fence("", t.Body)
	}
	return strings.Join(sections, "\n\n")
}

func withIntro(intro, body string) string {
	if body == "" {
		return ""
	}
	return intro + "\n\n" + body
}

// files returns the set's files in reading order, with the first one marked.
func (r Request) files() string {
	sections := make([]string, len(r.Files))
	for i, f := range r.Files {
		primacy := ""
		if i == 0 {
			primacy = r.Wording.Words().First
		}
		sections[i] = heading(fmt.Sprintf("[%d/%d] %s", i+1, len(r.Files), f.Label)) + primacy + "\n\n" +
			fence("", f.Body)
	}
	return strings.Join(sections, "\n\n")
}

func (r Request) artifact() string {
	if r.Artifact.Body == "" {
		return ""
	}
	return artifactIntro + "\n\n" + r.source()
}

func (r Request) source() string { return fence(language(r.Artifact.Label), r.Artifact.Body) }

// pictures lists the screenshots, or contains the artifact's source instead.
func (r Request) pictures() string {
	switch {
	case len(r.Pictures) > 0:
		return picturesIntro + "\n\n- " + strings.Join(r.Pictures, "\n- ")
	case r.Artifact.Body == "":
		return ""
	case slices.Contains(r.Gets, pipeline.PartArtifact) || placedParts(r.Template)[pipeline.PartArtifact]:
		return noPictures // the source is already in the prompt
	default:
		return noPictures + "\n\n" + r.source()
	}
}

// parent describes the run that this one follows up.
func (r Request) parent() string { return withIntro(parentIntro, strings.TrimSpace(r.Parent)) }

// steering lists the instructions of operators. The newest is the last.
func (r Request) steering() string {
	return withIntro(steeringIntro, strings.TrimSpace(strings.Join(r.Steering, "\n\n")))
}

// feedback returns the operator's feedback, after the question that it answers and what that was about.
func (r Request) feedback() string {
	text := strings.TrimSpace(r.Feedback)
	if r.Answers == nil || text == "" {
		return withIntro(feedbackIntro, text)
	}
	a := *r.Answers
	parts := []string{feedbackIntro, answersIntro + strings.Join(strings.Fields(a.Question), " ")}
	if a.Verdict != "" {
		parts[1] += fmt.Sprintf(" (verdict: %s)", strings.Join(strings.Fields(a.Verdict), " "))
	}
	if len(a.Outputs) > 0 {
		parts = append(parts, fenced(a.Outputs))
	}
	return strings.Join(append(parts, wanted, text), "\n\n")
}
