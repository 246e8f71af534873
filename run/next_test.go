package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestNextCommands has a row for each recorded status, kind of open question and liveness. What is to be typed may be
// asked for there.
func TestNextCommands(t *testing.T) {
	var table strings.Builder
	for _, status := range statuses() {
		for _, q := range questions() {
			if status.Settled() && q.Kind != "" {
				continue // an end clears the questions
			}
			for _, l := range []run.Liveness{run.LiveOpen, run.LiveClosed, run.LiveGone, run.LiveUnknown} {
				s := run.State{RunID: "r1", Status: status}
				if q.Kind != "" {
					s.Questions = []run.Question{q}
				}
				at := run.Situation{EffectiveStatus: run.NewEffectiveStatus(status, l, ""), Dir: "DIR"}
				next := run.NextCommands(s, at)
				fmt.Fprintf(&table, "%-22s  %-8s  %-7s  %s\n", status, q.Kind, l, strings.Join(typed(next), " | "))
				mayBeTyped(t, at.Status, q.Kind != "", next)
			}
		}
	}
	golden(t, "next-commands.txt", table.String())
}

// TestNextCommandsInTrouble has a row for each cause that keeps a run from continuing, and what its status means.
func TestNextCommandsInTrouble(t *testing.T) {
	paused := func(reason string) run.State {
		return run.State{RunID: "r1", Status: run.Paused, Reason: reason, Budget: run.Budget{CapUSD: 0.7}}
	}
	running := run.State{RunID: "r1", Status: run.Running}
	none := &run.NoWorker{Queues: []string{"q"}}
	rows := []struct {
		name string
		s    run.State
		at   run.Situation
	}{
		{"user-requested", paused(run.UserRequested), run.Situation{}},
		{"user-review", paused(run.UserReview), run.Situation{}},
		{"budget-threshold", paused(run.BudgetThreshold), run.Situation{}},
		{"quality-gate", paused(run.QualityGate), run.Situation{}},
		{"pass-failed", paused(run.PassFailed), run.Situation{}},
		{"gate", paused(run.GateFailed), run.Situation{}},
		{"consecutive-failures", paused(run.ConsecutiveFailures), run.Situation{}},
		{"disk-full", paused(run.DiskFull), run.Situation{}},
		{"setup", paused(run.SetupFailed), run.Situation{}},
		{"held by a full disk", running,
			run.Situation{EffectiveStatus: run.EffectiveStatus{Held: &run.Held{DiskFull: true}}}},
		{"held, and tried again", running, run.Situation{EffectiveStatus: run.EffectiveStatus{Held: &run.Held{}}}},
		{"no worker, running", running, run.Situation{EffectiveStatus: run.EffectiveStatus{NoWorker: none}}},
		{"no worker, paused", paused(""), run.Situation{EffectiveStatus: run.EffectiveStatus{NoWorker: none}}},
		{"damaged, open", running, run.Situation{EffectiveStatus: run.EffectiveStatus{Liveness: run.LiveOpen},
			Damaged: true}},
		{"damaged, failed", run.State{RunID: "r1", Status: run.Failed}, run.Situation{Damaged: true}},
		{"not approved", run.State{RunID: "r1", Status: run.Done, Unmet: "score >= 3"}, run.Situation{}},
		{"not approved, a tree", run.State{RunID: "r1", Status: run.Done, Unmet: "score >= 3", Tree: &run.Blob{}},
			run.Situation{}},
		{"unread", run.State{RunID: "r1", Status: run.Unknown}, run.Situation{Unread: true}},
	}
	var table strings.Builder
	for _, r := range rows {
		r.at.Status, r.at.Dir, r.at.Worker = r.s.Status, "DIR", []string{"worker"}
		fmt.Fprintf(&table, "%-22s  %s\n", r.name, strings.Join(typed(run.NextCommands(r.s, r.at)), " | "))
		fmt.Fprintf(&table, "  %s\n", run.Means(r.s.Status, r.s.Reason))
	}
	golden(t, "next-commands-in-trouble.txt", table.String())
}

// questions has none, and one of each kind.
func questions() []run.Question {
	all := []run.Question{{}}
	for _, s := range run.QuestionKinds() {
		all = append(all, run.Question{Kind: s.Kind, ID: "q1", Trigger: s.Offers[0].Trigger,
			Actions: s.Offers[0].Operator})
	}
	return all
}

func typed(next []run.Command) []string {
	var all []string
	for _, c := range next {
		var steps []string
		if c.First != "" {
			steps = append(steps, c.First)
		}
		for _, args := range c.Steps {
			steps = append(steps, strings.Join(args, " "))
		}
		text := strings.Join(steps, ", then ")
		for _, m := range c.Messages {
			text += " (" + m.Name + " " + m.Input + ")"
		}
		all = append(all, text)
	}
	return all
}

// mayBeTyped compares the commands with the table of statuses and operations.
func mayBeTyped(t *testing.T, status run.Status, undecided bool, next []run.Command) {
	t.Helper()
	require.NotEmpty(t, next)
	for _, c := range next {
		if c.Operation != "" {
			require.NoError(t, run.May(status, c.Operation, run.Terms{Forced: c.Forces(), Undecided: undecided}), "%v",
				c.Steps)
		}
	}
	if undecided && run.May(status, run.Decide, run.Terms{Undecided: true}) == nil {
		_, offered := run.Offers(next, run.Decide)
		require.True(t, offered, "%s: a question is open", status)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
