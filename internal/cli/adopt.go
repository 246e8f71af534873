package cli

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
)

func (a *app) adopt() *cobra.Command {
	var in api.AdoptInput
	var detach, show bool
	var asJSON *bool
	cmd := &cobra.Command{
		Use: "adopt", Short: "Continue the conversation of a terminal in a run", Args: cobra.NoArgs,
		Long: `Continue a conversation of claude or codex in a run, in the repository of the current folder. Without --session,
list the conversations of this repository, and ask for one on a terminal.

The run works on copies of the conversation and of the checkout as they are now, with changes that are not committed
and untracked files; both originals stay as they are. Its first call continues the conversation. Then the tests that
starter init would find and a reviewer judge the work, in rounds, until both approve; the result is a commit on a
branch. The costs of the conversation so far are shown apart, and are not in the budget.

A conversation that is still open in a terminal is refused. If it was adopted before, attach to that run.`,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if in.Task, err = taskText(in.Task); err != nil {
				return err
			}
			if in.Session == "" && *asJSON {
				all, err := a.adoptables(cmd.Context())
				if err != nil {
					return err
				}
				return a.json(all)
			}
			if in.Session == "" {
				if in.Session, err = a.chooseConversation(cmd.Context()); in.Session == "" || err != nil {
					return err
				}
			}
			def, dir, err := a.host().Adopt(cmd.Context(), in)
			if err != nil {
				return err
			}
			if show {
				return a.printDefinition(def)
			}
			return a.asJSON(*asJSON, func() error { return a.start(cmd.Context(), def, dir, detach) })
		},
	}
	asJSON = startedFlag(cmd)
	cmd.Flags().StringVar(&in.Session, "session", "", "id of the conversation")
	cmd.Flags().BoolVar(&in.WhenLimited, "when-limited", false, "wait first until the usage limit that ended the conversation resets")
	cmd.Flags().StringVar(&in.Then, "then", "", "a pipeline whose first call continues the conversation, instead of the built-in one")
	cmd.Flags().StringVar(&in.Task, "task", "", "what the run is to do (text, @FILE or -) (default: the first message of the conversation)")
	cmd.Flags().BoolVar(&show, "print", false, "print the definition of the run and its prompts, and start nothing")
	cmd.Flags().BoolVar(&detach, "detach", false, "do not stay attached")
	return cmd
}

// Adoptable is the JSON of a conversation that can be adopted.
type Adoptable struct {
	Session  string     `json:"session"`
	Program  string     `json:"program"`
	Folder   string     `json:"folder"`
	At       string     `json:"at"`        // of its last entry; empty: not recorded
	Ended    run.Ending `json:"ended"`     // empty: after an answer
	ResetsAt string     `json:"resets_at"` // of the limit that ended it; empty: unknown, or none did
	OpenIn   int        `json:"open_in"`   // id of the process in which it is open; 0: none
	First    string     `json:"first"`
	Last     string     `json:"last"`
}

// adoptable describes a conversation, with redacted secrets.
func (a *app) adoptable(c sessions.Conversation) Adoptable {
	out := Adoptable{Session: c.ID, Program: c.Program, Folder: sessions.Plain(c.Folder), Ended: c.Ended,
		First: a.shownWords(c.First), Last: a.shownWords(c.Last)}
	if !c.At.IsZero() {
		out.At = run.Time(c.At)
	}
	if c.Ended == run.EndedByLimit && !c.Limit.Until.IsZero() {
		out.ResetsAt = run.Time(c.Limit.Until)
	}
	if by, err := (sessions.Program{Name: c.Program, Environ: os.Environ()}).OpenIn(c); err == nil && by != nil {
		out.OpenIn = by.PID
	}
	return out
}

// shownWords returns the beginning of a text of a conversation.
func (a *app) shownWords(text string) string {
	const most = 100
	return run.Cut(a.secrets.Text(run.OneLine(text)), most)
}

// adoptables lists the conversations of the repository, the newest first.
func (a *app) adoptables(ctx context.Context) ([]Adoptable, error) {
	found, err := a.host().Conversations(ctx)
	all := []Adoptable{}
	for _, c := range found {
		all = append(all, a.adoptable(c))
	}
	return all, err
}

// chooseConversation lists the conversations of the repository, and asks for one on a terminal; empty: none was chosen.
func (a *app) chooseConversation(ctx context.Context) (id string, err error) {
	all, err := a.adoptables(ctx)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		fmt.Fprintln(a.out, "There is no conversation of claude or codex in this repository.")
		return "", nil
	}
	for i, c := range all {
		a.printAdoptable(i+1, c, time.Now())
	}
	if !a.personThere() {
		fmt.Fprintf(a.out, "\nTo adopt one: %s adopt --session ID\n", program())
		return "", nil
	}
	for {
		answer, err := a.prompted(ctx, "\nNumber of the conversation to adopt (empty: none): ")
		if err != nil || answer == "" {
			return "", err
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(all) {
			return all[n-1].Session, nil
		}
		fmt.Fprintf(a.out, "There is no %q.\n", answer)
	}
}

func (a *app) printAdoptable(n int, c Adoptable, now time.Time) {
	age, ended := "at an unknown time", c.Ended.Text()
	if at, err := time.Parse(run.TimeFormat, c.At); err == nil {
		age = view.Duration(now.Sub(at)) + " ago"
		if days := int(now.Sub(at).Hours() / 24); days > 1 {
			age = run.Plural(days, "day") + " ago"
		}
	}
	if at, err := time.Parse(run.TimeFormat, c.ResetsAt); err == nil && at.After(now) {
		ended += ", which resets at " + clock(now).At(c.ResetsAt)
	}
	if c.OpenIn > 0 {
		ended = fmt.Sprintf("is open in process %d", c.OpenIn)
	}
	fmt.Fprintf(a.out, "%2d  %s, %s, %s: %s\n", n, c.Program, age, ended, c.Session)
	for _, line := range []struct{ name, text string }{{"first", c.First}, {"last", c.Last}} {
		if line.text != "" {
			fmt.Fprintf(a.out, "    %-6s %s\n", line.name+":", line.text)
		}
	}
}

// printDefinition prints a definition, and its prompts as comments.
func (a *app) printDefinition(def operations.Definition) error {
	fmt.Fprintf(a.raw, "%s", def.Source)
	var seen []string
	for _, r := range def.Plan.Roles {
		if r.Prompt == "" || slices.Contains(seen, r.Prompt) {
			continue
		}
		seen = append(seen, r.Prompt)
		text, err := fs.ReadFile(def.Folder, r.Prompt)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.raw, "\n# %s:\n", r.Prompt)
		for line := range bytes.Lines(text) {
			fmt.Fprintf(a.raw, "#   %s\n", bytes.TrimRight(line, "\n"))
		}
	}
	return nil
}
