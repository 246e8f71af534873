package run_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/passbook-run/passbook/run"
)

func TestBeforeDelivery(t *testing.T) {
	for _, r := range []struct {
		halt, planOnly, override bool
		want                     run.Status
	}{
		{false, false, false, run.Done},
		{false, false, true, run.Done},
		{false, true, false, run.AwaitingHumanReview},
		{false, true, true, run.Done},
		{true, false, false, run.Halted},
		{true, false, true, run.Halted},
		{true, true, false, run.Halted},
		{true, true, true, run.Halted},
	} {
		require.Equal(t, r.want, run.BeforeDelivery(r.halt, r.planOnly, r.override), "%+v", r)
	}
}

func TestAfterDelivery(t *testing.T) {
	yes, no := true, false
	rejected, approved := run.Verdict{Word: " Rejected "},
		run.Verdict{Word: "APPROVED", ShipReady: &yes, Approved: &yes}
	noDiff := run.Result{Status: run.Halted, Reason: "final_acceptance_no_diff", Outcome: "no_op_outcome"}
	kept := run.Result{Status: run.Halted, Reason: "final_acceptance_rejected", Outcome: "rejected_outcome"}
	for _, r := range []struct {
		name   string
		before run.Status
		d      run.Delivery
		want   run.Result
	}{
		{"halted before", run.Halted, run.Delivery{Diff: true, Verdict: rejected, Action: "apply"},
			run.Result{Status: run.Halted}},
		{"in review", run.AwaitingHumanReview, run.Delivery{}, run.Result{Status: run.AwaitingHumanReview}},
		{"delivered", run.Done, run.Delivery{Diff: true, Verdict: approved}, run.Result{Status: run.Done}},
		{"delivered, without a verdict", run.Done, run.Delivery{Diff: true}, run.Result{Status: run.Done}},
		{"dirty target skipped", run.Done, run.Delivery{Diff: true, Verdict: approved, Action: "skip"},
			run.Result{Status: run.Done}},
		{"dirty target, halt", run.Done, run.Delivery{Diff: true, Verdict: approved, Action: "halt"},
			run.Result{Status: run.Halted, Reason: "delivery_halt"}},
		{"nothing to deliver", run.Done, run.Delivery{Verdict: approved},
			run.Result{Status: run.Done, Outcome: "no_change_outcome"}},
		{"nothing to deliver, no verdict", run.Done, run.Delivery{},
			run.Result{Status: run.Done, Outcome: "no_change_outcome"}},
		{"nothing to deliver, rejected", run.Done, run.Delivery{Verdict: rejected}, noDiff},
		{"nothing to deliver, not ready", run.Done,
			run.Delivery{Verdict: run.Verdict{Word: "APPROVED", ShipReady: &no}}, noDiff},
		{"nothing to deliver, not approved", run.Done, run.Delivery{Verdict: run.Verdict{Approved: &no}}, noDiff},
		{"nothing to deliver: no override", run.Done, run.Delivery{Verdict: rejected, Action: "approve"},
			noDiff},
		{"rejected, approved by hand", run.Done, run.Delivery{Diff: true, Verdict: rejected, Action: "approve"},
			run.Result{Status: run.Done, Override: true}},
		{"rejected, applied by hand", run.Done, run.Delivery{Diff: true, Verdict: rejected, Action: " Apply "},
			run.Result{Status: run.Done, Override: true}},
		{"rejected, skipped", run.Done, run.Delivery{Diff: true, Verdict: rejected, Action: "skip"}, kept},
		{"rejected, to be fixed", run.Done, run.Delivery{Diff: true, Verdict: rejected, Action: "fix"}, kept},
		{"rejected, without a question", run.Done, run.Delivery{Diff: true, Verdict: rejected}, kept},
		{"rejected, halt", run.Done, run.Delivery{Diff: true, Verdict: rejected, Action: "halt"},
			run.Result{Status: run.Halted, Reason: "delivery_halt"}},
	} {
		require.Equal(t, r.want, run.AfterDelivery(r.before, r.d), r.name)
	}
}
