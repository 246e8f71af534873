package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/passbook-run/passbook/operate"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows"
)

func (a *app) decide() *cobra.Command {
	var m workflows.Message
	var dir string
	var show bool
	cmd := a.target(&cobra.Command{
		Use: "decide [RUN]", Short: "Decide what a run waits for",
		Long: `Decide what a run waits for. On a terminal, without --action, it shows the question and asks. What a failed or interrupted run left undecided can be
decided too: the run then goes on in a new epoch.

  continue               go on
  retry_feedback         do it once more, with the words of --feedback
  continue_with_waiver   go on, and record with --feedback what was let pass; later reviews are told
  halt                   end the run

` + exitCodesHelp,
	}, &dir)
	cmd.Flags().StringVar(&m.Action, "action", "", "continue, retry_feedback, continue_with_waiver or halt")
	cmd.Flags().StringVar(&m.Feedback, "feedback", "", "the words that retry_feedback and continue_with_waiver need")
	cmd.Flags().StringVar(&m.Note, "note", "", "a word for the record")
	cmd.Flags().StringVar(&m.By, "by", "", "who decides (default: you)")
	cmd.Flags().StringVar(&m.ID, "id", "", "of the hand-off, so that the answer cannot meet another one")
	cmd.Flags().BoolVar(&show, "show", false, "only show what waits")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		d, err := operate.Find(a.settings.StateDir, named(args, dir))
		if err != nil {
			return err
		}
		s, err := a.look(cmd.Context(), d)
		if err != nil {
			return err
		}
		if show || m.Action == "" {
			if !a.showQuestion(s) || show {
				return nil
			}
			if m, err = a.askPerson(*s.now.State.Handoff, m); err != nil {
				return err
			}
		}
		return a.sendDecision(cmd.Context(), s, m)
	}
	return cmd
}

// showQuestion prints what waits for a decision; false: nothing does.
func (a *app) showQuestion(s sight) bool {
	h := s.now.State.Handoff
	if h == nil {
		fmt.Fprintf(a.out, "Run %s is %s: nothing waits for a decision.\n", s.claim.RunID, standingWords(s.stands))
		return false
	}
	a.row("Run", "%s in %s, %s", s.claim.RunID, s.dir.Root, standingWords(s.stands))
	a.row("Question", "%s", orElse(h.Question, h.Phase))
	a.row("Hand-off", "%s (%s, %s)", h.ID, h.Type, h.Trigger)
	a.row("Round", "%d", h.Round)
	if h.Verdict != "" {
		a.row("Verdict", "%s", h.Verdict)
	}
	a.row("Asked", "%s", minute(h.RequestedAt))
	if file, err := s.dir.FileOfReply(h.LastOutput); err == nil && file != "" {
		a.row("Last output", "%s", s.dir.Path(file))
	}
	for _, action := range h.Actions {
		fmt.Fprintf(a.out, "  %-22s %s\n", action, meaning(action))
	}
	return true
}

func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func meaning(action string) string {
	switch action {
	case run.ActionContinue:
		return "the run goes on"
	case run.ActionRetryFeedback:
		return "one more round, with your words; then you are asked again"
	case run.ActionContinueWithWaiver:
		return "the run goes on; your words are recorded and shown to later reviews"
	case run.ActionHalt:
		return "the run ends here, halted"
	}
	return ""
}

// askPerson has a person choose on a terminal.
func (a *app) askPerson(h run.Handoff, m workflows.Message) (workflows.Message, error) {
	f, ok := a.in.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return m, asUsage(errors.New("say what is decided: --action continue, retry_feedback, continue_with_waiver or halt"))
	}
	in := bufio.NewReader(a.in)
	fmt.Fprintln(a.out)
	for i, action := range h.Actions {
		fmt.Fprintf(a.out, "  %d  %s\n", i+1, action)
	}
	line, err := prompted(a, in, "Which one? ")
	if err != nil {
		return m, err
	}
	m.Action = line
	if n, err := strconv.Atoi(line); err == nil && n >= 1 && n <= len(h.Actions) {
		m.Action = h.Actions[n-1]
	}
	m.ID = h.ID // what was shown is what is decided
	if m.Feedback == "" && (m.Action == run.ActionRetryFeedback || m.Action == run.ActionContinueWithWaiver) {
		m.Feedback, err = prompted(a, in, "In your words: ")
	}
	return m, err
}

func prompted(a *app, in *bufio.Reader, what string) (string, error) {
	fmt.Fprint(a.out, what)
	line, err := in.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("nothing was decided: %w", err)
	}
	return strings.TrimSpace(line), nil
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
		fmt.Fprintf(a.out, "It was %s and goes on in epoch %d.\n", d.Reopened.From, d.Reopened.Epoch)
	}
	asked := ""
	if h := s.now.State.Handoff; h != nil {
		asked = h.ID
	}
	return awaitDirectory(ctx, s.dir, func(m rundir.Meta) bool { return m.State.Handoff == nil || m.State.Handoff.ID != asked })
}
