package fsck_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// linesOf numbers events as another program writes them: kind and payload.
func linesOf(events ...string) string {
	var out strings.Builder
	for i, e := range events {
		kind, payload, _ := strings.Cut(e, " ")
		if payload == "" {
			payload = "{}"
		}
		fmt.Fprintf(&out, `{"seq": %d, "ts": "2026-01-02T03:04:%02d.000", "kind": %q, "phase": null, "payload": %s}`+
			"\n", i+1, i, kind, payload)
	}
	return out.String()
}

// filesOf writes a directory by hand: names and texts.
func filesOf(files ...string) func(*testing.T) (projector.Dir, fakeBlobs) {
	return func(t *testing.T) (projector.Dir, fakeBlobs) {
		d := projector.At(t.TempDir())
		for i := 0; i < len(files); i += 2 {
			place(t, d, files[i], files[i+1])
		}
		return d, nil
	}
}

func place(t *testing.T, d projector.Dir, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(d.Path(name)), 0o755))
	write(t, d, name, text)
}

const (
	evParent = `run.start {"task": "t", "run_kind": "cross_project", "projects": [{"alias": "api", "path": "/api"}, ` +
		`{"alias": "web", "path": "/web"}], "cross_mode": "full"}`
	evAPI    = `run.start {"run_kind": "single_project", "parent_run_id": "p", "project_alias": "api"}`
	evWeb    = `run.start {"run_kind": "single_project", "parent_run_id": "p", "project_alias": "web"}`
	evDone   = `run.end {"status": "done"}`
	evEnd    = `run.end {"status": "done", "projects": 2, "rounds": 1}`
	evStart  = `run.start {"task": "t"}`
	evAsk    = `phase.handoff_requested {"handoff_id": "h-1", "phase": "plan"}`
	evAsk2   = `phase.handoff_requested {"handoff_id": "h-2", "phase": "plan"}`
	evPassOn = `phase.handoff_requested {"handoff_id": "project:api:h-1", "phase": "plan"}`

	crossPaused = `{"phase_handoff_pending": true, "phase_handoff_kind": "project", "phase_handoff_id": "project:api:h-1", "phase_handoff_project_alias": "api",
	"phase_handoff_child_id": "h-1", "sub_status": {"api": "awaiting_phase_handoff", "web": "done"}}`
	passedOn = `{"id": "project:api:h-1", "available_actions": ["continue", "halt"], ` +
		`"artifacts": {"project_alias": "api", "child_handoff_id": "h-1"}}`
)

func foreignBodies() []body {
	info := []fsck.Code{fsck.ActiveHandoffWithoutDecision}
	return []body{
		{"reference, across projects", filesOf(layout.EventsFile, askedLines, layout.MetaFile,
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`,
			"cross_checkpoint.json", crossPaused), info},
		{"projects, at work", filesOf(layout.EventsFile, linesOf(evParent, evAPI, evDone, evWeb), layout.MetaFile,
			`{"status": "running", "projects": {"api": "/api", "web": "/web"}, "cross_mode": "full", `+
				`"phases": {"projects": {"api": {"status": "done"}}}}`,
			"api/meta.json", `{"status": "done", "project_alias": "api"}`, "web/meta.json", `{"status": "running"}`,
			"cross_checkpoint.json", `{"phase0_done": true, "sub_status": {"api": "done", "web": "running"}}`), nil},
		{"projects, asking", filesOf(layout.EventsFile, linesOf(evParent, evWeb, evDone, evAPI, evAsk, evPassOn),
			layout.MetaFile,
			`{"status": "awaiting_phase_handoff", "projects": {"api": "/api", "web": "/web"}, "phase_handoff": `+
				passedOn+`}`,
			"api/meta.json", `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`, "web/meta.json",
			`{"status": "done"}`,
			"cross_checkpoint.json", crossPaused), info},
		{"projects, done", filesOf(layout.EventsFile, linesOf(evParent, evAPI, evDone, evWeb, evDone, evEnd),
			layout.MetaFile,
			`{"status": "done", "projects": {"api": "/api", "web": "/web"}, "phases": {"projects": {"api": {"status": "done"},`+
				` "web": {"status": "done"}}}}`,
			"api/meta.json", `{"status": "done"}`, "web/meta.json", `{"status": "done"}`,
			"cross_checkpoint.json", `{"sub_status": {"api": "done", "web": "done"}}`), nil},
		{"reference, no start", filesOf(layout.EventsFile, linesOf(evAsk), layout.MetaFile,
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`),
			[]fsck.Code{fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}},
		{"reference, asking for the second time", filesOf(layout.EventsFile, linesOf(evStart, evAsk, evAsk2),
			layout.MetaFile,
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-2"}}`),
			[]fsck.Code{fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}},
	}
}

func foreignInjuries() []injury {
	type codes = []fsck.Code
	type hurt = func(*testing.T, projector.Dir)
	key := func(name, value string) hurt {
		return func(t *testing.T, d projector.Dir) { setKey(t, d, name, value) }
	}
	file := func(name, text string) hurt { return func(t *testing.T, d projector.Dir) { place(t, d, name, text) } }
	gone := func(name string) hurt { return func(t *testing.T, d projector.Dir) { remove(t, d, name) } }
	all := func(each ...hurt) hurt {
		return func(t *testing.T, d projector.Dir) {
			for _, h := range each {
				h(t, d)
			}
		}
	}
	events := func(list ...string) hurt { return file(layout.EventsFile, linesOf(list...)) }
	cross := func(text string) hurt { return file("cross_checkpoint.json", text) }
	swap := func(name, from, to string) hurt {
		return func(t *testing.T, d projector.Dir) {
			raw, err := os.ReadFile(d.Path(name))
			require.NoError(t, err)
			require.Contains(t, string(raw), from)
			write(t, d, name, strings.ReplaceAll(string(raw), from, to))
		}
	}
	copies := func(text string) hurt { return key("phases", `{"projects": `+text+`}`) }
	halt := file("phase_handoff_decisions/h-1.json",
		`{"handoff_id":"h-1","action":"halt","decided_at":"2026-01-02T04:00:00+00:00"}`)
	parent := func(c ...run.CrossCode) codes {
		var out codes
		for _, one := range c {
			out = append(out, fsck.Code("cross_parent_"+string(one)))
		}
		return out
	}
	info := func(c codes, more ...fsck.Code) codes {
		return append(append(c, more...), fsck.ActiveHandoffWithoutDecision)
	}
	// same is a row whose findings stay: nothing of it is repaired.
	same := func(how, body string, h hurt, c codes) injury { return injury{how, body, h, c, "", c} }
	operator := func(how, body string, h hurt, c codes) injury { return injury{how, body, h, c, "operator", c} }
	const old, work, asks, done = "reference, across projects", "projects, at work", "projects, asking",
		"projects, done"
	return []injury{
		// runs over several projects
		{"several projects, failed, with a hand-off left over", old,
			all(key("status", `"failed"`), cross(`{"phase_handoff_pending": false}`)),
			info(codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.CrossTerminalWithStaleHandoff,
				fsck.ActiveHandoffWithoutCheckpointPending}), "phase_handoff",
			codes{fsck.TerminalMetaWithoutTerminalEvent}},
		operator("several projects, failed, still waiting", old, key("status", `"failed"`),
			info(codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.CrossTerminalWithStaleHandoff})),
		operator("several projects, failed, and what they wait for cannot be read", old,
			all(key("status", `"failed"`), cross("{")),
			info(codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.CrossTerminalWithStaleHandoff,
				fsck.ActiveHandoffWithoutCheckpointPending, fsck.CrossCheckpointUnreadable})),
		operator("several projects wait, meta.json does not", old, key("phase_handoff", "null"),
			codes{fsck.AwaitingWithoutActiveHandoff, fsck.CheckpointPendingWithoutActiveHandoff}),
		same("meta.json waits, several projects do not", old,
			cross(`{"phase_handoff_kind": "plan", "phase_handoff_id": "cross_plan:h-1"}`),
			info(codes{fsck.ActiveHandoffWithoutCheckpointPending})),
		same("the hand-off's id is of another kind", old,
			cross(`{"phase_handoff_pending": true, "phase_handoff_kind": "plan", "phase_handoff_id": "plan:h-1"}`),
			info(codes{fsck.CheckpointKindIDMismatch})),
		same("the hand-off's id is of another project", old,
			swap("cross_checkpoint.json", "project:api:", "project:web:"), info(codes{fsck.CheckpointKindIDMismatch})),
		same("the hand-off's project is unknown", old,
			swap("cross_checkpoint.json", `"sub_status": {"api"`, `"sub_status": {"app"`),
			info(codes{fsck.ProjectHandoffMarkerIncomplete})),
		same("the hand-off of a project is not named", old,
			swap("cross_checkpoint.json", `"phase_handoff_child_id": "h-1", `, ""),
			info(codes{fsck.ProjectHandoffMarkerIncomplete})),
		same("the hand-off's project is not named", old,
			swap("cross_checkpoint.json", `"phase_handoff_project_alias": "api",`, ""),
			info(codes{fsck.ProjectHandoffMarkerIncomplete})),
		same("the hand-off's project is not named, and its id is of a plan", old,
			all(swap("cross_checkpoint.json", `"phase_handoff_project_alias": "api",`, ""),
				swap("cross_checkpoint.json", "project:api:", "cross_plan:")),
			info(codes{fsck.ProjectHandoffMarkerIncomplete, fsck.CheckpointKindIDMismatch})),
		same("the hand-off is of an unknown kind", old,
			cross(`{"phase_handoff_pending": true, "phase_handoff_kind": "gate", "phase_handoff_id": "h-1"}`), info(nil)),
		same("what a final acceptance was paused in is lost", old,
			cross(`{"phase_handoff_pending": true, "phase_handoff_kind": "cfa", "phase_handoff_id": "cfa:h-1"}`),
			info(codes{fsck.CFAPendingWithoutPausedState})),
		same("a gate and a hand-off at once", old,
			swap("cross_checkpoint.json", "{\"phase_handoff_pending\"",
				`{"pending_gate": {"name": "contract_check"}, "phase_handoff_pending"`),
			info(codes{fsck.PendingGateAndHandoffActive})),
		same("cross_checkpoint.json is half a file", work, cross(`{"sub_`), codes{fsck.CrossCheckpointUnreadable}),
		same("cross_checkpoint.json is missing", work, gone("cross_checkpoint.json"), nil),
		{"the end of several projects is in the events only", done, all(key("status", `"running"`)),
			codes{fsck.TerminalEventWithoutTerminalMeta}, "status", nil},
		{"the failure of several projects is in the events only", asks,
			all(events(evParent, evAPI, evAsk, evPassOn, `run.end {"status": "failed", "projects": 2}`),
				swap("cross_checkpoint.json", `"phase_handoff_pending": true`, `"phase_handoff_pending": false`),
				file("api/meta.json", `{"status": "failed"}`)),
			info(append(parent(run.PayloadWithoutCheckpointPending), fsck.TerminalEventWithoutTerminalMeta,
				fsck.ActiveHandoffWithoutCheckpointPending)),
			"status phase_handoff", nil},

		// each contradiction between parent, children and checkpoint
		same("a project is declared twice", work, swap(layout.MetaFile, `"projects": {"api": "/api"`,
			`"projects": {"api": "/api", "api": "/api"`), parent(run.DeclaredAliasDuplicate)),
		same("a copy of an undeclared project", work, copies(`{"api": {"status": "done"}, "app": {"status": "done"}}`),
			parent(run.UndeclaredChild)),
		same("an undeclared project starts", work,
			events(evParent, evAPI, evDone, `run.start {"project_alias": "app"}`), parent(run.UndeclaredChild)),
		same("a folder of an undeclared project", work,
			file("app/meta.json", `{"status": "done", "project_alias": "app"}`), parent(run.UndeclaredChild)),
		same("a folder of another run", work, file("notes/meta.json", `{"status": "failed"}`), nil),
		same("two copies of a project", work, swap(layout.MetaFile, `{"api": {"status": "done"}}`,
			`{"api": {"status": "failed"}, "api": {"status": "done"}}`), parent(run.DuplicateChildFacts)),
		same("two folders of a project", work, file("api-2/meta.json", `{"status": "done", "project_alias": "api"}`),
			parent(run.DuplicateChildFacts)),
		same("a copy has another status", work, copies(`{"web": {"status": "done"}}`),
			parent(run.EmbeddedPhysicalStatusConflict)),
		same("a project's meta.json is half a file", work, file("web/meta.json", `{"sta`),
			parent(run.PhysicalChildMalformed)),
		same("a copy is not an object", work, copies(`{"web": 7}`), parent(run.EmbeddedChildMalformed)),
		same("a copy, and the project itself is missing", work,
			all(copies(`{"web": {"status": "running"}}`), gone("web/meta.json")), parent(run.EmbeddedWithoutPhysical)),
		same("a failed project holds a hand-off", asks,
			file("api/meta.json", `{"status": "failed", "phase_handoff": {"id": "h-1"}}`),
			info(parent(run.PendingDecisionWithoutPause))),
		same("the cursor is done, the project is not", work,
			swap("cross_checkpoint.json", `"web": "running"`, `"web": "done"`),
			parent(run.CheckpointSubStatusContradiction)),
		same("two projects ask", asks, file("web/meta.json",
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-9"}}`),
			append(info(parent(run.MultiplePendingDecisions)), "cross_parent_checkpoint_sub_status_contradiction")),
		operator("the checkpoint waits for nothing", work, swap("cross_checkpoint.json", "{\"phase0_done\"",
			`{"phase_handoff_pending": true, "phase0_done"`),
			append(parent(run.CheckpointPendingWithoutPayload), fsck.CheckpointPendingWithoutActiveHandoff)),
		same("a hand-off that the checkpoint does not wait for", asks,
			swap("cross_checkpoint.json", `"phase_handoff_pending": true`, `"phase_handoff_pending": false`),
			info(parent(run.PayloadWithoutCheckpointPending), fsck.ActiveHandoffWithoutCheckpointPending)),
		same("the checkpoint has another kind", asks,
			all(swap("cross_checkpoint.json", `"phase_handoff_kind": "project"`,
				`"phase_handoff_kind": "cfa", "cfa_paused_state": {}`)),
			info(parent(run.CheckpointKindConflict), fsck.CheckpointKindIDMismatch)),
		same("the checkpoint has another project", asks, swap("cross_checkpoint.json", `"phase_handoff_project_alias": "api"`,
			`"phase_handoff_project_alias": "web"`),
			info(parent(run.CheckpointAliasConflict), fsck.CheckpointKindIDMismatch)),
		same("the checkpoint has another hand-off", asks,
			swap("cross_checkpoint.json", `"project:api:h-1"`, `"project:api:h-2"`),
			info(parent(run.CheckpointParentHandoffConflict, run.CheckpointHandoffConflict))),
		same("the checkpoint has another hand-off of the project", asks,
			swap("cross_checkpoint.json", `"phase_handoff_child_id": "h-1"`, `"phase_handoff_child_id": "h-2"`),
			info(parent(run.CheckpointChildHandoffConflict))),
		same("a hand-off while a phase is open", asks,
			events(evParent, evWeb, evDone, evAPI, `phase.start {"phase_key": "plan", "project_alias": "web"}`, evAsk, evPassOn),
			info(parent(run.PendingWithActiveOperation))),
		same("the hand-off names its project itself", asks, key("phase_handoff", `{"id": "project:api:h-1", "kind": `+
			`"project", "project_alias": "api", "child_handoff_id": "h-1"}`), info(nil)),
		same("the hand-off is of another kind", asks, key("phase_handoff", `{"id": "project:api:h-1", "kind": "cfa", `+
			`"project_alias": "api", "child_handoff_id": "h-1"}`), info(parent(run.CheckpointKindConflict))),
		same("the hand-off has another name for the parent", asks, key("phase_handoff", `{"id": "project:api:h-1", `+
			`"parent_handoff_id": "h-7", "project_alias": "api", "child_handoff_id": "h-1"}`),
			info(parent(run.CheckpointParentHandoffConflict))),
		same("a copy of a project is null", work, copies(`{"api": {"status": "done"}, "web": null}`), nil),
		same("done, and a project is not", done, all(file("web/meta.json", `{"status": "running"}`), copies("{}"),
			cross("{}")), parent(run.TerminalParentContradiction)),
		{"done, with a hand-off of several projects left over", done,
			all(key("phase_handoff", passedOn), events(evParent, evAPI, evAsk, evPassOn, evParent, evEnd)),
			info(parent(run.PayloadWithoutCheckpointPending, run.TerminalParentContradiction),
				fsck.CrossTerminalWithStaleHandoff, fsck.ActiveHandoffWithoutCheckpointPending),
			"phase_handoff", nil},

		// streams of other programs in an unusual order
		{"no start, and the end is in the events only", "reference, no start",
			all(events(evAsk, evDone), key("phase_handoff", "null")),
			codes{fsck.TerminalEventWithoutTerminalMeta, fsck.AwaitingWithoutActiveHandoff, fsck.StreamOrderUnusual}, "status",
			codes{fsck.StreamOrderUnusual}},
		same("no start, and at work", "reference, no start", all(events(`phase.start {"phase_key": "plan"}`),
			file(layout.MetaFile, `{"status": "running"}`)), codes{fsck.StreamOrderUnusual}),
		same("an end while awaiting", "reference, asking for the second time",
			all(events(evStart, evAsk, evDone), file(layout.MetaFile, `{"status": "done"}`)),
			codes{fsck.StreamOrderUnusual}),
		same("a phase ended that never started", "reference, asking for the second time",
			all(events(evStart, `phase.end {"phase_key": "plan", "outcome": "ok"}`),
				file(layout.MetaFile, `{"status": "running"}`)), codes{fsck.StreamOrderUnusual}),
		{"the first of two hand-offs is left over", "reference, asking for the second time",
			key("phase_handoff", `{"id": "h-1"}`),
			codes{fsck.HandoffEventWithoutMetaHandoff, fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}, "",
			codes{fsck.HandoffEventWithoutMetaHandoff, fsck.ActiveHandoffWithoutDecision, fsck.StreamOrderUnusual}},
		operator("done in meta.json, with one hand-off left over and another undecided",
			"reference, asking for the second time",
			all(key("status", `"done"`), key("phase_handoff", `{"id": "h-1"}`)),
			codes{fsck.TerminalMetaWithoutTerminalEvent, fsck.HandoffEventWithoutMetaHandoff, fsck.TerminalWithStaleHandoff,
				fsck.ActiveHandoffWithoutDecision,
				fsck.StreamOrderUnusual}),
		operator("done in both, with a halt beside", "reference, no start",
			all(events(evAsk, evDone), file(layout.MetaFile, `{"status": "done"}`), halt),
			codes{fsck.HaltDecisionWithoutHaltedMeta, fsck.StreamOrderUnusual}),
		same("halted by a decision, then a resume was refused", "reference, asking for the second time",
			all(events(evStart, evAsk, evStart, "run.interrupted"), file(layout.MetaFile, `{"status": "halted"}`), halt), nil),
	}
}

// TestDoneIsNeverChanged: where events and meta.json both say done, no repair makes anything else of it, whatever came
// later and whatever decisions are on disk.
func TestDoneIsNeverChanged(t *testing.T) {
	for _, events := range [][]string{
		{evStart, evAsk, evDone}, {evAsk, evDone}, {evStart, evAsk, evAsk2, evDone}, {evStart, evDone, evAsk},
		{evStart, evAsk, evStart, evDone, evStart},
		{evStart, evDone, evStart, "run.interrupted"}, {evStart, evDone, `run.end {"status": "failed"}`}, {evDone},
	} {
		for _, handoff := range []string{"", `, "phase_handoff": {"id": "h-1"}`} {
			for _, actions := range [][]string{nil, {"halt"}, {"continue"}, {"halt", "retry_feedback"}} {
				d, _ := filesOf(layout.EventsFile, linesOf(events...), layout.MetaFile, `{"status": "done"`+handoff+`}`)(t)
				for i, action := range actions {
					place(t, d, fmt.Sprintf("phase_handoff_decisions/%d.json", i),
						fmt.Sprintf(`{"handoff_id": "h-%d", "action": %q}`, i+1, action))
				}
				res, err := fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Now: noon})
				require.NoError(t, err)
				for _, c := range res.Changes {
					require.Equal(t, "phase_handoff", c.Field, "%v %v", events, actions)
				}
				r := check(t, d)
				require.Equal(t, "done", r.MetaStatus)
				require.Equal(t, run.Done, r.EffectiveStatus.Status, "%v", events)
				now, err := d.Now()
				require.NoError(t, err)
				require.Equal(t, run.Done, now.State.Status)
			}
		}
	}
}

// TestHaltedStaysHalted: with a decision to halt on disk, and meta.json that says halted, the run is halted, whatever a
// refused resume appended.
func TestHaltedStaysHalted(t *testing.T) {
	for _, later := range [][]string{nil, {evStart}, {evStart, "run.interrupted"},
		{evStart, `run.end {"status": "failed"}`}} {
		d, _ := filesOf(layout.EventsFile, linesOf(append([]string{evStart, evAsk}, later...)...), layout.MetaFile,
			`{"status": "halted", "halt_reason": "phase_handoff_halt"}`,
			"phase_handoff_decisions/1.json", `{"handoff_id": "h-1", "action": "halt"}`)(t)
		r := check(t, d)
		require.Empty(t, r.Issues, "%v", later)
		require.Equal(t, run.Halted, r.EffectiveStatus.Status)
		now, err := d.Now()
		require.NoError(t, err)
		require.Equal(t, run.Halted, now.State.Status)
		before := look(t, d)
		_, err = fsck.Repair(t.Context(), d, fsck.RepairOptions{Apply: true, Now: noon})
		require.NoError(t, err)
		require.Equal(t, before, look(t, d))
	}
}

// TestDirectoryOfAProject: its events are in the stream of the parent.
func TestDirectoryOfAProject(t *testing.T) {
	d, _ := bodyOf(t, "projects, asking")
	for name, want := range map[string][]fsck.Code{"api": {fsck.ActiveHandoffWithoutDecision}, "web": nil} {
		child := projector.At(d.Path(name))
		r := check(t, child)
		require.Equal(t, want, codesOf(r), "%+v", r.Issues)
		require.EqualValues(t, r.MetaStatus, r.EffectiveStatus.Status)
		now, err := child.Now()
		require.NoError(t, err)
		require.EqualValues(t, r.MetaStatus, now.State.Status)
	}
	place(t, d, "app/meta.json", `{"status": "done"}`)
	require.Equal(t, []fsck.Code{fsck.TerminalMetaWithoutTerminalEvent}, codesOf(check(t, projector.At(d.Path("app")))),
		"it is not declared")
}

// TestRefusedHintsSayWhy: a halt that no repair carries out is not sent to one.
func TestRefusedHintsSayWhy(t *testing.T) {
	d, _ := filesOf(layout.EventsFile, linesOf(evStart, evAsk, evDone), layout.MetaFile, `{"status": "done"}`,
		"phase_handoff_decisions/1.json", `{"handoff_id": "h-1", "action": "halt"}`)(t)
	require.Equal(t, fsck.HaltDecisionWithoutHaltedMeta, check(t, d).Issues[0].Code)
	require.NotContains(t, check(t, d).Issues[0].Hint, "repair-state")
}

// TestMetaOfAnotherProgramIsIgnored: keys that we write with another type are not damage there.
func TestMetaOfAnotherProgramIsIgnored(t *testing.T) {
	d, _ := filesOf(layout.EventsFile, linesOf(evStart, evDone), layout.MetaFile,
		`{"status": "done", "no_change_outcome": {"status": "done"}, "phase_handoff": null, "version": "x", "state": 7, `+
			`"events": []}`)(t)
	now, err := d.Now()
	require.NoError(t, err)
	require.NoError(t, now.Why)
	require.Equal(t, run.Done, now.State.Status)
	require.Empty(t, check(t, d).Issues)

	write(t, d, layout.MetaFile, `{"sta`)
	now, err = d.Now()
	require.NoError(t, err)
	require.ErrorIs(t, now.Why, layout.ErrDamaged)
	require.Equal(t, run.Done, now.State.Status)
}

// TestCrossParentIsShown: check and status get the class of a run across projects, and where each project stands.
func TestCrossParentIsShown(t *testing.T) {
	d, _ := bodyOf(t, "projects, asking")
	want := &run.CrossParent{
		Class: run.ParentAwaiting, Violations: []run.CrossViolation{},
		Children: []run.CrossChild{{Alias: "api", Status: "awaiting_phase_handoff", Blocker: "status:awaiting_phase_handoff"},
			{Alias: "web", Status: "done"}},
	}
	require.Equal(t, want, check(t, d).CrossParent)
	p, err := fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Equal(t, want, p)

	remove(t, d, "api/meta.json")
	require.Equal(t, "child_missing", check(t, d).CrossParent.Children[0].Blocker)

	d, _ = bodyOf(t, "reference, asking")
	require.Nil(t, check(t, d).CrossParent)
	p, err = fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Nil(t, p)
}

// TestProjectsBlockTheirParent: a project whose work was rejected, that has no record in the directory, or whose name
// is no folder of it.
func TestProjectsBlockTheirParent(t *testing.T) {
	d := projector.At(filepath.Join(t.TempDir(), "run"))
	place(t, d, "../out/meta.json", `{"status": "done"}`)
	place(t, d, layout.EventsFile, linesOf(evParent))
	place(t, d, layout.MetaFile, `{"status": "running", "projects": {"rejected": 1, "no verdict": 1, "not judged": 1, `+
		`"../out": 1, "": 1, "a folder": 1, "deep/er": 1}}`)
	reason := `{"status": "halted", "halt_reason": "` + run.ReasonRejected + `", "phases": {"final_acceptance": `
	place(t, d, "rejected/meta.json", reason+`{"verdict": "REJECTED", "ship_ready": false}}}`)
	place(t, d, "no verdict/meta.json", reason+`{"ship_ready": false}}}`)
	place(t, d, "not judged/meta.json", reason+`{"verdict": "REJECTED"}}}`)
	place(t, d, "a folder/meta.json/x", "")
	place(t, d, "deep/er/meta.json", `{"status": "done"}`)
	p, err := fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Equal(t, []run.CrossChild{
		{Alias: "rejected", Status: "halted", Blocker: "release_rejected"},
		{Alias: "no verdict", Status: "halted", Blocker: "status:halted"},
		{Alias: "not judged", Status: "halted", Blocker: "status:halted"},
		{Alias: "../out", Blocker: "child_missing"}, {Alias: "", Blocker: "child_missing"},
		{Alias: "a folder", Blocker: "child_missing"}, {Alias: "deep/er", Blocker: "child_missing"},
	}, p.Children)

	d, _ = madeUp(linesOf(evStart), `{"status": "running", "projects": {"api": 1}}`)(t)
	p, err = fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Equal(t, []run.CrossChild{{Alias: "api", Blocker: "child_missing"}}, p.Children, "a run has one project")
}
