package rundir_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// projectDamages are rows of the records of runs across projects.
func projectDamages() []damage {
	const work, asks, done = "projects, at work", "projects, asking", "projects, done"
	checkpoint := func(from, to string) change { return swapped(rundir.CrossFile, from, to) }
	waits := func(kind, id, more string) change {
		return withFile(rundir.CrossFile, fmt.Sprintf(`{"phase_handoff_pending": true, "phase_handoff_kind": %q, `+
			`"phase_handoff_id": %q%s}`, kind, id, more))
	}
	return []damage{
		{"cross_checkpoint.json is half a file", work, cutInHalf(rundir.CrossFile)},
		{"cross_checkpoint.json is missing", work, without(rundir.CrossFile)},
		{"cross_checkpoint.json is ahead of the project", work, checkpoint(`"api": "running"`, `"api": "done"`)},
		{"a project asks, and the run has not forwarded it yet", work, withFile("api/meta.json",
			`{"status": "awaiting_phase_handoff", "phase_handoff": {"id": "h-9"}}`)},
		{"two folders of a project", work, withFile("api-2/meta.json", `{"status": "done", "project_alias": "api"}`)},
		{"a folder of another run", work, withFile("notes/meta.json", `{"status": "failed"}`)},
		{"meta.json of a project is half a file", work, withFile("api/meta.json", `{"sta`)},
		{"the checkpoint waits for nothing", work, checkpoint("false", "true")},
		{"a project is declared twice", work, swapped(rundir.MetaFile, `"web": `, `"api": "/api", "web": `)},

		{"failed, with a hand-off left over", asks, together(withKey("status", `"failed"`), checkpoint("true", "false"))},
		{"failed, still waiting", asks, withKey("status", `"failed"`)},
		{"failed, and cross_checkpoint.json is half a file", asks, together(withKey("status", `"failed"`), withFile(rundir.CrossFile, "{"))},
		{"the projects wait, meta.json does not", asks, withKey("phase_handoff", "null")},
		{"the hand-off is of another project", asks, checkpoint(`"project:api:h-1"`, `"project:web:h-1"`)},
		{"the hand-off of a project is not named", asks, checkpoint(`_child_id": "h-1"`, `_child_id": ""`)},
		{"the state of a final acceptance is lost", asks, waits("cfa", "cfa:h-1", "")},
		{"a plan with the ID of another kind", asks, waits("plan", "plan:h-1", "")},
		{"a gate and a hand-off at once", asks, waits("gate", "h-1", `, "pending_gate": {"name": "contract_check"}`)},
		{"a hand-off that the checkpoint does not wait for", asks, checkpoint("true", "false")},
		{"the checkpoint has another hand-off of the project", asks, checkpoint(`_child_id": "h-1"`, `_child_id": "h-2"`)},
		{"a failed project holds a hand-off", asks, withFile("api/meta.json", `{"status": "failed", "phase_handoff": {"id": "h-1"}}`)},
		{"a copy has another status", asks, swapped(rundir.MetaFile, `"status": "done"`, `"status": "failed"`)},
		{"done, with a hand-off left over", done, withKey("phase_handoff", `{"id": "h-1"}`)},
		{"done, and a project is not", done, withFile("web/meta.json", `{"status": "running"}`)},
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
	setKey(t, d, "projects", `{"rejected": "", "no verdict": "", "../out": "", "": "", `+
		`"a folder": "", "deep/er": ""}`)
	reason := `{"status": "halted", "halt_reason": "` + run.ReasonRejected + `", "phases": {"final_acceptance": `
	for name, text := range map[string]string{"../out": projectDone, "deep/er": projectDone,
		"rejected":   reason + `{"verdict": "REJECTED", "ship_ready": false}}}`,
		"no verdict": reason + `{"ship_ready": false}}}`} {
		write(t, d, name+"/meta.json", text)
	}
	write(t, d, "a folder/meta.json/x", "")
	require.Equal(t, []run.CrossChild{
		{Alias: "rejected", Status: "halted", Blocker: "release_rejected"},
		{Alias: "no verdict", Status: "halted", Blocker: "status:halted"},
		{Alias: "../out", Blocker: "child_missing"}, {Alias: "", Blocker: "child_missing"},
		{Alias: "a folder", Blocker: "child_missing"}, {Alias: "deep/er", Blocker: "child_missing"},
	}, check(t, d).CrossParent.Children)
}
