package operations

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// openRun is a run whose workflow is open, and that writes its directory on this host. sent counts the messages.
func openRun(t *testing.T, events ...entry) (o Operator, d rundir.Dir, f *fakeTemporal, sent *int) {
	t.Helper()
	o, d, f = closedRun(t, "", events...)
	f.described = map[string]enumspb.WorkflowExecutionStatus{"r1": isOpen}
	f.history = historyOf(t, contract.Input{Target: contract.Target{RunID: "r1", Store: o.Settings.Store},
		Claim: must(d.Claim())(t)}, linesOf(t, d))
	f.answers = map[string]any{contract.QueryDirectory: contract.DirectoryAnswer{Dir: d.Root,
		Queue: contract.HostQueues("passbook", "here").Dir},
		contract.QueryStatus: contract.StatusAnswer{State: must(d.Now())(t).State}}
	sent = new(int)
	f.update = func(string) error { *sent++; return nil }
	return o, d, f, sent
}

func pausedEntry() entry { return entry{run.KindRunPaused, run.RunPaused{Reason: run.UserRequested}} }

// TestResumeOfMovedDirectory: the workflow of a paused run writes another place. It is terminated, and the next epoch
// continues the directory at its new one.
func TestResumeOfMovedDirectory(t *testing.T) {
	asks := decided(run.KindHandoffRequested, "", run.QuestionHandoff, run.TriggerAsked, run.ActionContinue)[0]
	move := func(t *testing.T, _ *Operator, d rundir.Dir, _ *fakeTemporal) rundir.Dir {
		require.NoError(t, os.Rename(d.Root, d.Root+"-moved"))
		return rundir.At(d.Root + "-moved")
	}
	toHost := func(t *testing.T, o *Operator, d rundir.Dir, _ *fakeTemporal) rundir.Dir {
		o.Host, o.Settings.StateDir, o.Settings.Store = "there", t.TempDir(), testStore(t).URL()
		return d
	}
	lostHost := func(t *testing.T, o *Operator, d rundir.Dir, f *fakeTemporal) rundir.Dir {
		f.answers = nil
		return toHost(t, o, d, f)
	}
	lostState := func(t *testing.T, o *Operator, d rundir.Dir, _ *fakeTemporal) rundir.Dir {
		o.Settings.StateDir = t.TempDir()
		return d
	}
	back := func(t *testing.T, o *Operator, d rundir.Dir, f *fakeTemporal) rundir.Dir {
		require.NoError(t, rundir.TakeOver(t.Context(), d, rundir.Owner{Epoch: 2, RunID: "r1", Execution: "there's",
			Host: "there", Cluster: "this"}, must(d.Now())(t).Tail))
		f.answers[contract.QueryDirectory] = contract.DirectoryAnswer{Dir: "/there", Queue: "passbook-dir-there"}
		return d
	}
	stays := func(_ *testing.T, _ *Operator, d rundir.Dir, f *fakeTemporal) rundir.Dir {
		f.answers = nil
		return d
	}
	force := Reopening{Force: true, Reason: "its host is gone"}
	for name, row := range map[string]struct {
		last    entry
		become  func(*testing.T, *Operator, rundir.Dir, *fakeTemporal) rundir.Dir
		how     Reopening
		sent    int    // messages
		refused string // the error
		was     string // how the last epoch was interrupted; empty: there is no next one
		epochs  int    // before the next; default 1
	}{
		"it was not moved":             {last: pausedEntry(), become: stays, sent: 1},
		"not moved, and forced":        {last: pausedEntry(), become: stays, how: force, sent: 1},
		"not moved, but not recorded":  {last: pausedEntry(), become: lostState, sent: 1},
		"moved":                        {last: pausedEntry(), become: move, was: "its directory was moved: its workflow writes DIR"},
		"moved, with an open question": {last: asks, become: move, was: "its directory was moved: its workflow writes DIR"},
		"on another host": {last: pausedEntry(), become: toHost,
			was: "its directory was moved: its workflow writes DIR on the host of task queue passbook-dir-here"},
		"back on a host that has recorded it": {last: pausedEntry(), become: back, epochs: 2,
			was: "its directory was moved: its workflow writes /there on the host of task queue passbook-dir-there"},
		"of a run that works": {last: entry{run.KindPhaseStart, run.PhaseStart{Key: "write"}}, become: move,
			refused: "the run is running, and its directory was moved: its workflow writes DIR. Move the directory back " +
				"and pause the run first; or, if the old host is gone: starter resume NEW --force --reason TEXT"},
		"an older copy": {last: pausedEntry(), become: func(t *testing.T, o *Operator, d rundir.Dir, f *fakeTemporal) rundir.Dir {
			f.answers[contract.QueryStatus] = contract.StatusAnswer{State: run.State{Status: run.Paused, Seq: 99}}
			return move(t, o, d, f)
		}, refused: "the run is paused, and its directory was moved: its workflow writes DIR. Move the directory back"},
		"of a run that works, forced": {last: entry{run.KindPhaseStart, run.PhaseStart{Key: "write"}}, become: move,
			how: force, was: "its directory was moved: its workflow writes DIR"},
		"of a host that does not answer": {last: pausedEntry(), become: lostHost,
			refused: "If the directory was moved here, and its old host is gone: starter resume NEW --force --reason TEXT"},
		"of a host that does not answer, forced": {last: pausedEntry(), become: lostHost, how: force,
			was: "its workflow did not answer: ask the workflow of run r1 for its directory: no worker"},
	} {
		t.Run(name, func(t *testing.T) {
			o, old, f, sent := openRun(t, row.last)
			d := row.become(t, &o, old, f)
			fill := func(text string) string {
				return strings.NewReplacer("DIR", old.Root, "NEW", d.Root).Replace(text)
			}
			re, err := o.Resume(t.Context(), d, row.how)
			require.Equal(t, row.sent, *sent)
			if row.was == "" {
				require.Empty(t, f.started)
				require.Equal(t, isOpen, f.described["r1"])
				if row.refused != "" {
					require.ErrorContains(t, err, fill(row.refused))
					return
				}
				require.NoError(t, err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, terminated, f.described["r1"])
			require.Equal(t, max(row.epochs, 1)+1, re.Epoch)
			require.Len(t, f.started, 1)
			in := f.started[0]
			require.Equal(t, d.Root, in.Target.Dir)
			require.Equal(t, o.Settings.Store, in.Target.Store)
			require.Equal(t, contract.HostQueues("passbook", o.Host).Dir, in.DirQueue)
			require.Equal(t, fill(row.was), in.Reopen.Interruption)
			require.Equal(t, must(d.Now())(t).Tail, in.Snapshot.Tail)
			require.Equal(t, len(in.Snapshot.State.Questions), map[bool]int{true: 1}[row.last.kind == asks.kind])
			require.Equal(t, d.Root, must(indexed(o.Settings.StateDir))(t)["r1"])
		})
	}
}

// TestMovedDirectoryIsOnlyResumed: every other message is refused with the command, and changes nothing.
func TestMovedDirectoryIsOnlyResumed(t *testing.T) {
	o, old, f, sent := openRun(t, pausedEntry())
	d := rundir.At(old.Root + "-moved")
	require.NoError(t, os.Rename(old.Root, d.Root))
	same := unchanged(t, d.Root)
	revert := func() error { _, err := o.Revert(t.Context(), d, Reverting{To: "cp-1"}); return err }
	message := func(verb string) func() error {
		return func() error { _, err := o.SendUpdate(t.Context(), d, verb, contract.Message{USD: 9}); return err }
	}
	for verb, command := range map[string]func() error{
		"pause": message(contract.VerbPause), "budget": message(contract.VerbBudget),
		"steer": message(contract.VerbSteer), "amend": message(contract.VerbAmend), "revert": revert,
		"cancel": func() error { return o.Cancel(t.Context(), d) },
	} {
		require.EqualError(t, command(), verb+" refused: its directory was moved: its workflow writes "+old.Root+
			". To continue the run here: starter resume "+d.Root)
	}
	require.Zero(t, *sent)
	require.Empty(t, f.cancelled)
	same()

	o, old, _, sent = openRun(t, decided(run.KindHandoffRequested, "", run.QuestionHandoff, run.TriggerAsked,
		run.ActionContinue)[0])
	d = rundir.At(old.Root + "-moved")
	require.NoError(t, os.Rename(old.Root, d.Root))
	_, err := o.Decide(t.Context(), d, contract.Message{Action: run.ActionContinue})
	require.EqualError(t, err, "decide refused: its directory was moved: its workflow writes "+old.Root+
		". To continue the run here: starter resume "+d.Root)
	require.Zero(t, *sent)
}
