package fsck_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/internal/fsck"
	"github.com/passbook-run/passbook/internal/layout"
	"github.com/passbook-run/passbook/run"
)

// projectDamages are rows of the records of runs across projects.
func projectDamages() []damage {
	const work, asks, done = "projects, at work", "projects, asking", "projects, done"
	noDecision, contradiction := fsck.ActiveHandoffWithoutDecision, fsck.CrossParentContradiction
	changed, stale := fsck.DerivedFileDamaged, fsck.CrossTerminalWithStaleHandoff
	ended := fsck.TerminalMetaWithoutTerminalEvent
	checkpoint := func(from, to string) change { return swapped(layout.CrossFile, from, to) }
	waits := func(kind, id, more string) change {
		return withFile(layout.CrossFile, fmt.Sprintf(`{"phase_handoff_pending": true, "phase_handoff_kind": %q, `+
			`"phase_handoff_id": %q%s}`, kind, id, more))
	}
	remade := func(name string, do change, codes ...fsck.Code) damage { // of the run that asks
		return repaired(name, asks, do, layout.CrossFile, append(codes, changed, noDecision)...).leaves(noDecision)
	}
	return []damage{
		repaired("cross_checkpoint.json is half a file", work, cutInHalf(layout.CrossFile), layout.CrossFile,
			fsck.CrossCheckpointUnreadable, changed),
		repaired("cross_checkpoint.json is missing", work, without(layout.CrossFile), layout.CrossFile, changed),
		repaired("cross_checkpoint.json is ahead of the project", work,
			checkpoint(`"api": "running"`, `"api": "done"`), layout.CrossFile, contradiction, changed),
		stays("a project asks, and the run has not forwarded it yet", work, withFile("api/meta.json",
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-9"}}`)),
		stays("two folders of a project", work, withFile("api-2/meta.json", `{"status": "done", "project_alias": "api"}`),
			contradiction),
		stays("a folder of another run", work, withFile("notes/meta.json", `{"status": "failed"}`)),
		stays("meta.json of a project is half a file", work, withFile("api/meta.json", `{"sta`), contradiction),
		undecided("the checkpoint waits for nothing", work, checkpoint("false", "true"),
			fsck.CheckpointPendingWithoutActiveHandoff, contradiction, changed),
		repaired("a project is declared twice", work, swapped(layout.MetaFile, `"web": `, `"api": "/api", "web": `),
			layout.MetaFile, contradiction, changed),

		repaired("failed, with a hand-off left over", asks,
			together(withKey("status", `"failed"`), checkpoint("true", "false")), "status cross_checkpoint.json",
			ended, contradiction, stale, fsck.ActiveHandoffWithoutCheckpointPending, changed, noDecision).leaves(noDecision),
		undecided("failed, still waiting", asks, withKey("status", `"failed"`), ended, contradiction, stale, noDecision),
		undecided("failed, and cross_checkpoint.json is half a file", asks,
			together(withKey("status", `"failed"`), withFile(layout.CrossFile, "{")), ended,
			fsck.CrossCheckpointUnreadable, contradiction, stale, fsck.ActiveHandoffWithoutCheckpointPending, changed,
			noDecision),
		undecided("the projects wait, meta.json does not", asks, withKey("phase_handoff", "null"),
			fsck.AwaitingWithoutActiveHandoff, fsck.CheckpointPendingWithoutActiveHandoff, contradiction),
		remade("the hand-off is of another project", checkpoint(`"project:api:h-1"`, `"project:web:h-1"`),
			contradiction, fsck.CheckpointKindIDMismatch),
		remade("the hand-off of a project is not named", checkpoint(`_child_id": "h-1"`, `_child_id": ""`),
			fsck.ProjectHandoffMarkerIncomplete),
		remade("the state of a final acceptance is lost", waits("cfa", "cfa:h-1", ""), contradiction,
			fsck.CFAPendingWithoutPausedState),
		remade("a plan with the ID of another kind", waits("plan", "plan:h-1", ""), contradiction,
			fsck.CheckpointKindIDMismatch),
		remade("a gate and a hand-off at once", waits("gate", "h-1", `, "pending_gate": {"name": "contract_check"}`),
			contradiction, fsck.PendingGateAndHandoffActive),
		remade("a hand-off that the checkpoint does not wait for", checkpoint("true", "false"), contradiction,
			fsck.ActiveHandoffWithoutCheckpointPending),
		remade("the checkpoint has another hand-off of the project", checkpoint(`_child_id": "h-1"`, `_child_id": "h-2"`),
			contradiction),
		stays("a failed project holds a hand-off", asks,
			withFile("api/meta.json", `{"status": "failed", "phase_handoff": {"id": "h-1"}}`), contradiction, noDecision),
		repaired("a copy has another status", asks, swapped(layout.MetaFile, `"status": "done"`, `"status": "failed"`),
			"phases", contradiction, noDecision, fsck.DerivedFileBehind).leaves(noDecision),
		repaired("done, with a hand-off left over", done, withKey("phase_handoff", `{"id": "h-1"}`), "phase_handoff",
			fsck.MetaHandoffWithoutEvent, contradiction, stale, fsck.ActiveHandoffWithoutCheckpointPending, noDecision),
		stays("done, and a project is not", done, withFile("web/meta.json", `{"status": "running"}`), contradiction),
	}
}

// TestCrossParent: the class of a run across projects, and the status and blocker of each project.
func TestCrossParent(t *testing.T) {
	d, _ := directoryOf(t, "projects, asking")
	require.Equal(t, &run.CrossParent{
		Class: run.ParentAwaiting, Violations: []run.CrossViolation{},
		Children: []run.CrossChild{
			{Alias: "api", Status: "awaiting_phase_handoff", Blocker: "status:awaiting_phase_handoff"},
			{Alias: "web", Status: "done"}},
	}, check(t, d).CrossParent)
	d, _ = directoryOf(t, "asking")
	require.Nil(t, check(t, d).CrossParent)

	d, _ = directoryOf(t, "projects, at work")
	setKey(t, d, "projects", `{"rejected": "", "no verdict": "", "not judged": "", "../out": "", "": "", `+
		`"a folder": "", "deep/er": ""}`)
	reason := `{"status": "halted", "halt_reason": "` + run.ReasonRejected + `", "phases": {"final_acceptance": `
	for name, text := range map[string]string{"../out": projectDone, "deep/er": projectDone,
		"rejected":   reason + `{"verdict": "REJECTED", "ship_ready": false}}}`,
		"no verdict": reason + `{"ship_ready": false}}}`, "not judged": reason + `{"verdict": "REJECTED"}}}`} {
		write(t, d, name+"/meta.json", text)
	}
	write(t, d, "a folder/meta.json/x", "")
	require.Equal(t, []run.CrossChild{
		{Alias: "rejected", Status: "halted", Blocker: "release_rejected"},
		{Alias: "no verdict", Status: "halted", Blocker: "status:halted"},
		{Alias: "not judged", Status: "halted", Blocker: "status:halted"},
		{Alias: "../out", Blocker: "child_missing"}, {Alias: "", Blocker: "child_missing"},
		{Alias: "a folder", Blocker: "child_missing"}, {Alias: "deep/er", Blocker: "child_missing"},
	}, check(t, d).CrossParent.Children)
}
