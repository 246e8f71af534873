package run

// BeforeDelivery decides the status of a run whose work is completed (requirement 000); the first match counts: a halt;
// a plan that an operator has to review, unless that was overridden; done.
func BeforeDelivery(halt, planOnly, override bool) Status {
	switch {
	case halt:
		return Halted
	case planOnly && !override:
		return AwaitingHumanReview
	}
	return Done
}

// Reasons of runs that are halted by the delivery.
const (
	ReasonNoDiff         = "final_acceptance_no_diff"
	ReasonRejected       = "final_acceptance_rejected"
	ReasonDeliveryHalted = "delivery_halt"
)

// Verdict is the verdict of the last review. Nil and empty: none.
type Verdict struct {
	Word      string
	ShipReady *bool
	Approved  *bool
}

// Rejected reports whether any part of the verdict prevents delivery.
func (v Verdict) Rejected() bool {
	return word(v.Word) == "rejected" || v.ShipReady != nil && !*v.ShipReady || v.Approved != nil && !*v.Approved
}

// Approves reports whether the verdict approves the work: by comparison with the condition of the definition, or else
// by its word.
func (v Verdict) Approves() bool {
	if v.Approved != nil {
		return *v.Approved
	}
	return word(v.Word) == "approved"
}

// Judgement is the last verdict on the current work of a run.
func (s State) Judgement() Verdict { return Verdict{Word: s.Verdict, Approved: s.Approved} }

// Delivery is the outcome of delivering the work.
type Delivery struct {
	Verdict Verdict
	Diff    bool   // there are changes to deliver
	Action  string // decision of an operator; empty: no question was asked
}

// Result is the final status of a run.
type Result struct {
	Status   Status
	Reason   string
	Outcome  Outcome // for run.end; empty: the status determines it
	Override bool    // delivered although rejected
}

// AfterDelivery decides the status of a run that was done before delivery. Delivery changes no other status. If an
// operator skipped a target because it was dirty, the diff stays in the run directory and the run is done.
func AfterDelivery(before Status, d Delivery) Result {
	rejected, action := d.Verdict.Rejected(), word(d.Action)
	switch {
	case before != Done:
		return Result{Status: before}
	case action == ActionHalt:
		return Result{Status: Halted, Reason: ReasonDeliveryHalted}
	case !d.Diff && rejected:
		return Result{Status: Halted, Reason: ReasonNoDiff, Outcome: OutcomeNoOp}
	case !d.Diff:
		return Result{Status: Done, Outcome: OutcomeNoChange}
	case rejected && (action == ActionApprove || action == ActionApply):
		return Result{Status: Done, Override: true}
	case rejected:
		return Result{Status: Halted, Reason: ReasonRejected, Outcome: OutcomeRejected}
	}
	return Result{Status: Done}
}
