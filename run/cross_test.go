package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

// TestAcross judges a parent with two projects, api and web. Rows that name violations are inconsistent.
func TestAcross(t *testing.T) {
	no := false
	done := func(alias string) run.ChildFacts {
		return run.ChildFacts{Alias: alias, Own: run.Present, Status: "done"}
	}
	child := func(status string) run.ChildFacts {
		return run.ChildFacts{Alias: "api", Own: run.Present, Status: status}
	}
	asks := func(status, id string) run.ChildFacts {
		c := child(status)
		c.Pending = &run.CrossDecision{ID: id, ParentID: id}
		return c
	}
	rejected := child("halted")
	rejected.Halted, rejected.Verdict, rejected.ShipReady = run.ReasonRejected, "REJECTED", &no
	plan := &run.CrossDecision{ID: "cross_plan:1", ParentID: "cross_plan:1"}
	proxy := &run.CrossDecision{ID: "project:api:h-1", ParentID: "project:api:h-1", Kind: "project", Alias: "api",
		Child: "h-1"}
	waits := run.CrossCheckpoint{Pending: true, ID: "project:api:h-1", Kind: "project", Alias: "api", Child: "h-1"}
	unlike := func(change func(*run.CrossCheckpoint)) func(*run.CrossFacts) { // the decision that waits
		return func(f *run.CrossFacts) {
			f.Pending, f.Checkpoint = proxy, waits
			change(&f.Checkpoint)
		}
	}
	type codes = []run.CrossDetail
	for _, r := range []struct {
		name    string
		api     run.ChildFacts
		change  func(*run.CrossFacts)
		class   run.ParentClass
		blocker string // of api
		codes   codes
	}{
		{"all done", done("api"), nil, run.ParentReady, "", nil},
		{"a child works", child("running"), nil, run.ParentRunning, "", nil},
		{"a child is missing", run.ChildFacts{Alias: "api"}, nil, run.ParentBlocked, "child_missing", nil},
		{"a child failed", child("failed"), nil, run.ParentBlocked, "status:failed", nil},
		{"a child was rejected", rejected, nil, run.ParentBlocked, "release_rejected", nil},
		{"a child has no status", child(""), nil, run.ParentBlocked, "status_missing", nil},
		{"a rejected child that the cursor calls done", rejected,
			func(f *run.CrossFacts) { f.Children[0].Cursor = "done" }, run.ParentBlocked, "release_rejected", nil},
		{"the plan waits", run.ChildFacts{Alias: "api"}, func(f *run.CrossFacts) {
			f.Pending, f.Checkpoint = plan, run.CrossCheckpoint{Pending: true, ID: "cross_plan:1", Kind: "plan"}
		}, run.ParentAwaiting, "child_missing", nil},
		{"a child waits, and the parent passes it on", asks("awaiting_phase_handoff", "h-1"),
			func(f *run.CrossFacts) { f.Pending, f.Checkpoint = proxy, waits },
			run.ParentAwaiting, "status:awaiting_phase_handoff", nil},
		{"parent done", done("api"), func(f *run.CrossFacts) { f.Status = run.Done }, run.ParentSucceeded, "", nil},
		{"parent failed with a failed child", child("failed"), func(f *run.CrossFacts) { f.Status = run.Failed },
			run.ParentFailed, "status:failed", nil},
		{"parent halted with a rejected child", rejected, func(f *run.CrossFacts) { f.Status = run.Halted },
			run.ParentHalted, "release_rejected", nil},
		{"parent cancelled", run.ChildFacts{Alias: "api"}, func(f *run.CrossFacts) { f.Status = run.Cancelled },
			run.ParentHalted, "child_missing", nil},

		{"declared twice", done("api"), func(f *run.CrossFacts) { f.Declared = append(f.Declared, "web") },
			run.ParentInconsistent, "", codes{run.DeclaredAliasDuplicate}},
		{"undeclared", done("api"), func(f *run.CrossFacts) { f.Children = append(f.Children, done("extra")) },
			run.ParentInconsistent, "", codes{run.UndeclaredChild}},
		{"twice", done("api"), func(f *run.CrossFacts) { f.Children = append(f.Children, done("web")) },
			run.ParentInconsistent, "", codes{run.DuplicateChildFacts}},
		{"another status inside", run.ChildFacts{Alias: "api", Own: run.Present, Status: "done", Embedded: run.Present,
			Inside: "failed"}, nil, run.ParentInconsistent,
			"contradiction", codes{run.EmbeddedPhysicalStatusConflict}},
		{"no status inside", run.ChildFacts{Alias: "api", Own: run.Present, Status: "done", Embedded: run.Present}, nil,
			run.ParentReady, "", nil},
		{"unreadable", run.ChildFacts{Alias: "api", Own: run.Malformed}, nil, run.ParentInconsistent,
			"child_unreadable", codes{run.PhysicalChildMalformed}},
		{"unreadable inside", run.ChildFacts{Alias: "api", Own: run.Present, Status: "done", Embedded: run.Malformed},
			nil, run.ParentInconsistent,
			"contradiction", codes{run.EmbeddedChildMalformed}},
		{"inside only", run.ChildFacts{Alias: "api", Embedded: run.Present, Inside: "done"}, nil,
			run.ParentInconsistent, "child_missing", codes{run.EmbeddedWithoutPhysical}},
		{"a failed child holds a hand-off", asks("failed", "project:api:h-1"),
			func(f *run.CrossFacts) { f.Checkpoint = waits }, run.ParentInconsistent, "status:failed",
			codes{run.PendingDecisionWithoutPause}},
		{"a failed child that the cursor calls done", child("failed"),
			func(f *run.CrossFacts) { f.Children[0].Cursor = "done" }, run.ParentInconsistent, "status:failed",
			codes{run.CheckpointSubStatusContradiction}},
		{"parent and child ask different things", asks("awaiting_phase_handoff", "h-2"),
			func(f *run.CrossFacts) { f.Pending, f.Checkpoint = proxy, waits },
			run.ParentInconsistent, "status:awaiting_phase_handoff", codes{run.MultiplePendingDecisions}},
		{"two children ask", asks("awaiting_phase_handoff", "h-1"), func(f *run.CrossFacts) {
			f.Children[1].Status, f.Children[1].Pending, f.Checkpoint = "awaiting_phase_handoff",
				&run.CrossDecision{ID: "h-2"}, run.CrossCheckpoint{Pending: true}
		}, run.ParentInconsistent, "status:awaiting_phase_handoff", codes{run.MultiplePendingDecisions}},
		{"the checkpoint waits for nothing", done("api"), func(f *run.CrossFacts) { f.Checkpoint = waits },
			run.ParentInconsistent, "",
			codes{run.CheckpointPendingWithoutPayload}},
		{"the checkpoint does not wait", done("api"), func(f *run.CrossFacts) { f.Pending = plan },
			run.ParentInconsistent, "",
			codes{run.PayloadWithoutCheckpointPending}},
		{"another kind", done("api"), unlike(func(c *run.CrossCheckpoint) { c.Kind = "plan" }),
			run.ParentInconsistent, "", codes{run.CheckpointKindConflict}},
		{"another project", done("api"), unlike(func(c *run.CrossCheckpoint) { c.Alias = "web" }),
			run.ParentInconsistent, "", codes{run.CheckpointAliasConflict}},
		{"another hand-off of the project", done("api"), unlike(func(c *run.CrossCheckpoint) { c.Child = "h-2" }),
			run.ParentInconsistent, "", codes{run.CheckpointChildHandoffConflict}},
		{"another hand-off", done("api"), unlike(func(c *run.CrossCheckpoint) { c.ID = "project:api:h-2" }),
			run.ParentInconsistent, "", codes{run.CheckpointParentHandoffConflict, run.CheckpointHandoffConflict}},
		{"parent done with a failed child", child("failed"), func(f *run.CrossFacts) { f.Status = run.Done },
			run.ParentInconsistent, "status:failed",
			codes{run.TerminalParentContradiction}},
		{"parent done with a child at work", child("running"), func(f *run.CrossFacts) { f.Status = run.Done },
			run.ParentInconsistent, "status:running",
			codes{run.TerminalParentContradiction}},
	} {
		t.Run(r.name, func(t *testing.T) {
			f := run.CrossFacts{Declared: []string{"api", "web"}, Children: []run.ChildFacts{r.api, done("web")},
				Status: run.Running}
			if r.change != nil {
				r.change(&f)
			}
			got := run.Across(f)
			var found codes
			for _, v := range got.Violations {
				found = append(found, v.Detail)
			}
			require.Equal(t, r.codes, found)
			require.Equal(t, r.class, got.Class)
			require.Equal(t, "api", got.Children[0].Alias)
			require.Equal(t, r.blocker, got.Children[0].Blocker)
			require.Equal(t, "web", got.Children[1].Alias)
		})
	}
}
