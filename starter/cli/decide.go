package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) decide() *cobra.Command {
	var m workflows.Message
	var dir string
	var show, asJSON bool
	cmd := a.target(&cobra.Command{
		Use: "decide [RUN]", Short: "Decide what a run waits for",
		Long: `Decide what a run waits for. On a terminal, without --action, it shows the question and asks. What a failed or interrupted run left undecided can be
decided too: the run then goes on in a new epoch.

What can be decided depends on the question; --show tells it:

  continue               go on
  retry_feedback         do it once more, with the words of --feedback
  continue_with_waiver   go on, and record with --feedback what was let pass; later steps are told
  retry                  of a gate: the command or the step once more; of a delivery: look at the target once more
  approve                of a plan: it is good, the run is done; of a delivery: deliver although it was rejected
  apply                  of a delivery: put it into the checkout although it was rejected, and do not commit it
  fix                    of a delivery: once more from the last step that changes anything, with the words of --feedback
  skip                   of a delivery: do not deliver; the changes stay on the run's branch
  halt                   end the run

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().StringVar(&m.Action, "action", "", "what is decided, see above")
	cmd.Flags().StringVar(&m.Feedback, "feedback", "", "the words that retry_feedback and continue_with_waiver need")
	cmd.Flags().StringVar(&m.Note, "note", "", "a word for the record")
	cmd.Flags().StringVar(&m.By, "by", "", "who decides (default: you)")
	cmd.Flags().StringVar(&m.ID, "id", "", "of the question, so that the answer cannot meet another one")
	cmd.Flags().BoolVar(&show, "show", false, "only show what waits")
	cmd.Flags().BoolVar(&asJSON, "json", false, "with --show: as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := a.find(named(args, dir))
		if err != nil {
			return err
		}
		s, err := a.look(cmd.Context(), d)
		if err != nil {
			return err
		}
		if asJSON {
			return a.jsonQuestion(s, show)
		}
		q, open := a.showQuestion(s, show || m.Action == "")
		switch {
		case show, !open && m.Action == "":
			return nil
		case m.Action == "":
			if m, err = a.askPerson(cmd.Context(), q, m); err != nil {
				return err
			}
		}
		return a.sendDecision(cmd.Context(), s, m)
	}
	return cmd
}

// openQuestion is `decide --show --json`.
type openQuestion struct {
	RunID     string        `json:"run_id"`
	Directory string        `json:"directory"`
	Standing  run.Standing  `json:"standing"`
	Question  *run.Question `json:"question"` // null: nothing waits for a decision
}

func (a *app) jsonQuestion(s sight, show bool) error {
	if !show {
		return asUsage(errors.New("--json only shows what waits: give it with --show"))
	}
	r := openQuestion{RunID: s.claim.RunID, Directory: s.dir.Root, Standing: s.stands}
	if q, open := s.now.State.Asks(); open {
		r.Question = &q
	}
	return a.json(r)
}

// showQuestion gives what waits for a decision, and prints it where it is wanted.
func (a *app) showQuestion(s sight, say bool) (run.Question, bool) {
	q, open := s.now.State.Asks()
	switch {
	case !say:
	case !open:
		fmt.Fprintf(a.out, "Run %s is %s: nothing waits for a decision.\n", s.claim.RunID, standingWords(s.stands))
	default:
		a.row("Run", "%s in %s, %s", s.claim.RunID, s.dir.Root, standingWords(s.stands))
		a.printQuestion(s.dir, q)
	}
	return q, open
}

func (a *app) printQuestion(d rundir.Dir, q run.Question) {
	a.row("Question", "%s", q.Words())
	a.row("Id", "%s (%s)", q.ID, strings.TrimSuffix(q.Trigger+", "+q.Type, ", "))
	a.row("Round", "%d", max(q.Round, 1))
	if q.Verdict != "" {
		a.row("Verdict", "%s", q.Verdict)
	}
	a.row("Asked", "%s", minute(q.RequestedAt))
	if q.ExpiresAt != "" {
		a.row("Answer by", "%s; then: %s", minute(q.ExpiresAt), q.OnExpiry)
	}
	for _, at := range q.Artifacts {
		if file, err := d.FileOf(at.Digest); err == nil && file != "" {
			a.row(strings.ToUpper(at.Name[:1])+at.Name[1:], "%s", d.Path(file))
			a.excerpt(d.Path(file))
		}
	}
	for i, action := range q.Actions {
		fmt.Fprintf(a.out, "  %d  %-22s %s\n", i+1, action, meaning(q, action))
	}
}

// excerpt prints the end of what a question is about.
func (a *app) excerpt(file string) {
	for _, line := range endOf(file) {
		fmt.Fprintf(a.out, "    │ %s\n", clip(line, 160))
	}
}

// endOf gives the last lines of a file; none of one that cannot be read: it is shown by name.
func endOf(file string) []string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	const most = 12
	lines := strings.Split(strings.TrimSpace(string(raw)), "\n")
	if len(lines) > most {
		lines = append([]string{"…"}, lines[len(lines)-most:]...)
	}
	return lines
}

func clip(line string, most int) string {
	if r := []rune(line); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return line
}

func meaning(q run.Question, action string) string {
	delivery := q.Kind == run.QuestionDelivery
	switch action {
	case run.ActionContinue:
		return "the run goes on"
	case run.ActionRetryFeedback:
		return "one more round, with your words; then you are asked again"
	case run.ActionFix:
		return "one more round, with your words; then the delivery is asked about again"
	case run.ActionContinueWithWaiver:
		return "the run goes on; your words are recorded and shown to later reviews"
	case run.ActionRetry:
		if delivery {
			return "look at the target again, once you have cleaned it up"
		}
		return "do the step once more"
	case run.ActionApprove:
		if delivery {
			return "deliver it although it was rejected, with its commit"
		}
		return "it is good: the run is done"
	case run.ActionApply:
		return "put it into the checkout although it was rejected, without a commit"
	case run.ActionSkip:
		return "deliver nothing; the changes stay on the run's branch and in its directory"
	case run.ActionHalt:
		return "the run ends here, halted"
	}
	return ""
}

// askPerson has a person choose on a terminal, until ctx ends.
func (a *app) askPerson(ctx context.Context, h run.Question, m workflows.Message) (workflows.Message, error) {
	if !a.personThere() {
		return m, asUsage(fmt.Errorf("say what is decided: --action %s", strings.Join(h.Actions, ", ")))
	}
	line, err := a.prompted(ctx, "Which one? ")
	if err != nil {
		return m, err
	}
	m.Action = line
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(h.Actions) {
		m.Action = h.Actions[n-1]
	}
	m.ID = h.ID // what was shown is what is decided
	if m.Feedback == "" && workflows.NeedsWords(m.Action) {
		m.Feedback, err = a.prompted(ctx, "In your words: ")
	}
	return m, err
}

// personThere says that somebody sits at a terminal and can be asked.
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

func (a *app) sendDecision(ctx context.Context, s sight, m workflows.Message) error {
	conn, err := a.connect(ctx, true)
	if err != nil {
		return err
	}
	defer conn.Close()
	d, err := conn.Decide(ctx, s.dir, m)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "Run %s: %s.\n", s.claim.RunID, d.Said)
	if d.Reopened != nil && d.Reopened.Epoch > 0 {
		fmt.Fprint(a.out, reopenedWith(*d.Reopened))
		fmt.Fprintf(a.out, "It was %s and goes on in epoch %d.\n", d.Reopened.From, d.Reopened.Epoch)
	}
	asked, _ := s.now.State.Asks()
	return awaitDirectory(ctx, s.dir, func(m rundir.Meta) bool {
		q, open := m.State.Asks()
		return !open || q.ID != asked.ID
	})
}
