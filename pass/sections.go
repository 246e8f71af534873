package pass

import (
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
)

const (
	notesIntro = "# What earlier passes left behind\n\n" +
		"Read this as atmosphere: the convictions and discoveries of those who worked before you. It is not a list of instructions."
	repliesIntro   = "# What came before\n\nThe whole reply of the step before this one, as it was given."
	picturesIntro  = "# Pictures\n\nOpen each of these files and look at it:"
	noPictures     = "# Pictures\n\nThere are no pictures of this round. Judge the page by its source instead."
	taskIntro      = "# The task\n\n"
	feedbackIntro  = "# The operator's words for this round"
	artifactIntro  = "# The artifact as it is now"
	contextHeading = "# DETERMINISTIC ORCHESTRATOR"
)

// context tells the agent where it stands and what to produce.
func (r Request) context() string {
	v := r.Vars
	lines := []string{contextHeading + " — " + strings.Join(strings.Fields(v.Description), " "), ""}
	add := func(name, text string) {
		if text != "" {
			lines = append(lines, name+": "+text)
		}
	}
	add("Role", v.Role)
	add("Pass", outOf(v.Pass, v.Passes))
	add("Round", outOf(v.Round, v.Rounds))
	add("Set", strings.Trim(v.Set+" — "+v.Theme, " —"))
	add("Produce", r.produce())
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

func outOf(n, total int) string {
	if n == 0 || total == 0 {
		return counted(n)
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
		return fmt.Sprintf("the whole of %s, revised, from its first line to its last: in your reply in one fence, or as the file of that name in your working directory", file)
	case pipeline.GivesChanges:
		return "changes to the files of your working directory, and a short report of them"
	case pipeline.GivesReport:
		return "a report, in words; change no files"
	default:
		return ""
	}
}

// fenced is a heading and a fence for each text, or "" without texts.
func fenced(texts []Text) string {
	sections := make([]string, len(texts))
	for i, t := range texts {
		sections[i] = heading(t.Label) + "\n\n" + fence("", t.Body)
	}
	return strings.Join(sections, "\n\n")
}

func introduced(intro, body string) string {
	if body == "" {
		return ""
	}
	return intro + "\n\n" + body
}

// files are the set's files in reading order, the first marked: it weighs most.
func (r Request) files() string {
	sections := make([]string, len(r.Files))
	for i, f := range r.Files {
		primacy := ""
		if i == 0 {
			primacy = " (PRIMACY POSITION)"
		}
		sections[i] = heading(fmt.Sprintf("[%d/%d] %s", i+1, len(r.Files), f.Label)) + primacy + "\n\n" + fence("", f.Body)
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

// pictures lists the pictures, or gives the artifact's source in their place and says so.
func (r Request) pictures() string {
	switch {
	case len(r.Pictures) > 0:
		return picturesIntro + "\n\n- " + strings.Join(r.Pictures, "\n- ")
	case r.Artifact.Body == "":
		return ""
	case slices.Contains(r.Gets, pipeline.PartArtifact) || placedBy(r.Template)[pipeline.PartArtifact]:
		return noPictures // the source is there already
	default:
		return noPictures + "\n\n" + r.source()
	}
}

func (r Request) feedback() string {
	return introduced(feedbackIntro, strings.TrimSpace(r.Feedback))
}
