package operations

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"github.com/passbook-run/passbook/activities/contract"
	"github.com/passbook-run/passbook/config"
	"github.com/passbook-run/passbook/internal/environ"
	"github.com/passbook-run/passbook/internal/projector"
	"github.com/passbook-run/passbook/internal/secrets"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

const reads = "pipeline: reads\nagent: {run: [the-agent], reply: text, env: [DEPLOY_KEY]}\nroles:\n  reader: " +
	"{prompt: read.md, gives: report}\nstages:\n  - name: read\n    steps:\n      - role: reader\n"

// scheduleHost is a host with a schedule of a definition, and an operator of its worker.
func scheduleHost(t *testing.T, server *fakeTemporal) (Operator, contract.Occurrence) {
	t.Helper()
	root := t.TempDir()
	o := Operator{
		Client: server, Host: "here", Embedded: true, Redact: must(secrets.New(config.Settings{}, nil))(t),
		Environ: []string{"PATH=/created/bin", "DEPLOY_KEY=correct-horse", "OTHER=hidden"},
		Settings: config.Settings{StateDir: filepath.Join(root, "state"),
			Store: "file://" + filepath.Join(root, "of-the-worker"), TaskQueue: "passbook"},
	}
	write(t, root, map[string]string{"pipeline.yaml": reads, "read.md": "Read it.\n"})
	due := contract.Occurrence{
		Schedule: contract.Schedule{Name: "nightly", Host: "here", Config: filepath.Join(root, "pipeline.yaml"),
			Root: filepath.Join(root, "runs"), Store: "file://" + filepath.Join(root, "store"), Task: "Read all."},
		At: "2026-01-02T03:04:05.000Z", Execution: "execution-1",
	}
	must(o.handOverSchedule("nightly", "schedule create", must(o.definitionOf(due))(t).Plan))(t)
	o.Environ = nil // a worker has none
	return o, due
}

// TestStartDue starts one run for an occurrence, in a new directory. It finds that run before it reads the definition,
// without which no attempt can start another.
func TestStartDue(t *testing.T) {
	server := &fakeTemporal{startErr: serviceerror.NewUnavailable("no server")}
	o, due := scheduleHost(t, server)
	_, err := o.StartDue(t.Context(), due)
	require.ErrorContains(t, err, "no server")
	var app *temporal.ApplicationError
	require.NotErrorAs(t, err, &app, "another attempt may help")

	server.startErr = nil
	first := must(o.StartDue(t.Context(), due))(t)
	require.Equal(t, filepath.Join(due.Root, "nightly-20260102-030405"), first.Directory)
	require.Len(t, server.started, 2)
	require.Equal(t, server.started[0].Claim, server.started[1].Claim, "another attempt is for the same run")
	claim := must(projector.At(first.Directory).Claim())(t)
	require.Equal(t, first.RunID, claim.RunID)
	require.Equal(t, run.Scheduled{Name: "nightly", At: due.At, Execution: due.Execution}, claim.Schedule)
	require.Equal(t, due.Store, claim.Store, "the store of its creator")
	handed := must(environ.Load(o.Settings.StateDir, claim.RunID))(t)
	require.Equal(t, []string{"DEPLOY_KEY=correct-horse", "PATH=/created/bin"}, handed.Variables)

	backfilled := due // of the same time
	backfilled.Execution = "execution-2"
	second := must(o.StartDue(t.Context(), backfilled))(t)
	require.Equal(t, first.Directory+"-2", second.Directory)
	require.NotEqual(t, first.RunID, second.RunID)

	s := must(store.Open(t.Context(), due.Store))(t)
	defer s.Close()
	project(t, s, projector.At(first.Directory), first.RunID,
		entry{run.KindRunStart, run.RunStart{Pipeline: "reads", RunID: first.RunID}})
	require.NoError(t, os.Remove(due.Config))
	require.Equal(t, first, must(o.StartDue(t.Context(), due))(t), "the attempt that started it was lost")
	backfilled.Execution = "execution-3"
	_, err = o.StartDue(t.Context(), backfilled)
	require.ErrorAs(t, err, &app)
	require.Equal(t, contract.ErrNotStarted, app.Type())
	require.True(t, app.NonRetryable())
	require.Len(t, server.started, 3)
}

func TestNewScheduleCheckReportsEveryError(t *testing.T) {
	err := NewSchedule{Schedule: contract.Schedule{Name: "../x"}, Every: time.Millisecond, Cron: []string{" "},
		Overlap: "terminate-other"}.Check()
	for _, want := range []string{`NAME "../x"`, "--every 1ms: the shortest interval is 1s", `--cron ""`,
		"--overlap terminate-other: write one of allow-all"} {
		require.ErrorContains(t, err, want)
	}
	require.ErrorContains(t, NewSchedule{Schedule: contract.Schedule{Name: "x"}}.Check(),
		"--cron EXPRESSION or --every DURATION")
	require.NoError(t, NewSchedule{Schedule: contract.Schedule{Name: "x"}, Cron: []string{"@daily"}}.Check())
}
