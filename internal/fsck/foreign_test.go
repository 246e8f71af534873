package fsck_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/internal/projector"
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

// foreign writes meta.json and events.jsonl of another program.
func foreign(meta string, events ...string) change {
	return together(withFile(layout.EventsFile, linesOf(events...)), withFile(layout.MetaFile, meta))
}

const (
	evParent = `run.start {"task": "t", "run_kind": "cross_project", "projects": [{"alias": "api", "path": "/api"}, ` +
		`{"alias": "web", "path": "/web"}], "cross_mode": "full"}`
	evAPI     = `run.start {"run_kind": "single_project", "parent_run_id": "p", "project_alias": "api"}`
	evWeb     = `run.start {"run_kind": "single_project", "parent_run_id": "p", "project_alias": "web"}`
	evDone    = `run.end {"status": "done"}`
	evEnd     = `run.end {"status": "done", "projects": 2, "rounds": 1}`
	evStart   = `run.start {"task": "t"}`
	evAsk     = `phase.handoff_requested {"handoff_id": "h-1", "phase": "plan"}`
	evAsk2    = `phase.handoff_requested {"handoff_id": "h-2", "phase": "plan"}`
	evForward = `phase.handoff_requested {"handoff_id": "project:api:h-1", "phase": "plan"}`
	evGone    = `run.interrupted {"reason": "gone"}`

	awaiting    = `{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-1"}}`
	crossFile   = "cross_checkpoint.json"
	crossPaused = `{"phase_handoff_pending": true, "phase_handoff_kind": "project", ` +
		`"phase_handoff_id": "project:api:h-1", "phase_handoff_project_alias": "api", "phase_handoff_child_id": "h-1", ` +
		`"sub_status": {"api": "awaiting_phase_handoff", "web": "done"}}`
	forwarded = `{"id": "project:api:h-1", "available_actions": ["continue", "halt"], ` +
		`"artifacts": {"project_alias": "api", "child_handoff_id": "h-1"}}`
)

func foreignDirectories() []directory {
	noDecision := []fsck.Code{fsck.ActiveHandoffWithoutDecision}
	of := func(changes ...change) func(*testing.T) (projector.Dir, fakeBlobs) {
		return func(t *testing.T) (projector.Dir, fakeBlobs) {
			d := projector.At(t.TempDir())
			together(changes...)(t, d)
			return d, nil
		}
	}
	const declared = `"projects": {"api": "/api", "web": "/web"}, `
	return []directory{
		{"reference, done", reference("feature_done"), nil},
		{"reference, asked twice", reference("planning_retry_then_continue"), nil},
		{"reference, asking", of(foreign(awaiting, evStart, evAsk)), noDecision},
		{"reference, across projects", of(foreign(awaiting, evStart, evAsk), withFile(crossFile, crossPaused)), noDecision},
		{"projects, at work", of(foreign(`{"status": "running", `+declared+
			`"phases": {"projects": {"api": {"status": "done"}}}}`, evParent, evAPI, evDone, evWeb),
			withFile("api/meta.json", `{"status": "done", "project_alias": "api"}`),
			withFile("web/meta.json", `{"status": "running"}`),
			withFile(crossFile, `{"phase0_done": true, "sub_status": {"api": "done", "web": "running"}}`)), nil},
		{"projects, asking", of(foreign(`{"status": "awaiting_phase_handoff", `+declared+`"phase_handoff": `+forwarded+`}`,
			evParent, evWeb, evDone, evAPI, evAsk, evForward),
			withFile("api/meta.json", awaiting), withFile("web/meta.json", `{"status": "done"}`),
			withFile(crossFile, crossPaused)), noDecision},
		{"projects, done", of(foreign(`{"status": "done", `+declared+`"phases": {}}`, evParent, evAPI, evDone, evWeb,
			evDone, evEnd),
			withFile("api/meta.json", `{"status": "done"}`), withFile("web/meta.json", `{"status": "done"}`),
			withFile(crossFile, `{"sub_status": {"api": "done", "web": "done"}}`)), nil},
	}
}

// foreignDamages are rows of directories of other programs, at least one for each code.
func foreignDamages() []damage {
	const old, work, asks, done = "reference, across projects", "projects, at work", "projects, asking", "projects, done"
	const one = "reference, asking"
	noDecision, pending := fsck.ActiveHandoffWithoutDecision, fsck.ActiveHandoffWithoutCheckpointPending
	kind, end := fsck.CheckpointKindIDMismatch, fsck.TerminalMetaWithoutTerminalEvent
	cross := func(from, to string) change { return swapped(crossFile, from, to) }
	copies := func(text string) change { return withKey("phases", `{"projects": `+text+`}`) }
	waits := func(kind, id, more string) change {
		return withFile(crossFile, fmt.Sprintf(`{"phase_handoff_pending": true, "phase_handoff_kind": %q, `+
			`"phase_handoff_id": %q%s}`, kind, id, more))
	}
	return []damage{
		stays("meta.json is missing", one, without(layout.MetaFile), fsck.MetaMissing),
		stays("meta.json is half a file", one, withFile(layout.MetaFile, `{"sta`), fsck.MetaUnreadable),
		stays("half a line at the end", "reference, done", with(layout.EventsFile, `{"seq":99`), fsck.StreamTornTail),
		stays("a line is missing", "reference, done",
			withLines(func(l []string) []string { return append(l[:2], l[3:]...) }), fsck.StreamSeqGap),
		stays("keys of Passbook have another type", "reference, done",
			together(withKey("version", `"x"`), withKey("state", "7"), withKey("events", "[]"))),
		stays("decided, and not acted on yet", one, withDecision("h-1", "continue")),
		repaired("the end is in the events only, and a hand-off is left over", "reference, asked twice",
			together(withKey("status", `"running"`), withKey("phase_handoff", `{"id":"validate_plan:plan_round:2"}`)),
			"status phase_handoff", fsck.TerminalEventWithoutTerminalMeta),
		stays("the hand-off has the name of its ID in decisions", one, withKey("phase_handoff", `{"handoff_id": "h-1"}`),
			noDecision),
		repaired("a halt was decided, and meta.json waits", one, withDecision("h-1", "halt"),
			"status halt_reason halted_at phase_handoff", fsck.HaltDecisionWithoutHaltedMeta),
		stays("halted by a decision, then a resume was refused", one, together(withDecision("h-1", "halt"),
			foreign(`{"status": "halted"}`, evStart, evAsk, evStart, "run.interrupted"))),
		undecided("done in both, with a halt beside", one, together(withDecision("h-1", "halt"),
			foreign(`{"status": "done"}`, evStart, evAsk, evDone)), fsck.HaltDecisionWithoutHaltedMeta,
			fsck.StreamOrderUnusual),
		repaired("the interruption was decided on, and is in the events only", one,
			together(foreign(awaiting, evStart, evAsk, evGone), withDecision("h-1", "continue")), "status interrupted_at",
			fsck.InterruptedEventWithoutInterruptedMeta, fsck.InterruptedWithActiveHandoff).
			leaves(fsck.InterruptedWithActiveHandoff),
		undecided("the interruption is undecided, and is in the events only", one,
			foreign(awaiting, evStart, evAsk, evGone), fsck.InterruptedEventWithoutInterruptedMeta,
			fsck.InterruptedWithActiveHandoff, noDecision),
		undecided("done in meta.json, with one hand-off left over and another undecided", one,
			foreign(`{"status": "done", "phase_handoff": {"id": "h-1"}}`, evStart, evAsk, evAsk2), end,
			fsck.HandoffEventWithoutMetaHandoff, fsck.TerminalWithStaleHandoff, noDecision, fsck.StreamOrderUnusual),
		stays("another program asks again and again", one,
			foreign(awaiting, evStart, evAsk, evAsk2, evAsk, evAsk2, evAsk, evAsk2, evAsk), noDecision,
			fsck.StreamOrderUnusual),
		stays("another status", one, withKey("status", `"paused"`), fsck.StatusMismatch, noDecision),

		repaired("failed, with a hand-off left over", old,
			together(withKey("status", `"failed"`), withFile(crossFile, `{"phase_handoff_pending": false}`)), "phase_handoff",
			end, fsck.CrossTerminalWithStaleHandoff, pending, noDecision).leaves(end),
		undecided("failed, still waiting", old, withKey("status", `"failed"`), end, fsck.CrossTerminalWithStaleHandoff,
			noDecision),
		undecided("failed, and cross_checkpoint.json is half a file", old,
			together(withKey("status", `"failed"`), withFile(crossFile, "{")), end, fsck.CrossTerminalWithStaleHandoff,
			pending, fsck.CrossCheckpointUnreadable, noDecision),
		undecided("the projects wait, meta.json does not", old, withKey("phase_handoff", "null"),
			fsck.AwaitingWithoutActiveHandoff, fsck.CheckpointPendingWithoutActiveHandoff),
		stays("the hand-off is of another project", old, cross("project:api:", "project:web:"), kind, noDecision),
		stays("the hand-off of a project is not named", old, cross(`"phase_handoff_child_id": "h-1", `, ""),
			fsck.ProjectHandoffMarkerIncomplete, noDecision),
		stays("the state of a final acceptance is lost", old, waits("cfa", "cfa:h-1", ""),
			fsck.CFAPendingWithoutPausedState, noDecision),
		stays("a plan with the ID of another kind", old, waits("plan", "plan:h-1", ""), kind, noDecision),
		stays("a gate and a hand-off at once", old, waits("gate", "h-1", `, "pending_gate": {"name": "contract_check"}`),
			fsck.PendingGateAndHandoffActive, noDecision),
		stays("cross_checkpoint.json is half a file", work, withFile(crossFile, `{"sub_`), fsck.CrossCheckpointUnreadable),
		stays("cross_checkpoint.json is missing", work, without(crossFile)),

		stays("a project is declared twice", work, swapped(layout.MetaFile, `{"api": "/api"`,
			`{"api": "/api", "api": "/api"`), fsck.CrossParentContradiction),
		stays("an undeclared project starts", work,
			withFile(layout.EventsFile, linesOf(evParent, evAPI, evDone, `run.start {"project_alias": "app"}`)),
			fsck.CrossParentContradiction),
		stays("a copy of an undeclared project", work, copies(`{"api": {"status": "done"}, "app": {"status": "done"}}`),
			fsck.CrossParentContradiction),
		stays("a folder of another run", work, withFile("notes/meta.json", `{"status": "failed"}`)),
		stays("two folders of a project", work, withFile("api-2/meta.json", `{"status": "done", "project_alias": "api"}`),
			fsck.CrossParentContradiction),
		stays("a copy has another status", work, copies(`{"web": {"status": "done"}}`),
			fsck.CrossParentContradiction),
		stays("meta.json of a project is half a file", work, withFile("web/meta.json", `{"sta`),
			fsck.CrossParentContradiction),
		stays("a copy is not an object", work, copies(`{"web": 7}`), fsck.CrossParentContradiction),
		stays("a copy, and the project itself is missing", work,
			together(copies(`{"web": {"status": "running"}}`), without("web/meta.json")),
			fsck.CrossParentContradiction),
		stays("a failed project holds a hand-off", asks,
			withFile("api/meta.json", `{"status": "failed", "phase_handoff": {"id": "h-1"}}`),
			fsck.CrossParentContradiction, noDecision),
		stays("two projects ask", asks, withFile("web/meta.json",
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-9"}}`), fsck.CrossParentContradiction, noDecision),
		undecided("the checkpoint waits for nothing", work, cross("{", `{"phase_handoff_pending": true, `),
			fsck.CrossParentContradiction, fsck.CheckpointPendingWithoutActiveHandoff),
		stays("a hand-off that the checkpoint does not wait for", asks,
			cross(`"phase_handoff_pending": true`, `"phase_handoff_pending": false`),
			fsck.CrossParentContradiction, pending, noDecision),
		stays("the checkpoint has another kind", asks, cross(`"phase_handoff_kind": "project"`,
			`"phase_handoff_kind": "cfa", "cfa_paused_state": {}`), fsck.CrossParentContradiction, kind, noDecision),
		stays("the checkpoint has another project", asks, cross(`_alias": "api"`, `_alias": "web"`),
			fsck.CrossParentContradiction, kind, noDecision),
		stays("the checkpoint has another hand-off", asks, cross(`"project:api:h-1"`, `"project:api:h-2"`),
			fsck.CrossParentContradiction, noDecision),
		stays("the checkpoint has another hand-off of the project", asks, cross(`_id": "h-1"`, `_id": "h-2"`),
			fsck.CrossParentContradiction, noDecision),
		stays("a hand-off while a phase is open", asks, withFile(layout.EventsFile, linesOf(evParent, evWeb, evDone, evAPI,
			`phase.start {"phase_key": "plan", "project_alias": "web"}`, evAsk, evForward)),
			fsck.CrossParentContradiction, noDecision),
		stays("done, and a project is not", done,
			together(withFile("web/meta.json", `{"status": "running"}`), withFile(crossFile, "{}")),
			fsck.CrossParentContradiction),
	}
}

// TestReferenceRuns checks two runs that another program has recorded.
func TestReferenceRuns(t *testing.T) {
	for name, seq := range map[string]int64{"feature_done": 34, "planning_retry_then_continue": 28} {
		d := projector.At(filepath.Join("..", "..", "rundir", "testdata", "reference", name))
		r := check(t, d)
		require.True(t, r.OK)
		require.Empty(t, r.Issues)
		require.Equal(t, seq, r.Snapshot.Seq)
		require.Equal(t, run.EffectiveStatus{Status: run.Done, Recorded: run.Done, Liveness: run.LiveUnknown},
			r.EffectiveStatus)
	}
}

// TestRepairKeepsBytesOfOtherPrograms: unknown keys of meta.json, their order and their form stay.
func TestRepairKeepsBytesOfOtherPrograms(t *testing.T) {
	d, _ := directoryOf(t, "reference, asked twice")
	before := read(t, d, layout.MetaFile)
	swapped(layout.MetaFile, "\"status\": \"done\",\n",
		"\"status\": \"done\",\n  \"phase_handoff\": {\n    \"id\": \"validate_plan:plan_round:2\"\n  },\n")(t, d)
	require.Equal(t, []fsck.Change{{
		Field: "phase_handoff", Before: json.RawMessage(`{"id":"validate_plan:plan_round:2"}`),
		Code: fsck.TerminalWithStaleHandoff,
	}}, repair(t, d, nil).Changes)
	require.Equal(t, before, read(t, d, layout.MetaFile))
	require.NotContains(t, look(t, d), layout.LockFile, "it is no file of another program")
}

// TestDecidedHaltIsExecuted with the time of the last decision, or that of the repair.
func TestDecidedHaltIsExecuted(t *testing.T) {
	for decision, at := range map[string]string{
		`{"handoff_id":"h-1","action":"Halt","decided_at":"2026-01-02T05:30:00+02:00"}`: "2026-01-02T04:00:00+00:00",
		`{"handoff_id":"h-1","action":"halt","decided_at":"2026-01-02T04:30:00+00:00"}`: "2026-01-02T04:30:00+00:00",
	} {
		d, _ := directoryOf(t, "reference, asking")
		withDecision("h-1", "halt")(t, d)
		write(t, d, "phase_handoff_decisions/a.json", decision)
		repair(t, d, nil)
		require.JSONEq(t, `{"status": "halted", "halt_reason": "phase_handoff_halt", "halted_at": "`+at+`"}`,
			read(t, d, layout.MetaFile))
	}
	d, _ := directoryOf(t, "reference, asking")
	write(t, d, "phase_handoff_decisions/b.json", `{"handoff_id":"h-1","action":"halt"}`)
	repair(t, d, nil)
	require.Contains(t, read(t, d, layout.MetaFile), `"halted_at": "2026-01-03T12:00:00.000Z"`)
}

// TestDirectoryOfAProject: its events are in the stream of the parent, if that declares it.
func TestDirectoryOfAProject(t *testing.T) {
	d, _ := directoryOf(t, "projects, asking")
	write(t, d, "app/meta.json", `{"status": "done"}`)
	for name, want := range map[string][]fsck.Code{"api": {fsck.ActiveHandoffWithoutDecision}, "web": nil} {
		r := check(t, projector.At(d.Path(name)))
		require.Equal(t, want, codesOf(r), "%+v", r.Issues)
		require.EqualValues(t, r.MetaStatus, r.EffectiveStatus.Status)
	}
	require.Equal(t, []fsck.Code{fsck.TerminalMetaWithoutTerminalEvent}, codesOf(check(t, projector.At(d.Path("app")))))
}

// TestCrossParent: the class of a run across projects, and the status and blocker of each project.
func TestCrossParent(t *testing.T) {
	d, _ := directoryOf(t, "projects, asking")
	want := &run.CrossParent{
		Class: run.ParentAwaiting, Violations: []run.CrossViolation{},
		Children: []run.CrossChild{
			{Alias: "api", Status: "awaiting_phase_handoff", Blocker: "status:awaiting_phase_handoff"},
			{Alias: "web", Status: "done"}},
	}
	require.Equal(t, want, check(t, d).CrossParent)
	p, err := fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Equal(t, want, p)

	d, _ = directoryOf(t, "reference, asking")
	require.Nil(t, check(t, d).CrossParent)
	p, err = fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Nil(t, p)

	d = projector.At(filepath.Join(t.TempDir(), "run"))
	foreign(`{"status": "running", "projects": {"rejected": 1, "no verdict": 1, "not judged": 1, "../out": 1, "": 1, `+
		`"a folder": 1, "deep/er": 1}}`, evParent)(t, d)
	reason := `{"status": "halted", "halt_reason": "` + run.ReasonRejected + `", "phases": {"final_acceptance": `
	for name, text := range map[string]string{"../out": `{"status": "done"}`, "deep/er": `{"status": "done"}`,
		"rejected":   reason + `{"verdict": "REJECTED", "ship_ready": false}}}`,
		"no verdict": reason + `{"ship_ready": false}}}`, "not judged": reason + `{"verdict": "REJECTED"}}}`} {
		write(t, d, name+"/meta.json", text)
	}
	write(t, d, "a folder/meta.json/x", "")
	p, err = fsck.CrossParent(t.Context(), d.Dir)
	require.NoError(t, err)
	require.Equal(t, []run.CrossChild{
		{Alias: "rejected", Status: "halted", Blocker: "release_rejected"},
		{Alias: "no verdict", Status: "halted", Blocker: "status:halted"},
		{Alias: "not judged", Status: "halted", Blocker: "status:halted"},
		{Alias: "../out", Blocker: "child_missing"}, {Alias: "", Blocker: "child_missing"},
		{Alias: "a folder", Blocker: "child_missing"}, {Alias: "deep/er", Blocker: "child_missing"},
	}, p.Children)
}
