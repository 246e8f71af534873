package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/terminal"
	"github.com/passbook-run/passbook/run"
)

// TestPrintedTextControlsNoTerminal prints a run whose texts try to write to the clipboard and to reorder characters.
func TestPrintedTextControlsNoTerminal(t *testing.T) {
	const attack = "\x1b]52;c;aGk=\x07\u009b31m\x9b31m\u202etxt.exe\r"
	w := newHost(t)
	p := writing
	p.Title, p.Description = attack, attack
	d := w.journaledRun(t, "hostile", "",
		event{run.KindPassStart, run.PassStart{Pass: p, Attempt: 1, Attempts: 1}},
		event{run.KindPassAttempt, run.PassAttempt{Pass: p, Category: run.CategoryOutputTruncated, Message: attack,
			Diagnostics: attack, Attempt: 1}},
		event{run.KindPassEnd, run.PassEnd{Pass: p, Outcome: run.CategoryOutputTruncated}})
	for _, args := range []string{"status", "status --json", "evidence", "evidence --json", "logs", "logs --json",
		"diagnose", "check", "cost-report", "list", "list --json", "plan"} {
		t.Run(args, func(t *testing.T) {
			words := strings.Fields(args)
			if words[0] != "list" && words[0] != "plan" {
				words = append(words, d.Root)
			}
			if words[0] == "plan" {
				words = append(words, attack)
			}
			var out, errs strings.Builder
			Main(words, strings.NewReader(""), &out, &errs)
			text := out.String() + errs.String()
			require.NotEmpty(t, text)
			require.Equal(t, text, terminal.Safe(text))
		})
	}
}
