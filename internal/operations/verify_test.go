package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/redact"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/internal/store/tree"
	"github.com/passbook-run/passbook/internal/workspace"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// finished is a finished run whose plan has these commands.
func finished(t *testing.T, s *store.Store, commands ...string) (d rundir.Dir, root string) {
	t.Helper()
	from := t.TempDir()
	write(t, from, map[string]string{"a.txt": "a\n"})
	saved := must(tree.Save(t.Context(), s, from, tree.Rules{}, nil))(t)
	plan := pipeline.Plan{Version: pipeline.PlanVersion, Pipeline: "p", Stages: []pipeline.PlanStage{{Name: "test",
		Rounds: []pipeline.PlanRound{{}}}}}
	steps := &plan.Stages[0].Rounds[0].Steps
	for _, command := range commands {
		*steps = append(*steps, pipeline.PlanStep{Key: "test/1", Kind: pipeline.KindRun, Run: command,
			Env: []string{"DEPLOY_TOKEN"}})
	}
	b := workspace.Blob(saved)
	return directoryOf(t, s, "v1",
		entry{run.KindRunStart, run.RunStart{RunID: "v1", ThreadID: "v1", Epoch: 1, Plan: string(must(s.PutJSON(t.Context(), plan))(t)),
			Definition: blobOf(t, s, "pipeline: p\n").Digest,
			Workspace:  &run.Workspace{Kind: "dir", Source: from, Tree: b}}},
		entry{run.KindWorkspaceUpdated, run.WorkspaceUpdated{Tree: b, Changed: 1}},
		entry{run.KindPassEnd, run.PassEnd{Pass: run.Pass{Step: "test/1"}, Outcome: run.CategoryOK,
			Validation: run.Validation{Passed: true}}},
		runEnded(run.Done)), b.Digest
}

func TestVerifyNeedsCommandAndTree(t *testing.T) {
	s := testStore(t)
	secrets := must(redact.New(redact.Options{}))(t)
	settings := config.Settings{StateDir: t.TempDir()}
	d, _ := finished(t, s)
	_, err := Verify(t.Context(), settings, d, secrets, nil)
	require.ErrorContains(t, err, "verify refused: the pipeline of run v1 in "+d.Root+" has no command: add a step")

	d, digest := finished(t, s, "true")
	require.NoError(t, s.Walk(t.Context(), func(o store.Object) error {
		if string(o.Digest) != digest {
			return nil
		}
		_, err := s.Remove(t.Context(), o)
		return err
	}))
	_, err = Verify(t.Context(), settings, d, secrets, nil)
	require.ErrorIs(t, err, store.ErrMissing)
	require.ErrorContains(t, err, "; run: starter check "+d.Root)
}

// TestVerifyRedactsEnvironmentOfRun runs a command that prints a secret which only the environment of the run has.
func TestVerifyRedactsEnvironmentOfRun(t *testing.T) {
	const secret = "s3cret-of-the-run"
	settings := config.Settings{StateDir: t.TempDir()}
	settings.Sandbox.Mode = sandbox.None
	must(environ.Save(settings.StateDir, environ.Environment{RunID: "v1", By: "start", At: time.Now(),
		Variables: []string{"DEPLOY_TOKEN=" + secret, "PATH=" + os.Getenv("PATH")}}))(t)
	secrets := must(redact.New(redact.Options{Names: []string{"DEPLOY_TOKEN"}}))(t)
	d, _ := finished(t, testStore(t), `echo "token $DEPLOY_TOKEN"; cat a.txt; exit 4`)
	v := must(Verify(t.Context(), settings, d, secrets, nil))(t)
	require.False(t, v.Passed)
	require.Equal(t, 4, v.Gates[0].ExitCode, v.Gates[0].Problem)
	require.Equal(t, "ok", v.Gates[0].Recorded, "a step without a name has no value")
	require.NotContains(t, v.Gates[0].Output, secret)
	require.Regexp(t, `token \[.*\]\na\n`, v.Gates[0].Output)
}

func TestOutputOfGateIsRedactedBeforeItIsCut(t *testing.T) {
	secret := strings.Repeat("s3cr3t-", 6)
	secrets := must(redact.New(redact.Options{
		Environ: []string{"DEPLOY_TOKEN=" + secret}, Names: []string{"DEPLOY_TOKEN"},
	}))(t)
	file := filepath.Join(t.TempDir(), "stdout")
	require.NoError(t, os.WriteFile(file, []byte(secret+strings.Repeat("x", maxGateOutput-20)), 0o600))
	require.NotContains(t, lastOutput(secrets, file), "s3cr3t")
}
