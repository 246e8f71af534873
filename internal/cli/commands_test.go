package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// TestCommandsToTypeAreQuoted prints commands that work in any directory.
func TestCommandsToTypeAreQuoted(t *testing.T) {
	home := filepath.Join(t.TempDir(), "my runs")
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{filepath.Join(home, "bin", "starter")}
	d := rundir.At(filepath.Join(home, "one's"))
	typed := "'" + home + "/bin/starter' resume '" + home + `/one'\''s'`
	var out strings.Builder
	a := &app{out: &out, err: &outlet{to: io.Discard}}
	require.NoError(t, a.goodbye(d, run.State{Status: run.Paused, Reason: run.UserRequested}, 1))
	require.Contains(t, out.String(), "Resume with: "+typed+"\n")

	s := inspection{dir: d, Run: view.Recorded(run.State{Status: run.Paused, Reason: run.UserRequested})}
	s.Claim.RunID, s.Directory = "run-1", d.Root
	require.Equal(t, []string{typed}, shell.Next(program(), s.Next()))
	require.ErrorContains(t, &operations.CopyError{Dir: "x", RunID: "run-1", Home: d.Root}, "starter resume '"+home)
}

// TestEndNamesErrors: a run can be done although passes failed and kept the artifact as it was.
func TestEndNamesErrors(t *testing.T) {
	d := rundir.At(t.TempDir())
	for n, want := range map[int]string{0: "", 1: "1 unrecovered error: ", 4: "4 unrecovered errors: "} {
		raw, err := json.Marshal(rundir.Meta{Version: rundir.MetaVersion, Summary: rundir.Summary{Unrecovered: n}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(d.Path(rundir.MetaFile), raw, 0o600))
		words := unrecoveredWords(d)
		require.Equal(t, want != "", words != "", words)
		require.True(t, strings.HasPrefix(words, want), words)
		require.Equal(t, want != "", strings.HasSuffix(words, " status "+d.Root+"\n"), words)
	}
}

// TestNextCommandsExist checks that each next command is one of this program with existing flags.
func TestNextCommandsExist(t *testing.T) {
	states := []run.State{}
	for _, status := range run.Statuses() {
		states = append(states, run.State{Status: status})
		for _, q := range run.QuestionKinds() {
			asked := run.Question{Kind: q.Kind, Actions: q.Offers[0].Operator}
			states = append(states, run.State{Status: status, Questions: []run.Question{asked}})
		}
	}
	for _, reason := range []string{run.BudgetThreshold, run.ConsecutiveFailures, run.DiskFull, run.GateFailed,
		run.PassFailed, run.SetupFailed} {
		states = append(states, run.State{Status: run.Paused, Reason: reason})
	}
	a := &app{}
	root := a.root()
	for _, s := range states {
		for _, liveness := range []run.Liveness{run.LiveOpen, run.LiveClosed, run.LiveUnknown} {
			at := run.Situation{
				EffectiveStatus: run.NewEffectiveStatus(s.Status, liveness, ""), Dir: "DIR",
				Worker: a.host().StartsWorker(), Unread: true, Damaged: true,
			}
			for _, c := range run.NextCommands(s, at) {
				for _, args := range c.Steps {
					verb, rest, err := root.Find(expanded(root, args))
					require.NoError(t, err, args)
					require.True(t, verb.Runnable(), args)
					require.NoError(t, verb.ParseFlags(rest), args)
				}
			}
		}
	}
}
