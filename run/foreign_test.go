package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// foreignFold folds lines of kind and payload, as another program numbers them.
func foreignFold(t *testing.T, lines ...string) *run.Fold {
	t.Helper()
	fold := run.NewFold(run.ForeignState(), run.History{})
	for i, line := range lines {
		kind, payload, _ := strings.Cut(line, " ")
		if payload == "" {
			payload = "{}"
		}
		e, err := run.ParseEvent(fmt.Appendf(nil,
			`{"seq":%d,"ts":"2026-01-02T03:04:%02d.000","kind":%q,"phase":null,"payload":%s}`, i+1, i, kind, payload))
		require.NoError(t, err, line)
		fold.Apply(e)
	}
	return fold
}

// TestForeignStreams folds what another program wrote by the meaning of its events alone. What our table of transitions
// does not hold is named.
func TestForeignStreams(t *testing.T) {
	const (
		start  = `run.start {"task":"t","run_kind":"single_project"}`
		ask1   = `phase.handoff_requested {"handoff_id":"h-1","phase":"plan"}`
		ask2   = `phase.handoff_requested {"handoff_id":"h-2","phase":"plan"}`
		done   = `run.end {"status":"done"}`
		failed = `run.end {"status":"failed"}`
		halted = `run.end {"status":"halted","halt_reason":"policy"}`
		parent = `run.start {"run_kind":"cross_project","projects":[{"alias":"api","path":"/api"}],"cross_mode":"full"}`
		api    = `run.start {"run_kind":"single_project","parent_run_id":"p","project_alias":"api"}`
		web    = `run.start {"run_kind":"single_project","parent_run_id":"p","project_alias":"web"}`
	)
	decide := func(id, action string) string {
		return fmt.Sprintf(`phase_handoff.decided {"handoff_id":%q,"action":%q}`, id, action)
	}
	for _, r := range []struct {
		name    string
		lines   []string
		status  run.Status
		handoff string
		unusual []string
	}{
		{"nothing", nil, run.Unknown, "", nil},
		{"in the usual order", []string{start, ask1, start, done}, run.Done, "", nil},
		{"interrupted and resumed", []string{start, ask1, start, "run.interrupted", start}, run.Running, "h-1", nil},
		{"failed and resumed", []string{start, failed, start}, run.Running, "", nil},
		{"killed and resumed", []string{start, start, ask1}, run.AwaitingPhaseHandoff, "h-1", nil},

		{"a second request", []string{start, ask1, ask2}, run.AwaitingPhaseHandoff, "h-2",
			[]string{"3: hand-off h-2 is requested while h-1 is open"}},
		{"no start", []string{ask1}, run.AwaitingPhaseHandoff, "h-1",
			[]string{"1: phase.handoff_requested comes before any run.start"}},
		{"no start, and done", []string{`phase.start {"phase_key":"plan"}`,
			`phase.end {"phase_key":"plan","outcome":"ok"}`, done}, run.Done, "",
			[]string{"1: phase.start comes before any run.start"}},
		{"an end while awaiting", []string{start, ask1, done}, run.Done, "",
			[]string{"3: run.end comes while the run is awaiting_phase_handoff"}},
		{"a phase that never started", []string{start, `phase.end {"phase_key":"plan","outcome":"ok"}`}, run.Running,
			"", []string{"2: phase plan ends and never started"}},
		{"paused while awaiting", []string{start, ask1, `run.paused {"reason":"disk-full"}`}, run.Paused, "h-1",
			[]string{"3: run.paused comes while the run is awaiting_phase_handoff"}},
		{"replaying after a failure", []string{start, failed, "run.replaying"}, run.Replaying, "",
			[]string{"3: run.replaying comes while the run is failed"}},
		{"interrupted after a failure", []string{start, failed, "run.interrupted"}, run.Interrupted, "",
			[]string{"3: run.interrupted comes while the run is failed"}},
		{"an unknown word", []string{start, `run.end {"status":"perfect"}`}, run.Running, "", nil},
		{"an unknown kind", []string{start, "plan.parsed", "artifact.created"}, run.Running, "", nil},
		{"said twice", []string{start, "run.halted", halted}, run.Halted, "", nil},

		{"a hand-off after done", []string{start, done, ask1}, run.Done, "",
			[]string{"3: phase.handoff_requested comes after the end of the run, which stays done"}},
		{"a start after done", []string{start, done, start}, run.Done, "",
			[]string{"3: run.start comes after the end of the run, which stays done"}},
		{"failed after done", []string{start, done, failed}, run.Done, "",
			[]string{"3: run.end comes after the end of the run, which stays done"}},
		{"interrupted after halted", []string{start, halted, "run.interrupted"}, run.Halted, "",
			[]string{"3: run.interrupted comes after the end of the run, which stays halted"}},
		{"a start after halted", []string{start, halted, start}, run.Running, "",
			[]string{"3: run.start comes after the run ended as halted"}},

		{"decided", []string{start, ask1, decide("h-1", "continue")}, run.Running, "", nil},
		{"decided to halt", []string{start, ask1, decide("h-1", "Halt")}, run.Halted, "", nil},
		{"decided behind the start", []string{start, ask1, start, decide("h-1", "retry_feedback")}, run.Running, "",
			nil},
		{"decided after an interruption", []string{start, ask1, "run.interrupted", decide("h-1", "continue")},
			run.Running, "", nil},
		{"another one is decided", []string{start, ask1, ask2, decide("h-1", "continue")}, run.AwaitingPhaseHandoff,
			"h-2",
			[]string{"3: hand-off h-2 is requested while h-1 is open", "4: hand-off h-1 is decided and not open"}},
		{"decided with nothing open", []string{start, decide("h-1", "halt")}, run.Halted, "",
			[]string{"2: hand-off h-1 is decided and not open"}},
		{"decided with an unknown word", []string{start, ask1, decide("h-1", "perhaps")}, run.AwaitingPhaseHandoff,
			"h-1",
			[]string{`3: a hand-off cannot be decided with "perhaps"`}},
		{"two gates", []string{start, `gate.requested {"id":"g-1"}`, `gate.requested {"id":"g-2"}`},
			run.AwaitingGateDecision, "",
			[]string{"3: gate.requested comes while the run is awaiting_gate_decision"}},
		{"a gate is decided", []string{start, `gate.requested {"id":"g-1"}`,
			`gate.decided {"id":"g-1","action":"retry"}`}, run.Running, "", nil},
		{"another gate is decided", []string{start, `gate.requested {"id":"g-1"}`,
			`gate.decided {"id":"g-0","action":"retry"}`}, run.AwaitingGateDecision, "",
			[]string{`3: gate g-0 is decided and not open`}},
		{"a review is approved", []string{start, `run.end {"status":"awaiting_human_review"}`,
			`review.decided {"action":"approve"}`}, run.Done, "", nil},

		{"children end", []string{parent, api, done, web, done}, run.Running, "", nil},
		{"a child fails", []string{parent, api, failed}, run.Running, "", nil},
		{"children end, then their parent", []string{parent, api, done, web, done, done}, run.Done, "", nil},
		{"the parent counts its projects", []string{parent, api, `run.end {"status":"failed","projects":2,"rounds":1}`},
			run.Failed, "", nil},
		{"an end names its child", []string{parent, `run.end {"status":"done","project_alias":"api"}`}, run.Running, "",
			nil},
		{"a child asks, and its parent passes it on",
			[]string{parent, api, ask1, `phase.handoff_requested {"handoff_id":"project:api:h-1"}`},
			run.AwaitingPhaseHandoff, "project:api:h-1", nil},
		{"the parent ends while a child waits", []string{parent, api, ask1,
			`phase.handoff_requested {"handoff_id":"project:api:h-1"}`, halted},
			run.Halted, "", nil},
		{"a child in a separate stream", []string{api, done}, run.Done, "", nil},
		{"a child in a separate stream, resumed", []string{api, ask1, api, done}, run.Done, "", nil},
	} {
		t.Run(r.name, func(t *testing.T) {
			fold := foreignFold(t, r.lines...)
			shot := fold.Snapshot()
			require.Equal(t, r.status, shot.Status)
			require.EqualValues(t, len(r.lines), shot.Seq)
			if r.handoff == "" {
				require.Nil(t, shot.ActiveHandoffID)
			} else {
				require.Equal(t, r.handoff, *shot.ActiveHandoffID)
			}
			var output []string
			for _, u := range fold.Unusual().First {
				output = append(output, fmt.Sprintf("%d: %s", u.Seq, u.Message))
			}
			require.Equal(t, r.unusual, output)
			require.Zero(t, fold.InvalidTransitions().Count, "nothing is refused")
		})
	}
}

// TestForeignPhases: a phase that ended has been there, whether it started or not, and an end without a key may bear
// another title than its start.
func TestForeignPhases(t *testing.T) {
	shot := foreignFold(t, "run.start", `phase.end {"phase_key":"plan","outcome":"ok"}`,
		`phase.start {"phase_key":"build"}`,
		`phase.end {"phase_key":"review","outcome":"rejected"}`).Snapshot()
	require.Equal(t, []string{"plan", "build", "review"}, shot.SeenPhases)
	require.Equal(t, []string{"plan"}, shot.CompletedPhases)
	require.Equal(t, []string{"review"}, shot.FailedPhases)
	require.Equal(t, "build", *shot.ActivePhase)

	fold := run.NewFold(run.ForeignState(), run.History{})
	for i, line := range []string{
		`{"seq":1,"kind":"run.start","phase":null,"payload":{}}`,
		`{"seq":2,"kind":"phase.start","phase":"DONE","payload":{"title":"Pipeline complete"}}`,
		`{"seq":3,"kind":"phase.end","phase":"DONE","payload":{"title":"plan=ok","outcome":"DONE"}}`,
	} {
		e, err := run.ParseEvent([]byte(line))
		require.NoError(t, err, i)
		fold.Apply(e)
	}
	require.Equal(t, []string{"Pipeline complete"}, fold.Snapshot().SeenPhases)
	require.Nil(t, fold.Snapshot().ActivePhase)
	require.Zero(t, fold.Unusual().Count)
}

// TestOwnStreamsKeepTheTable: the same events are refused in a stream of Passbook's own.
func TestOwnStreamsKeepTheTable(t *testing.T) {
	fold := run.NewFold(run.State{}, run.History{})
	for i, kind := range []run.Kind{run.KindHandoffRequested, run.KindPhaseEnd, run.KindRunEnd} {
		fold.Apply(run.Event{Seq: int64(i + 1), Kind: kind,
			Payload: []byte(`{"handoff_id":"h-1","phase_key":"plan","outcome":"ok","status":"done"}`)})
	}
	require.Equal(t, run.Unknown, fold.Snapshot().Status)
	require.EqualValues(t, 2, fold.InvalidTransitions().Count)
	require.Empty(t, fold.Snapshot().SeenPhases)
	require.Zero(t, fold.Unusual().Count)
}
