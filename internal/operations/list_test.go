package operations

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

func TestListCombinesDirectoriesAndTemporal(t *testing.T) {
	state, root := t.TempDir(), t.TempDir()
	for id, kind := range map[string]string{"open": "running", "over": "done", "dead": "running", "late": "running",
		"lost": "running", "next": "running", "new": ""} {
		begun(t, filepath.Join(root, id), id, kind)
	}
	backup := filepath.Join(t.TempDir(), "aside")
	begun(t, backup, "aside", "done")
	require.NoError(t, Index(state, "aside", backup))
	require.NoError(t, Index(state, "open", filepath.Join(root, "open")))
	require.NoError(t, Index(state, "taken", backup))                   // the directory of another run
	require.NoError(t, Index(state, "gone", filepath.Join(root, "no"))) // deleted; Temporal knows it
	require.NoError(t, Index(state, "forgotten", filepath.Join(root, "no")))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a file"), nil, 0o600))

	f := &fakeTemporal{attributes: true, described: map[string]enumspb.WorkflowExecutionStatus{"late": isOpen,
		"dead": terminated, "next": isOpen}}
	score := 2.5
	f.executions = []*workflowpb.WorkflowExecutionInfo{
		execution(t, "open", 3, isOpen, map[string]any{"PassbookStatus": "paused"}),
		execution(t, "over", 3, completed, nil),
		execution(t, "dead", 3, terminated, nil),
		execution(t, "next", 3, completed, nil), // its next epoch is not in the list yet
		execution(t, "gone", 5, isOpen, map[string]any{"PassbookPipeline": "big", "PassbookStatus": "running",
			"PassbookStage": "pa", "PassbookCostUSD": 1.5, "PassbookScore": score}),
		execution(t, "gone", 4, terminated, map[string]any{"PassbookStatus": "paused"}), // an epoch before
		execution(t, "there", 6, terminated, map[string]any{"PassbookPipeline": "big", "PassbookStatus": "paused"}),
	}
	rows, lost, err := Here(state, root)
	require.NoError(t, err)
	slices.Sort(lost)
	require.Equal(t, []string{"forgotten", "gone", "taken"}, lost)
	l := must(Operator{Client: f, Namespace: "default"}.List(t.Context(), rows, lost, Filter{}))(t)
	require.Equal(t, map[string]run.Status{
		"open": run.Running, "over": run.Done, "dead": run.Interrupted, "late": run.Running, "lost": run.Interrupted,
		"next": run.Running, "new": run.Pending,
		"aside": run.Done, "gone": run.Running, "there": run.Interrupted,
	}, statuses(l))
	require.Equal(t, []string{"forgotten", "taken"}, l.Forgotten)
	require.Equal(t, allRuns, f.listed[0])
	for _, r := range l.Runs {
		switch r.RunID {
		case "open":
			require.Equal(t, run.Paused, r.EffectiveStatus.Live)
			require.Equal(t, Row{
				RunID: "open", Pipeline: "small", EffectiveStatus: r.EffectiveStatus, Stage: "build", Passes: 4,
				CostKnown: "exact", StartedAt: "2026-01-02T03:04:05.000Z",
				Directory: filepath.Join(root, "open"), claim: r.claim, begun: true, why: r.why,
			}, r)
		case "over":
			require.Contains(t, r.Damage, "meta.json: no such file", "of an open run it would be rebuilt")
		case "gone":
			require.Equal(t, Row{
				RunID: "gone", Pipeline: "big", EffectiveStatus: r.EffectiveStatus, Stage: "pa", CostUSD: 1.5, Score: &score,
				StartedAt: "2026-01-02T05:00:00.000Z",
			}, r)
		}
	}
}

func TestListOffline(t *testing.T) {
	root := t.TempDir()
	begun(t, filepath.Join(root, "a"), "a", "running")
	begun(t, filepath.Join(root, "b"), "b", "")
	begun(t, filepath.Join(root, "c"), "c", "done")
	require.NoError(t, os.WriteFile(filepath.Join(root, "c", rundir.MetaFile), []byte("{"), 0o600))
	rows, lost, err := Here(t.TempDir(), root)
	require.NoError(t, err)
	l := Offline(rows, lost, Filter{}, "not asked")
	require.Equal(t, map[string]run.Status{"a": run.Running, "b": run.Pending, "c": run.Done}, statuses(l))
	for _, r := range l.Runs {
		require.Equal(t, run.LiveUnknown, r.EffectiveStatus.Liveness)
		require.Equal(t, "not asked", r.EffectiveStatus.Detail)
		require.Contains(t, r.Damage, map[string]string{"a": "no such file", "c": "damaged"}[r.RunID])
		require.Equal(t, r.RunID == "b", r.Damage == "", "a run that has not begun has nothing to be damaged")
	}
	require.Equal(t, map[string]run.Status{"c": run.Done},
		statuses(Offline(rows, lost, Filter{Status: []run.Status{run.Done}}, "")))
}

func statuses(l Listing) map[string]run.Status {
	out := map[string]run.Status{}
	for _, r := range l.Runs {
		out[r.RunID] = r.EffectiveStatus.Status
	}
	return out
}

func TestListOfAnotherNamespace(t *testing.T) {
	row := Row{RunID: "a", begun: true, claim: run.Claim{Namespace: "theirs"}}
	row.EffectiveStatus.Recorded = run.Running
	l := must(Operator{Client: &fakeTemporal{}, Namespace: "ours"}.List(t.Context(), []Row{row}, nil, Filter{}))(t)
	require.Equal(t, run.Running, l.Runs[0].EffectiveStatus.Status)
	require.Equal(t, run.LiveUnknown, l.Runs[0].EffectiveStatus.Liveness)
	require.Contains(t, l.Runs[0].EffectiveStatus.Detail, "theirs")
}

func TestFilterNarrowsTheQuery(t *testing.T) {
	for _, row := range []struct {
		name string
		f    Filter
		want string
	}{
		{"nothing", Filter{}, allRuns},
		{"pipeline", Filter{Pipeline: "it's"},
			"WorkflowType = 'Pipeline' AND PassbookPipeline = 'it''s' AND ExecutionStatus != 'ContinuedAsNew'"},
		{"a status of closed runs", Filter{Status: []run.Status{run.Running, run.Interrupted}, Stage: "pa"}, allRuns},
		{"stage alone", Filter{Stage: "pa"}, allRuns},
		{
			"statuses of open runs", Filter{Status: []run.Status{run.Running, run.Paused}, Stage: "pa"},
			"WorkflowType = 'Pipeline' AND ExecutionStatus = 'Running' AND PassbookStatus IN ('running', 'paused') " +
				"AND PassbookStage = 'pa'",
		},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, row.f.query()) })
	}
}

func TestListWithoutSearchAttributesAsksForAll(t *testing.T) {
	f := &fakeTemporal{executions: []*workflowpb.WorkflowExecutionInfo{execution(t, "a", 3, isOpen, nil)}}
	l, err := Operator{Client: f, Namespace: "default"}.List(t.Context(), nil, []string{"a"}, Filter{Pipeline: "small"})
	require.NoError(t, err)
	require.Empty(t, l.Runs, "its pipeline is not known")
	require.Empty(t, l.Forgotten)
	require.Contains(t, f.listed, allRuns)
}

// TestRowAsJSON: scripts read this.
func TestRowAsJSON(t *testing.T) {
	raw := must(json.Marshal(Row{EffectiveStatus: run.NewEffectiveStatus(run.Running, run.LiveOpen, "")}))(t)
	require.JSONEq(t,
		`{"run_id": "", "pipeline": "", "task": "", "thread_id": "",
		"standing": {"status": "running", "rfc_status": "running", "recorded": "running", "liveness": "open"}, "stage": "", "passes_settled": 0,
		"passes_total": 0, "rounds": 0, "cost_usd": 0, "unknown_calls": 0, "cost_known": "", "not_approved": false,
		"score": null, "started_at": "", "directory": "", "damage": ""}`, string(raw))
}

func TestFilters(t *testing.T) {
	since := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	rows := []Row{
		{RunID: "a1", Pipeline: "pages", StartedAt: "2026-01-01T23:59:59.999Z",
			Directory: "/runs/night"},
		{RunID: "b2", Pipeline: "reviews", StartedAt: "2026-01-02T00:00:00.000Z",
			Task: "Fix the Sum"},
		{RunID: "c3", Pipeline: "reviews", StartedAt: "2026-01-03T00:00:00.000Z"},
	}
	for name, row := range map[string]struct {
		f    Filter
		want string
	}{
		"all":                 {Filter{}, "a1 b2 c3"},
		"since":               {Filter{Since: since}, "b2 c3"},
		"text in the task":    {Filter{Text: "the sum"}, "b2"},
		"text in a directory": {Filter{Text: "NIGHT"}, "a1"},
		"text in an id":       {Filter{Text: "c3"}, "c3"},
		"two at once":         {Filter{Pipeline: "reviews", Since: since, Text: "c"}, "c3"},
	} {
		var got []string
		for _, r := range rows {
			if row.f.wants(r) {
				got = append(got, r.RunID)
			}
		}
		require.Equal(t, row.want, strings.Join(got, " "), name)
		require.Equal(t, name != "all", row.f.Narrow(), name)
	}
}

// aged sets the times of a directory's files to one in the past, so that they are remembered.
func aged(t testing.TB, dir string) {
	t.Helper()
	then := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, name := range rowFiles {
		if err := os.Chtimes(filepath.Join(dir, name), then, then); !os.IsNotExist(err) {
			require.NoError(t, err)
		}
	}
}

func TestRowsAreReadAgainAfterAChange(t *testing.T) {
	root, state := t.TempDir(), t.TempDir()
	dir := filepath.Join(root, "a")
	begun(t, dir, "a", "begun")
	aged(t, dir)
	var r Rows
	stage := func() string {
		rows, _, err := r.Here(state, root)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		return rows[0].Stage
	}
	require.Equal(t, "build", stage())
	events := filepath.Join(dir, rundir.EventsFile)
	raw := must(os.ReadFile(events))(t)
	changed := bytes.ReplaceAll(raw, []byte("build"), []byte("build2"))
	require.NoError(t, os.WriteFile(events, changed, 0o600))
	require.Equal(t, "build2", stage())

	changed = bytes.ReplaceAll(raw, []byte("build"), []byte("build3"))
	require.NoError(t, os.WriteFile(events, changed, 0o600))
	require.Equal(t, "build3", stage(), "the same size, and perhaps the same time")

	aged(t, dir)
	require.Equal(t, "build3", stage())
	require.NoError(t, os.WriteFile(events, []byte("{"), 0o600))
	require.NoError(t, os.Truncate(events, int64(len(changed))))
	aged(t, dir)
	require.Equal(t, "build3", stage(), "remembered: the files have the same sizes and times")
	require.NoError(t, os.RemoveAll(dir))
	rows, _, err := r.Here(state, root)
	require.NoError(t, err)
	require.Empty(t, rows)
}

// TestLostWorkflowIsGoneOnItsOwnServerOnly: a run is gone only from the server that it was started on; hosted Temporal is known by its namespace.
func TestLostWorkflowIsGoneOnItsOwnServerOnly(t *testing.T) {
	for _, row := range []struct {
		name    string
		hosted  bool
		claimed string // cluster in run.json
		want    run.Liveness
	}{
		{"its cluster", false, "this", run.LiveGone},
		{"another cluster", false, "other", run.LiveUnknown},
		{"its namespace, by a client that knows the cluster", false, "the namespace", run.LiveGone},
		{"its namespace", true, "the namespace", run.LiveGone},
		{"another namespace", true, "other", run.LiveUnknown},
		{"a cluster that is not disclosed", true, "this", run.LiveUnknown},
		{"none recorded", true, "", run.LiveGone},
	} {
		t.Run(row.name, func(t *testing.T) {
			o := Operator{Client: &fakeTemporal{hosted: row.hosted}, Namespace: "default"}
			got := o.EffectiveStatus(t.Context(), run.Claim{RunID: "lost", Namespace: "default", Cluster: row.claimed},
				run.Running)
			require.Equal(t, row.want, got.Liveness, got.Detail)
		})
	}
}

// TestLostDatabaseLeavesTheRunGone: a server whose database was lost is another cluster at the same address: a resume needs no force there.
func TestLostDatabaseLeavesTheRunGone(t *testing.T) {
	o := Operator{Client: &fakeTemporal{}, Namespace: "default", Address: "temporal:7233"}
	claim := run.Claim{RunID: "lost", Namespace: "default", Cluster: "before", Address: "temporal:7233"}
	got := o.EffectiveStatus(t.Context(), claim, run.Running)
	require.Equal(t, run.LiveGone, got.Liveness)
	require.Contains(t, got.Detail, "the Temporal database was lost")
	require.NoError(t, mayReopen(rundir.At("/run"), run.State{Status: run.Running, Checkpoint: &run.CheckpointRef{ID: "cp-1"}}, got,
		Reopening{}))
	claim.Address = "other:7233"
	require.Equal(t, run.LiveUnknown, o.EffectiveStatus(t.Context(), claim, run.Running).Liveness)
}

func TestClaimNamesTheNamespaceOfHostedTemporal(t *testing.T) {
	for hosted, want := range map[bool]string{false: "this", true: "the namespace"} {
		id := must(Operator{Client: &fakeTemporal{hosted: hosted},
			Namespace: "default"}.cluster(t.Context()))(t)
		require.Equal(t, want, id)
	}
}

// TestRunThatEndsWhileItIsReadIsNotInterrupted: the end of a run is in its journal before its workflow closes. A reader
// may have read the journal before the end, and asked Temporal after it.
func TestRunThatEndsWhileItIsReadIsNotInterrupted(t *testing.T) {
	for name, read := range map[string]func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error){
		"one run": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			r, s, err := o.Describe(t.Context(), rundir.At(filepath.Join(root, "a")))
			require.Equal(t, run.Done, s.Status)
			return r.EffectiveStatus, err
		},
		"its journal": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			now, s, err := o.Observe(t.Context(), rundir.At(filepath.Join(root, "a")), run.Claim{RunID: "a"})
			require.Equal(t, run.Done, now.State.Status)
			return s, err
		},
		"the list": func(t *testing.T, o Operator, root string) (run.EffectiveStatus, error) {
			rows, lost, err := Here(t.TempDir(), root)
			require.NoError(t, err)
			l, err := o.List(t.Context(), rows, lost, Filter{})
			require.Len(t, l.Runs, 1)
			return l.Runs[0].EffectiveStatus, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "a")
			begun(t, dir, "a", "running")
			f := &fakeTemporal{attributes: true, described: map[string]enumspb.WorkflowExecutionStatus{"a": completed}}
			f.afterDescribe = func() {
				f.afterDescribe = nil
				require.NoError(t, os.RemoveAll(dir))
				begun(t, dir, "a", "done")
			}
			s := must(read(t, Operator{Client: f, Namespace: "default"}, root))(t)
			require.Equal(t, run.Done, s.Status)
		})
	}
}
