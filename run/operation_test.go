package run_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// operations is requirements 001 and 003 by hand. A cell: + always, - never, f by force only, u if a question is
// undecided, n if none is.
const operations = `
                        observe diagnose pause resume decide cancel revert replay fork follow_up promote repair remove
unknown                 +       +        -     -      -      -      -      -      -    -         -       +      +
pending                 +       +        -     -      -      +      -      -      -    -         -       -      -
running                 +       +        +     -      u      +      -      +      +    -         -       -      -
replaying               +       +        +     -      u      +      -      +      +    -         -       -      -
paused                  +       +        -     +      u      +      +      +      +    -         -       +      -
waiting_limit           +       +        +     +      u      +      +      +      +    -         -       +      -
awaiting_phase_handoff  +       +        -     -      +      +      -      +      +    -         -       +      -
awaiting_gate_decision  +       +        -     -      +      +      -      +      +    -         -       +      -
awaiting_human_review   +       +        -     -      +      +      -      +      +    -         -       +      -
done                    +       +        -     -      -      -      -      +      +    +         +       +      +
halted                  +       +        -     f      -      -      f      +      +    +         -       +      +
cancelled               +       +        -     +      -      -      +      +      +    +         -       +      +
failed                  +       +        -     f      u      -      +      +      +    +         -       +      +
interrupted             +       +        -     n      u      +      +      +      +    -         -       +      +
`

func TestOperations(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(operations), "\n")
	heads := strings.Fields(lines[0])
	require.Len(t, lines, 1+len(statuses()))
	require.Len(t, run.AllOperations(), len(heads))
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		require.Len(t, cells, 1+len(heads), line)
		status := run.Status(cells[0])
		require.True(t, status.Known(), line)
		for _, terms := range []run.Terms{{}, {Forced: true}, {Undecided: true}, {Forced: true, Undecided: true}} {
			var want []run.Operation
			for i, op := range heads {
				cell := cells[i+1]
				if cell == "+" || cell == "f" && terms.Forced || cell == "u" && terms.Undecided || cell == "n" &&
					!terms.Undecided {
					want = append(want, run.Operation(op))
				}
			}
			require.ElementsMatch(t, want, terms.Operations(status), "%s, %+v", status, terms)
			for _, op := range heads {
				mayOrConflict(t, status, run.Operation(op), terms, want)
			}
		}
		require.Equal(t, run.Terms{}.Operations(status), run.Operations(status))
	}
	require.Error(t, run.May(run.Running, "no such operation", run.Terms{}))
	require.Error(t, run.May("no such status", run.Fork, run.Terms{}))
}

func mayOrConflict(t *testing.T, s run.Status, op run.Operation, terms run.Terms, want []run.Operation) {
	t.Helper()
	err := run.May(s, op, terms)
	for _, w := range want {
		if w == op {
			require.NoError(t, err, "%s when %s, %+v", op, s, terms)
			return
		}
	}
	var conflict *run.ConflictError
	require.ErrorAs(t, err, &conflict, "%s when %s, %+v", op, s, terms)
	require.Equal(t, op, conflict.Operation)
	require.Equal(t, s, conflict.From)
	require.ElementsMatch(t, want, conflict.Allowed)
}

func TestOwnersRefuse(t *testing.T) {
	s := running(t)
	s.Status = run.Done
	var refused *run.TransitionError
	for name, owner := range owners() {
		got, err := owner(s)
		require.ErrorAs(t, err, &refused, name)
		require.Equal(t, run.Done, refused.From, name)
		require.Empty(t, refused.Allowed, name)
		require.Equal(t, picture(t, s), picture(t, got), name)
	}
	s = running(t)
	waiting(&s)
	_, err := run.AnswerQuestion(s, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h0", Action: "continue"}, now)
	var stale *run.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, run.StaleError{What: run.QuestionHandoff, ID: "h0", Active: "h1"}, *stale)
	require.EqualError(t, stale, `the answer to handoff "h0" is stale: "h1" is open`)
	_, err = run.AnswerQuestion(running(t), run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h0"}, now)
	require.EqualError(t, err, `no handoff is open: the answer to "h0" is stale`)
}

func owners() map[string]func(run.State) (run.State, error) {
	answer := func(action string) func(run.State) (run.State, error) {
		return func(s run.State) (run.State, error) {
			return run.AnswerQuestion(s, run.QuestionDecided{Kind: run.QuestionHandoff, ID: "h1", Action: action}, now)
		}
	}
	return map[string]func(run.State) (run.State, error){
		"continue":    answer("continue"),
		"waiver":      answer("continue_with_waiver"),
		"retry":       answer("retry_feedback"),
		"done":        func(s run.State) (run.State, error) { return run.MarkRunDone(s, "", now) },
		"halted":      func(s run.State) (run.State, error) { return run.MarkRunHalted(s, "r", now) },
		"failed":      func(s run.State) (run.State, error) { return run.MarkRunFailed(s, "r", "", now) },
		"interrupted": func(s run.State) (run.State, error) { return run.MarkRunInterrupted(s, "r", now) },
	}
}

// TestOwnersMove: from a run that works with a hand-off left undecided, each owner moves as its name implies, and keeps
// the hand-off or not.
func TestOwnersMove(t *testing.T) {
	want := map[string]struct {
		status run.Status
		keeps  bool
	}{
		"continue": {run.Running, false}, "waiver": {run.Running, false}, "retry": {run.Running, false},
		"done":   {run.Done, false},
		"halted": {run.Halted, false}, "failed": {run.Failed, true}, "interrupted": {run.Interrupted, true},
	}
	for name, owner := range owners() {
		s := running(t)
		waiting(&s)
		s.Status = run.Running
		got, err := owner(s)
		require.NoError(t, err, name)
		require.Equal(t, want[name].status, got.Status, name)
		require.Equal(t, want[name].keeps, len(got.Questions) > 0, name)
	}
}

func TestConflictOfABudgetIsASentence(t *testing.T) {
	require.ErrorContains(t, run.Conflict(run.Done, "budget", run.Terms{}),
		"cannot raise the budget of a run that is done (")
	require.ErrorContains(t, run.Conflict(run.Done, run.Pause, run.Terms{}), "cannot pause a run that is done (")
}

// TestConflictsNameAvailableActions: a refusal lists the operations that the status of a run lists.
func TestConflictsNameAvailableActions(t *testing.T) {
	for _, status := range run.Statuses() {
		for _, terms := range []run.Terms{{}, {Undecided: true}, {Forced: true}} {
			require.Equal(t, terms.Available(status), run.Conflict(status, run.Pause, terms).Available(), status)
		}
	}
}
