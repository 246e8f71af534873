package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

// quick is a pipeline of one call; asking waits for a decision first.
const (
	quick = "pipeline: scheduled\nagent: {run: [the-agent], reply: text, env: [DEPLOY_KEY, OUT]}\nroles:\n  " +
		"worker: {prompt: prompt.md, gives: report}\nstages:\n  - name: work\n    steps:\n      - role: worker\n"
	asking = "pipeline: scheduled\nagent: {run: [scripted]}\nroles:\n  worker: {prompt: prompt.md, gives: " +
		"report}\nstages:\n  - name: work\n    steps:\n      - ask: Shall we?\n      - role: worker\n"
)

// schedules is a machine with a definition.
type schedules struct {
	*environment
	config string
}

func (h *environment) schedules(definition string) schedules {
	h.t.Helper()
	s := schedules{environment: h}
	s.define(definition)
	return s
}

func (s *schedules) define(definition string) {
	s.t.Helper()
	s.config = s.definition(s.dir("p"), definition, map[string]string{"prompt.md": "Work.\n"})
}

// list returns the schedules that the starter lists, by name.
func (s schedules) list() map[string]operations.ScheduleRow {
	s.t.Helper()
	var r struct{ Schedules []operations.ScheduleRow }
	require.NoError(s.t, json.Unmarshal([]byte(s.starter("schedule", "list", "--json")), &r))
	out := map[string]operations.ScheduleRow{}
	for _, row := range r.Schedules {
		out[row.Name] = row
	}
	return out
}

// awaits polls a schedule until it is so.
func (s schedules) awaits(name, what string, holds func(operations.ScheduleRow) bool) operations.ScheduleRow {
	s.t.Helper()
	var row operations.ScheduleRow
	until(s.t, what, func() bool {
		row = s.list()[name]
		return row.Name != "" && holds(row)
	})
	return row
}

// TestSchedule starts runs every second, one at a time, through an open run, a broken definition, a stopped server and
// a pause.
func TestSchedule(t *testing.T) {
	t.Parallel()
	s := newEnv(t, "PASSBOOK_IDLE=1s").schedules(asking)
	output := s.starter("schedule", "create", "often", "--every", "1s", "--config", s.config)
	require.Contains(t, output, "Created schedule often")
	require.Contains(t, output, "It keeps the server and the worker of this host running")

	row := s.awaits("often", "times are skipped while the run is open", func(r operations.ScheduleRow) bool {
		return r.Skipped >= 2 && r.Recent[0].Status == string(run.AwaitingPhaseHandoff)
	})
	require.Equal(t, 1, row.Starts)
	first := row.Recent[0]
	require.True(t, first.Open)
	require.Contains(t, row.Problem, "nothing starts until it ends (overlap skip)")
	due, err := time.Parse(run.TimeFormat, first.At)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(s.dir("runs"), "often-"+due.Format("20060102-150405")), first.Directory)
	claim, err := projector.At(first.Directory).Claim()
	require.NoError(t, err)
	require.Equal(t, "often", claim.Schedule.Name)
	require.Equal(t, first.At, claim.Schedule.At)
	output, code := s.try("schedule", "trigger", "often")
	require.Equal(t, 3, code, output)

	s.define(asking + "stages: []\n")
	s.starter("decide", first.Directory, "--action", "halt")
	row = s.awaits("often", "a start is refused",
		func(r operations.ScheduleRow) bool { return r.Recent[0].Status == operations.OccurrenceFailed })
	require.Contains(t, row.Recent[0].Problem, "pipeline.yaml:10")
	s.define(asking)
	row = s.awaits("often", "the next run waits",
		func(r operations.ScheduleRow) bool { return r.Recent[0].Status == string(run.AwaitingPhaseHandoff) })
	second := row.Recent[0]
	require.NotEqual(t, first.RunID, second.RunID)

	s.starter("server", "stop")
	s.starter("server", "start")
	s.starter("decide", second.Directory, "--action", "halt")
	row = s.awaits("often", "the next run waits", func(r operations.ScheduleRow) bool {
		return r.Recent[0].RunID != second.RunID && r.Recent[0].Status == string(run.AwaitingPhaseHandoff)
	})
	third := row.Recent[0]

	s.starter("schedule", "pause", "often", "--note", "enough")
	row = s.list()["often"]
	require.True(t, row.Paused)
	require.Equal(t, "enough", row.Note)
	server, starts := s.server(), row.Starts
	s.starter("decide", third.Directory, "--action", "halt") // nothing is left to list then: the server stops
	until(t, "nothing is left to do", func() bool { return !server.Alive() })
	require.Contains(t, s.starter("schedule", "unpause", "often"), "Next run: ")
	row = s.awaits("often", "it starts again", func(r operations.ScheduleRow) bool {
		return r.Starts > starts && r.Recent[0].Status == string(run.AwaitingPhaseHandoff)
	})
	require.Equal(t, starts+1, row.Starts, "what passed while it was paused is not caught up")

	last := row.Recent[0].Directory
	require.Contains(t, s.starter("schedule", "delete", "often"), "Its runs continue")
	require.Empty(t, s.list())
	require.NoFileExists(t, filepath.Join(s.state(), "schedules", "environ", "often.json"))
	require.True(t, statusIs(last, run.AwaitingPhaseHandoff))
	s.starter("decide", last, "--action", "halt")
}

// TestScheduleHasItsTimes creates a schedule in a time zone, and none whose times never come.
func TestScheduleHasItsTimes(t *testing.T) {
	t.Parallel()
	s := newEnv(t).schedules(asking)
	create := func(name string, more ...string) (string, int) {
		return s.try(append([]string{"schedule", "create", name, "--config", s.config}, more...)...)
	}
	output, code := create("one", "--cron", "0 2 * * *", "--time-zone", "Europe/Berlin", "--jitter", "5m", "--overlap",
		"buffer-one", "--catch-up-window", "7d", "--task", "Look.")
	require.Zero(t, code, output)
	one := s.list()["one"]
	require.Equal(t, []string{"0 2 * * *"}, one.Times)
	require.Equal(t, "buffer-one", one.Overlap)
	require.Equal(t, "Look.", one.Task)
	require.Len(t, one.Next, 10)
	next, err := time.Parse(run.TimeFormat, one.Next[0])
	require.NoError(t, err)
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	require.Equal(t, 2, next.In(berlin).Hour())
	output, code = create("two", "--cron", "0 2 31 2 *")
	require.Equal(t, 2, code, "its times never come: %s", output)
	require.Equal(t, map[string]operations.ScheduleRow{"one": one}, s.list())
}

// TestScheduleHandsOverItsEnvironment: runs of a schedule find the agent and the key of the terminal that created it,
// although the worker has neither. Past times are backfilled one after another.
func TestScheduleHandsOverItsEnvironment(t *testing.T) {
	t.Parallel()
	s := newEnv(t).schedules(quick)
	s.starter("server", "start")
	bin, out := s.dir("bin"), s.dir("out")
	for _, dir := range []string{bin, out} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	agent := filepath.Join(bin, "the-agent")
	require.NoError(t, os.WriteFile(agent, []byte(lateAgent), 0o700)) //nolint:gosec // it is a program
	s.env = append(s.env, "PATH="+bin+":"+os.Getenv("PATH"), "OUT="+out, "DEPLOY_KEY=correct-horse-battery")
	s.starter("schedule", "create", "hourly", "--every", "1h", "--config", s.config, "--paused")
	info, err := os.Stat(filepath.Join(s.state(), "schedules", "environ", "hourly.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	s.starter("schedule", "backfill", "hourly", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T02:00:00Z")
	row := s.awaits("hourly", "three runs are done", func(r operations.ScheduleRow) bool {
		done := 0
		for _, x := range r.Recent {
			if x.Status == string(run.Done) && !x.Open {
				done++
			}
		}
		return done == 3
	})
	require.Equal(t, 3, row.Starts)
	for hour, x := range []int{2, 1, 0} {
		require.Equal(t, filepath.Join(s.dir("runs"), fmt.Sprintf("hourly-20260101-%02d0000", x)),
			row.Recent[hour].Directory)
	}
	keys, err := os.ReadFile(filepath.Join(out, "keys"))
	require.NoError(t, err)
	require.Equal(t, "correct-horse-battery\ncorrect-horse-battery\ncorrect-horse-battery\n", string(keys))
}
