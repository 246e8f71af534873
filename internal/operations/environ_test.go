package operations

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

func given(t *testing.T, o Operator, id string) environ.Environment {
	t.Helper()
	return must(environ.Load(o.Settings.StateDir, id))(t)
}

func none(t *testing.T, o Operator, id string) {
	t.Helper()
	require.NoFileExists(t, filepath.Join(o.Settings.StateDir, "environ", id+".json"))
}

var allowed = []string{"ANTHROPIC_API_KEY=key", "HOOK=https://hook", "MY_KEY=new", "PATH=/new/bin"}

func TestResumePassesItsEnvironment(t *testing.T) {
	o, _, f := terminal(t)
	f.err = serviceerror.NewUnavailable("its answer is lost")
	_, err := o.Send(t.Context(), "run-1", contract.VerbPause, contract.Message{})
	require.Error(t, err)
	none(t, o, "run-1")
	_, err = o.Send(t.Context(), "run-1", contract.VerbResume, contract.Message{})
	require.ErrorIs(t, err, f.err)
	e := given(t, o, "run-1")
	require.Equal(t, "resume", e.By)
	require.Equal(t, allowed, e.Variables, "the message may have been received")
}

func TestRefusedResumePassesNoEnvironment(t *testing.T) {
	o, _, f := terminal(t)
	f.err = temporal.NewApplicationError("the budget is spent", "no")
	refused := (*RefusedError)(nil)
	_, err := o.Send(t.Context(), "run-1", contract.VerbResume, contract.Message{})
	require.ErrorAs(t, err, &refused)
	none(t, o, "run-1")
	old := []string{"PATH=/old"}
	must(environ.Save(o.Settings.StateDir, environ.Environment{RunID: "run-1", By: "start", Variables: old}))(t)
	_, err = o.Send(t.Context(), "run-1", contract.VerbResume, contract.Message{})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, old, given(t, o, "run-1").Variables)
}

func TestEnvironmentIsNotPassedToOtherHosts(t *testing.T) {
	for name, change := range map[string]func(*Operator, rundir.Dir){
		"no environment": func(o *Operator, _ rundir.Dir) { o.Environ = nil },
		"a run of another host": func(o *Operator, _ rundir.Dir) {
			require.NoError(t, os.RemoveAll(filepath.Join(o.Settings.StateDir, "index")))
		},
		"a store that every host reaches": func(_ *Operator, d rundir.Dir) {
			claim := must(d.Claim())(t)
			claim.Store = "s3://bucket"
			write(t, d.Root, map[string]string{rundir.ClaimFile: string(must(json.Marshal(claim))(t))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, d, f := terminal(t)
			f.err = serviceerror.NewUnavailable("no server")
			change(&o, d)
			_, err := o.Send(t.Context(), "run-1", contract.VerbResume, contract.Message{})
			require.ErrorIs(t, err, f.err)
			none(t, o, "run-1")
		})
	}
}

func TestStartPassesItsEnvironment(t *testing.T) {
	o, d, f := terminal(t)
	s := must(store.Open(t.Context(), o.Settings.Store))(t)
	in := contract.Input{
		Target: contract.Target{RunID: "run-1", Dir: d.Root, Store: o.Settings.Store},
		Claim:  run.Claim{RunID: "run-1", TaskQueue: "passbook"},
		Start:  run.RunStart{Plan: string(must(s.PutJSON(t.Context(), small))(t))},
	}
	const reuse = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	f.startErr = serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "")
	f.err = f.startErr // a check before the start is not its result
	require.Error(t, o.execute(t.Context(), in, reuse))
	none(t, o, "run-1")

	f.err, f.startErr = nil, nil
	require.NoError(t, o.execute(t.Context(), in, reuse))
	require.Equal(t, "start", given(t, o, "run-1").By)
	require.Equal(t, allowed, given(t, o, "run-1").Variables)
	require.NotContains(t, string(must(json.Marshal(f.started[1]))(t)), "/new/bin", "the environment stays on the host")

	in.Reopen = &contract.Reopen{Epoch: 2}
	require.NoError(t, o.execute(t.Context(), in, reuse))
	require.Equal(t, "resume", given(t, o, "run-1").By)
}

func TestSweepEnvironments(t *testing.T) {
	o, _, _ := terminal(t)
	ended := at(6)
	journaled(t, o, "closed", run.Done)
	journaled(t, o, "reopened", run.Done)
	away := filepath.Join(t.TempDir(), "disk", "run")
	require.NoError(t, Index(o.Settings.StateDir, "away", away))
	require.NoError(t, os.RemoveAll(journaled(t, o, "removed", "").Root))
	past := ended.Add(-time.Hour)
	for id, at := range map[string]time.Time{
		"run-1": past, "closed": past, "reopened": ended.Add(time.Hour), "away": past, "removed": past, "unknown": past,
		"expired": past,
	} {
		must(environ.Save(o.Settings.StateDir, environ.Environment{RunID: id, At: at}))(t)
	}
	require.NoError(t, environ.Expire(o.Settings.StateDir, "expired", past))
	copies := map[string]string{}
	for _, id := range []string{"run-1", "closed", "removed", "unknown", "expired"} {
		copies[id] = filepath.Join(o.Settings.Scratch(), id+"_g0.001.1.-.1", "1", "environ.json")
		write(t, filepath.Dir(copies[id]), map[string]string{"environ.json": "[]"})
	}
	require.NoError(t, SweepEnvironments(o.Settings))
	for id, file := range copies {
		_, err := os.Stat(file)
		require.Equal(t, id == "run-1", err == nil, "the copy of a run that is %s", id)
	}
	left := must(environ.Runs(o.Settings.StateDir))(t)
	require.ElementsMatch(t, []string{"run-1", "reopened", "away"}, left)
	require.NoError(t, SweepEnvironments(config.Settings{StateDir: filepath.Join(t.TempDir(), "none")}))
}

// TestInheritedEnvironment: a request of the console does not replace the environment of a run with that of the console.
func TestInheritedEnvironment(t *testing.T) {
	state := t.TempDir()
	must(environ.Save(state, environ.Environment{RunID: "known", By: "start", At: time.Now(),
		Variables: []string{"PATH=/of/the/terminal", "MY_KEY=old"}}))(t)
	for _, c := range []struct {
		run, origin string
		inherit     bool
		path        string
	}{
		{"known", "", false, "/of/the/console"},
		{"known", "", true, "/of/the/terminal"},
		{"fork", "known", true, "/of/the/terminal"},
		{"fork", "known", false, "/of/the/console"},
		{"fresh", "", true, "/of/the/console"},
		{"fork-of-a-foreign-one", "foreign", true, "/of/the/console"},
	} {
		o := Operator{Settings: config.Settings{StateDir: state}, Inherit: c.inherit,
			Environ: []string{"PATH=/of/the/console", "MY_KEY=new"}}
		undo := must(o.handOver(c.run, c.origin, "file:///store", "resume", small))(t)
		require.Equal(t, c.path, environ.Value(given(t, o, c.run).Variables, "PATH"), "%+v", c)
		require.NoError(t, undo())
	}
}
