package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func texts(all []run.Instruction) []string {
	var out []string
	for _, i := range all {
		out = append(out, i.Text)
	}
	return out
}

// TestInstructionsReachNextPrompts decides which prompts contain an instruction. A call keeps its prompt until it was
// judged or an operator ended it: its answer may exist already when the run continues.
func TestInstructionsReachNextPrompts(t *testing.T) {
	begun := run.State{Status: run.Running, TS: "2026-01-02T03:00:00.000Z", Seq: 1, RunID: "r", Epoch: 1}
	start := run.PassStart{Pass: run.Pass{Step: "001", Role: "builder"}, Call: "c"}
	steer := run.RunSteered{Text: "be brief", By: "ann"}
	reviewer := run.RunSteered{Text: "be brief", Role: "reviewer"}
	end := run.PassEnd{Pass: start.Pass, Call: "c", Outcome: run.CategoryOK}
	used := end
	used.Instructions = []int64{2}
	for name, row := range map[string]struct {
		events []any
		call   string
		role   string
		want   []string
	}{
		"before the call":     {[]any{steer}, "c", "builder", []string{"be brief"}},
		"for another role":    {[]any{reviewer}, "c", "builder", nil},
		"for its role":        {[]any{reviewer}, "c", "reviewer", []string{"be brief"}},
		"while the call runs": {[]any{start, steer}, "c", "builder", nil},
		"the next call":       {[]any{start, steer}, "d", "builder", []string{"be brief"}},
		"at once": {[]any{start, run.RunSteered{Text: "stop", Now: true}}, "c",
			"builder", []string{"stop"}},
		"after a restart": {[]any{start, steer, run.RunPaused{Reason: run.DiskFull}, run.RunResumed{Epoch: 1}},
			"c", "builder", nil},
		"after the operator ended it": {[]any{start, steer, run.PassAttempt{Pass: start.Pass, Call: "c",
			Category: run.CategoryCancelled}}, "c", "builder", []string{"be brief"}},
		"refused before it was made": {[]any{start, steer, run.PassAttempt{Pass: start.Pass, Call: "c",
			Limit: &run.Limit{}}}, "c", "builder", []string{"be brief"}},
		"after a lost delivery": {[]any{start, steer, run.PassAttempt{Pass: start.Pass, Call: "c",
			Category: run.CategoryLost}}, "c", "builder", nil},
		"used by its role":            {[]any{steer, used}, "c", "builder", nil},
		"used by another role":        {[]any{steer, used}, "c", "reviewer", []string{"be brief"}},
		"settled without it":          {[]any{steer, end}, "c", "builder", []string{"be brief"}},
		"two in the order of arrival": {[]any{steer, reviewer}, "c", "reviewer", []string{"be brief", "be brief"}},
		"a judged attempt takes it up": {[]any{start, steer, run.PassAttempt{Pass: start.Pass, Call: "c", Judged: true}}, "c",
			"builder", []string{"be brief"}},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, row.want, texts(run.Folded(t, begun, row.events...).InstructionsFor(row.role, row.call)))
		})
	}
}

// TestPendingInstructionsOfEndedRun: a run that has ended shows only the instructions that no prompt contained.
func TestPendingInstructionsOfEndedRun(t *testing.T) {
	s := run.State{Status: run.Running, TS: "2026-01-02T03:00:00.000Z", Seq: 1, RunID: "r", Epoch: 1}
	s = run.Folded(t, s, run.RunSteered{Text: "used"}, run.RunSteered{Text: "by role", Role: "builder"},
		run.PassEnd{Pass: run.Pass{Role: "builder"}, Outcome: run.CategoryOK, Instructions: []int64{2, 3}},
		run.RunSteered{Text: "late", Role: "reviewer"})
	require.Equal(t, []string{"used", "late"}, texts(s.Pending()), "another role may come")
	s.Status = run.Done
	require.Equal(t, []string{"late"}, texts(s.Pending()))
}

func TestInstructionsAreBounded(t *testing.T) {
	s := run.State{Status: run.Running, TS: "2026-01-02T03:00:00.000Z", Seq: 1, RunID: "r", Epoch: 1}
	for n := range run.MaxInstructions {
		require.False(t, s.SteeringFull())
		s = run.Folded(t, s, run.RunSteered{Text: fmt.Sprint(n)})
	}
	require.True(t, s.SteeringFull())
	s = run.Folded(t, s, run.PassEnd{Pass: run.Pass{Role: "builder"}, Outcome: run.CategoryOK, Instructions: []int64{4}})
	require.False(t, s.SteeringFull(), "a used one no longer counts")
	require.Equal(t, "for every role, used by builder", s.Instructions[2].Words())
	s = run.Folded(t, s, run.RunSteered{Text: "new", Role: "reviewer", By: "ann"})
	require.Len(t, s.Instructions, run.MaxInstructions)
	require.Equal(t, []string{"0", "1", "3", "4", "5", "6", "7", "new"}, texts(s.Instructions))
	require.Len(t, s.Pending(), run.MaxInstructions)
	require.Equal(t, "for role reviewer, by ann, not used yet", s.Instructions[7].Words())
}

// TestInstructionSize counts what the state holds: bytes of JSON.
func TestInstructionSize(t *testing.T) {
	tooLong := func(n int) string {
		return fmt.Sprintf("the instruction has %d bytes as JSON; the maximum is 4096: put the rest into a file and name "+
			"the file", n)
	}
	for text, wrong := range map[string]string{
		" \n":                                  "the instruction is empty",
		strings.Repeat("x", 4094):              "",
		" " + strings.Repeat("x", 4094) + "\n": "",
		strings.Repeat("x", 4095):              tooLong(4097),
		strings.Repeat(`"`, 2048):              tooLong(4098),
		strings.Repeat("\"", 2047):             "",
	} {
		got, err := run.ParseInstruction(text)
		if wrong != "" {
			require.EqualError(t, err, wrong)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, strings.TrimSpace(text), got)
	}
}
