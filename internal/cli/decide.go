package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

func (a *app) decide() *cobra.Command {
	var m contract.Message
	var show bool
	cmd := &cobra.Command{
		Use: "decide [RUN]", Short: "Answer the open question of a run",
		Long: `Answer the open question of a run. On a terminal, without --action, show the question and ask. An open
question of a failed or interrupted run can be answered too; the run then continues in a new epoch.

Each question offers some of these actions; --show lists them:

` + strings.TrimSuffix(answersHelp(), "\n"),
	}
	cmd.Flags().StringVar(&m.Action, "action", "", "the action, see above")
	cmd.Flags().StringVar(&m.Feedback, "feedback", "", "the feedback that retry_feedback and continue_with_waiver need")
	cmd.Flags().StringVar(&m.Note, "note", "", "a note for the record")
	cmd.Flags().StringVar(&m.By, "by", "", "who decides (default: you)")
	cmd.Flags().StringVar(&m.ID, "id", "", "id of the question, so that no other question is answered")
	cmd.Flags().BoolVar(&show, "show", false, "only show the question")
	asJSON := cmd.Flags().Bool("json", false, "print JSON, with --show")
	return a.onRun(cmd, func(ctx context.Context, d rundir.Dir) error {
		if cmd.Flags().Changed("id") && m.ID == "" {
			return asUsage(errors.New("--id is empty: name the question, or leave --id out"))
		}
		s, err := a.inspect(ctx, d)
		if err != nil {
			return err
		}
		if s.Lost != nil {
			return s.Lost
		}
		if *asJSON {
			return a.jsonQuestion(s, show)
		}
		q, open, rest := a.showQuestion(ctx, s, show || m.Action == "", show)
		switch {
		case show, !open && m.Action == "":
			return nil
		case m.Action == "":
			if m, err = a.askPerson(ctx, q, m, rest); err != nil {
				return err
			}
		}
		return a.answered(api.Decide(ctx, a.host(), decision(d.Root, m)))
	})
}

// answersHelp lists the meaning of each action, from the table of question kinds.
func answersHelp() string {
	var actions []string
	does := map[string][]string{} // by action: the kinds of questions with their meanings
	for _, k := range run.QuestionKinds() {
		for _, answer := range k.Answers {
			if does[answer.Action] == nil {
				actions = append(actions, answer.Action)
			}
			does[answer.Action] = append(does[answer.Action], k.Name+": "+answer.Meaning)
		}
	}
	text := ""
	for _, action := range actions {
		for i, line := range grouped(does[action]) {
			if i > 0 {
				action = ""
			}
			text += fmt.Sprintf("  %-22s %s\n", action, line)
		}
	}
	return text
}

// grouped joins the names of texts of the form "name: meaning" with equal meanings.
func grouped(texts []string) []string {
	var names, meanings []string
	for _, t := range texts {
		name, meaning, _ := strings.Cut(t, ": ")
		if i := slices.Index(meanings, meaning); i >= 0 {
			names[i] += ", " + name
			continue
		}
		names, meanings = append(names, name), append(meanings, meaning)
	}
	var lines []string
	for i, name := range names {
		lines = append(lines, name+": "+meanings[i])
	}
	return lines
}

// questionReport is the output of `decide --show --json`.
type questionReport struct {
	RunID           string              `json:"run_id"`
	Directory       string              `json:"directory"`
	EffectiveStatus run.EffectiveStatus `json:"standing"`
	Question        *run.Question       `json:"question"` // null: no open question
	Decisions       []run.PastDecision  `json:"decisions"`
}

func (a *app) jsonQuestion(s inspection, printed bool) error {
	if !printed {
		return asUsage(errors.New("--json requires --show"))
	}
	r := questionReport{RunID: s.Claim.RunID, Directory: s.dir.Root, EffectiveStatus: s.Effective,
		Decisions: append([]run.PastDecision{}, s.Now.State.Decisions...)}
	if q, open := s.Now.State.Asks(); open {
		r.Question = &q
	}
	return a.json(r)
}

// showQuestion returns the open question, and prints it on request: whole, or its first page. It returns the rest.
func (a *app) showQuestion(ctx context.Context, s inspection, printed, whole bool) (q run.Question, open bool,
	rest []string) {
	q, open = s.Now.State.Asks()
	switch {
	case !printed:
	case !open:
		fmt.Fprintf(a.out, "Run %s is %s: nothing waits for a decision.\n", s.Claim.RunID, view.Describe(s.Effective))
	default:
		a.row("Run", "%s in %s, %s", s.Claim.RunID, s.dir.Root, view.Describe(s.Effective))
		rest = a.printQuestion(ctx, s.dir, s.Now.State, q, whole)
	}
	return q, open, rest
}

// printQuestion prints a question with its choices, and what it is about: whole, or the first page on a terminal. It
// returns the rest.
func (a *app) printQuestion(ctx context.Context, d rundir.Dir, s run.State, q run.Question, whole bool) (rest []string) {
	a.row("Question", "%s", q.Line())
	a.row("Id", "%s", q.ID)
	if q.Kind != run.QuestionDelivery && q.Of == "" { // the text of such a question names its place
		a.row("Round", "%d", max(q.Round, 1))
	}
	for _, f := range s.Facts(q) {
		a.row(f.Name, "%s", f.Text)
	}
	a.row("Asked", "%s", view.Minute(q.RequestedAt))
	if q.ExpiresAt != "" {
		a.row("Answer by", "%s; then: %s", view.Minute(q.ExpiresAt), q.OnExpiry)
	}
	others := allLines
	if !whole {
		others = len(q.Actions) + len(s.Facts(q)) + 6
	}
	rest = a.page(a.attachedLines(api.Attachments(ctx, d, q)), others)
	for i, action := range q.Actions {
		fmt.Fprintf(a.out, "  %d  %-22s %s\n", i+1, action, q.Meaning(action))
	}
	return rest
}

// attachedLines returns what a question is about, in lines of the terminal's width.
func (a *app) attachedLines(about []api.Attachment) []string {
	const frame = "    │ "
	width := widthOf(a.out) - len([]rune(frame))
	var all []string
	for _, at := range about {
		all = append(all, fmt.Sprintf("%-12s %s", at.Name+":", at.Text))
		for _, line := range at.Lines {
			if width > 0 {
				line = lipgloss.Wrap(line, width, " ")
			}
			for l := range strings.SplitSeq(line, "\n") {
				all = append(all, frame+l)
			}
		}
	}
	return all
}

// allLines makes [app.page] print all lines.
const allLines = -1

// page prints lines as far as they fit into the terminal below others, and returns the rest. Output that is not a
// terminal gets all.
func (a *app) page(lines []string, others int) (rest []string) {
	n := len(lines)
	if _, height := sizeOf(a.out); height > 0 && others != allLines {
		const least = 6
		n = min(n, max(least, height-others))
	}
	for _, line := range lines[:n] {
		fmt.Fprintln(a.out, line)
	}
	if rest = lines[n:]; len(rest) > 0 {
		fmt.Fprintf(a.out, "    … %s more: type m\n", run.Plural(len(rest), "line"))
	}
	return rest
}

// askPerson asks the user at the terminal, until ctx ends. m pages through the rest of what the question is about.
func (a *app) askPerson(ctx context.Context, h run.Question, m contract.Message, rest []string) (contract.Message,
	error) {
	if !a.personThere() {
		return m, asUsage(fmt.Errorf("name the action: --action %s", strings.Join(h.Actions, ", ")))
	}
	line, err := a.prompted(ctx, "Which one? ")
	for ; err == nil && line == "m" && len(rest) > 0; line, err = a.prompted(ctx, "Which one? ") {
		rest = a.page(rest, 2)
	}
	if err != nil {
		return m, err
	}
	m.Action = line
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(h.Actions) {
		m.Action = h.Actions[n-1]
	}
	m.ID = h.ID // the question that was shown
	switch {
	case m.Feedback != "":
	case run.NeedsFeedback(m.Action):
		m.Feedback, err = a.prompted(ctx, "Feedback: ")
	case m.Action == run.ActionFix:
		m.Feedback, err = a.prompted(ctx, "Feedback (empty: the findings of the review): ")
	}
	return m, err
}

// personThere reports whether standard input is a terminal, so that the user can be asked.
func (a *app) personThere() bool {
	f, ok := a.in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// prompted asks for one line.
func (a *app) prompted(ctx context.Context, what string) (string, error) {
	fmt.Fprint(a.out, what)
	a.read.Do(func() {
		a.lines = make(chan string)
		go func() {
			defer close(a.lines)
			for in := bufio.NewScanner(a.in); in.Scan(); {
				a.lines <- strings.TrimSpace(in.Text())
			}
		}()
	})
	select {
	case line, ok := <-a.lines:
		if !ok {
			return "", fmt.Errorf("nothing was decided: %w", io.EOF)
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// decision is the input of an operation for what a user answered.
func decision(name string, m contract.Message) api.DecideInput {
	return api.DecideInput{Run: name, Action: m.Action, Feedback: m.Feedback, Question: m.ID, By: m.By, Note: m.Note}
}
