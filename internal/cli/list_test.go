package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/api"
	"github.com/passbook-run/passbook/internal/operations"
	"github.com/passbook-run/passbook/run"
)

func some() []operations.Row {
	score := 2.5
	done := run.NewEffectiveStatus(run.Done, run.LiveClosed, "")
	return []operations.Row{
		{RunID: "aaaaaaaa-1", Pipeline: "b", EffectiveStatus: done, Stage: "x", Settled: 4, Passes: 4, CostUSD: 1,
			StartedAt: "2020-01-01T12:00:00.000Z", Directory: "/a/long/way/to/one"},
		{RunID: "aaaaaaaa-2", Pipeline: "a", EffectiveStatus: run.NewEffectiveStatus(run.Running, run.LiveUnknown, ""),
			Stage:   "y",
			Settled: 1, Passes: 4, CostUSD: 3, Score: &score, StartedAt: "2020-01-03T12:00:00.000Z"},
		{RunID: "b", Pipeline: "a pipeline with a long name",
			EffectiveStatus: run.NewEffectiveStatus(run.Running, run.LiveOpen, ""),
			CostUSD:         2, StartedAt: "2020-01-02T12:00:00.000Z"},
	}
}

func TestListSortsByEveryColumn(t *testing.T) {
	for by, want := range map[string]string{
		"run": "aaaaaaaa-1 aaaaaaaa-2 b", "run:desc": "b aaaaaaaa-2 aaaaaaaa-1", "pipeline": "aaaaaaaa-2 b aaaaaaaa-1",
		"status": "aaaaaaaa-1 aaaaaaaa-2 b",
		"stage":  "b aaaaaaaa-1 aaaaaaaa-2", "progress:desc": "aaaaaaaa-1 aaaaaaaa-2 b",
		"cost": "aaaaaaaa-1 b aaaaaaaa-2", "cost:desc": "aaaaaaaa-2 b aaaaaaaa-1",
		"score:desc": "aaaaaaaa-2 b aaaaaaaa-1", "started:asc": "aaaaaaaa-1 b aaaaaaaa-2",
		"started:desc": "aaaaaaaa-2 b aaaaaaaa-1", "directory:desc": "aaaaaaaa-1 aaaaaaaa-2 b",
	} {
		order, err := orderOf(by)
		require.NoError(t, err)
		rows := some()
		slices.SortFunc(rows, order)
		var got []string
		for _, r := range rows {
			got = append(got, r.RunID)
		}
		require.Equal(t, want, strings.Join(got, " "), by)
	}
}

// Projects are below their run, in the order of the definition.
func TestListIndentsProjects(t *testing.T) {
	rows := asTree([]operations.Row{
		{RunID: "eeeeeeee-1", Alias: "billing", Of: "aaaaaaaa-1", Pipeline: "service"},
		{RunID: "bbbbbbbb-1", Alias: "library", Of: "aaaaaaaa-1", Pipeline: "service"},
		{RunID: "cccccccc-1", Pipeline: "other"},
		{RunID: "aaaaaaaa-1", Pipeline: "shop", Projects: []string{"library", "billing"}},
		{RunID: "dddddddd-1", Alias: "left", Of: "removed", Pipeline: "alone"},
	})
	var got []string
	for _, line := range table(rows, 0, true)[1:] {
		got = append(got, strings.Join(strings.Fields(line)[:2], " "))
		project := strings.Contains(line, "library") || strings.Contains(line, "billing")
		require.Equal(t, project, strings.HasPrefix(line, "  "), line)
	}
	want := []string{"cccccccc other", "aaaaaaaa shop", "bbbbbbbb library", "eeeeeeee billing", "dddddddd alone"}
	require.Equal(t, want, got)
}

func TestListPrintsTable(t *testing.T) {
	var out bytes.Buffer
	(&app{out: &out}).printList(api.Listing{Runs: some(), Total: 3, Forgotten: []string{"c"}}, listOptions{})
	require.Equal(t, strings.TrimPrefix(`
RUN         PIPELINE                     STATUS    STAGE  PROGRESS   COST  SCORE  STARTED     DIRECTORY
aaaaaaaa-1  b                            done      x           4/4  $1.00      -  2020-01-01  /a/long/way/to/one
aaaaaaaa-2  a                            running?  y           1/4  $3.00    2.5  2020-01-03  (no directory here)
b           a pipeline with a long name  running   -             -  $2.00      -  2020-01-02  (no directory here)

Further runs without directory and workflow: 1. To remove one from the list: starter remove RUN
`, "\n"), out.String())
}

func TestNarrowTerminalCutsNamesAndMovesDirectories(t *testing.T) {
	rows := table(some(), 80, false)
	require.Equal(t, "b           a pipeline wi…  running   -             -  $2.00      -  2020-01-02", rows[3])
	dirs := directories(some())
	require.False(t, fits(rows, dirs, 80))
	require.True(t, fits(rows, dirs, 120))
	require.True(t, fits(rows, dirs, 0), "the width of a file is unlimited")
}

func TestListShowsStatusOfWorkflow(t *testing.T) {
	r := operations.Row{EffectiveStatus: run.NewEffectiveStatus(run.Running, run.LiveOpen, "")}
	r.EffectiveStatus.Live = run.Paused
	require.Equal(t, "running → paused", listedStatus(r))
}

func TestWrap(t *testing.T) {
	require.Equal(t, []string{"one two", "three", "longer-than-that", "x"},
		wrap("one two\nthree longer-than-that x", 7))
	require.Equal(t, []string{"one two"}, wrap("one  two", 0))
	require.Equal(t, []string{""}, wrap("", 10))
}

func TestSinceParsesDatesAndAges(t *testing.T) {
	here := time.FixedZone("here", 2*60*60)
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, here)
	for text, want := range map[string]string{
		"24h": "2026-03-03T12:00:00+02:00", "1.5d": "2026-03-03T00:00:00+02:00", "90m": "2026-03-04T10:30:00+02:00",
		"2026-03-01":       "2026-03-01T00:00:00+02:00",
		"2026-03-01 14:30": "2026-03-01T14:30:00+02:00", "2026-03-01T14:30:00Z": "2026-03-01T14:30:00Z",
	} {
		got, err := sinceOf(text, now)
		require.NoError(t, err)
		require.Equal(t, want, got.Format(time.RFC3339), text)
	}
	for _, text := range []string{"yesterday", "-3d", "-5m", "3", "2026-13-01"} {
		_, err := sinceOf(text, now)
		require.ErrorContains(t, err, text)
	}
}

// TestListNamesTheLongestWait: of several runs without a worker, the one that has waited longest is named.
func TestListNamesTheLongestWait(t *testing.T) {
	rows := some()
	for i, since := range []string{"2020-01-03T12:00:00.000Z", "2020-01-01T12:00:00.000Z", "2020-01-02T12:00:00.000Z"} {
		rows[i].EffectiveStatus.NoWorker = &run.NoWorker{Queues: []string{"q"}, Since: since}
	}
	var out bytes.Buffer
	(&app{out: &out}).printList(api.Listing{Runs: rows, Total: 3}, listOptions{})
	require.Contains(t, out.String(), "3 open runs wait for a worker: no worker polls q since 2020-01-01 12:00:00 UTC. ")
	n, oldest := withoutWorker(some())
	require.Zero(t, n)
	require.Nil(t, oldest)
}
