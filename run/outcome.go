package run

// BeforeDelivery decides what a run comes to that is through with its work (requirement 000), first match: a halt; a plan that somebody has
// to review, unless that was overridden; done.
func BeforeDelivery(halt, planOnly, override bool) Status {
	switch {
	case halt:
		return Halted
	case planOnly && !override:
		return AwaitingHumanReview
	}
	return Done
}

// Reasons of runs that delivery halts.
const (
	ReasonNoDiff         = "final_acceptance_no_diff"
	ReasonRejected       = "final_acceptance_rejected"
	ReasonDeliveryHalted = "delivery.decided"
)

// Verdict is what the last review said of the work. Nil and empty: it did not say.
type Verdict struct {
	Word      string
	ShipReady *bool
	Approved  *bool
}

// Rejected says that any part of the verdict speaks against delivery.
func (v Verdict) Rejected() bool {
	return word(v.Word) == "rejected" || v.ShipReady != nil && !*v.ShipReady || v.Approved != nil && !*v.Approved
}

// Approves reports whether the verdict approves the work: as it was compared with what the definition requires, or else by its word.
func (v Verdict) Approves() bool {
	if v.Approved != nil {
		return *v.Approved
	}
	return word(v.Word) == "approved"
}

// Judgement is the last verdict of a run on the work as it is.
func (s State) Judgement() Verdict { return Verdict{Word: s.Verdict, Approved: s.Approved} }

// Delivery is what came of delivering the work.
type Delivery struct {
	Verdict Verdict
	Diff    bool   // there is something to deliver
	Action  string // what an operator decided; empty: nobody was asked
}

// Result is what a run comes to.
type Result struct {
	Status   Status
	Reason   string
	Outcome  Outcome // for run.end; empty: the status says it
	Override bool    // delivered although rejected
}

// AfterDelivery decides what a run comes to that was done before delivery. Any other status stays what it was: delivery changes nothing
// about it. A target that an operator skipped because it was dirty keeps the diff in the run directory and is done.
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
