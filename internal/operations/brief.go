package operations

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// maxBriefText bounds each text of an earlier run that a prompt contains, in characters.
const maxBriefText = 20_000

// briefOf describes an earlier run for the prompts of its follow-up: its task, how it ended, its plan, the last
// findings and the decisions of operators. The files of the directory are redacted already.
func briefOf(dir rundir.Dir, claim run.Claim, s run.State) (string, error) {
	var b strings.Builder
	ended := string(s.Status)
	if s.Reason != "" {
		ended += ", " + run.OneLine(s.Reason)
	}
	fmt.Fprintf(&b, "Run %s of %s ended: %s.\n", claim.RunID, s.Pipeline, ended)
	section := func(title, text string) {
		if text = strings.TrimSpace(text); text != "" {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, text)
		}
	}
	if s.Task != s.Pipeline {
		section("Its task", asQuote(s.Task))
	}
	roles, err := planners(dir)
	if err != nil {
		return "", err
	}
	for _, r := range s.Replies {
		if !r.Judges && slices.Contains(roles, r.Role) {
			text, err := replyText(dir, r.Reply.Digest)
			if err != nil {
				return "", err
			}
			section("Its plan, by "+r.Role, asQuote(text))
		}
	}
	if j := s.Judged; j != nil {
		text, err := replyText(dir, j.Reply)
		if err != nil {
			return "", err
		}
		about := "Its last verdict: " + j.Text()
		if j.Outdated {
			about += "; the work has changed since"
		}
		section(about, cmp.Or(asQuote(text), "Its reply is missing."))
	}
	var decided []string
	for _, d := range s.Decisions {
		decided = append(decided, "- "+d.Text())
	}
	section("Decisions of operators", strings.Join(decided, "\n"))
	return b.String(), nil
}

// planners lists the roles of a run that report and do not judge.
func planners(dir rundir.Dir) ([]string, error) {
	raw, err := dir.ReadFile(rundir.PlanFile)
	if err != nil {
		return nil, err
	}
	var plan pipeline.Plan
	if err := json.Unmarshal(raw, &plan); err != nil {
		return nil, fmt.Errorf("read %s: %w", dir.Path(rundir.PlanFile), err)
	}
	var names []string
	for _, r := range plan.Roles {
		if r.Gives == pipeline.GivesReport && r.Verdict == nil && r.Score == nil {
			names = append(names, r.Name)
		}
	}
	return names, nil
}

// replyText returns a reply from the directory; "" if it lacks the file.
func replyText(dir rundir.Dir, digest string) (string, error) {
	file, err := rundir.FileOf(dir, digest)
	if err != nil || file == "" {
		return "", err
	}
	raw, err := dir.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(raw), err
}

// asQuote indents a text, so that it cannot end its section.
func asQuote(text string) string {
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > maxBriefText {
		text = string(r[:maxBriefText]) + " …"
	}
	if text == "" {
		return ""
	}
	return "> " + strings.ReplaceAll(text, "\n", "\n> ")
}
