package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Amended is the result of an amendment.
type Amended struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	run.ShownStatus
	Message     string       `json:"message"`
	Differences []Difference `json:"differences"` // empty: the run has this definition already
}

// Amend lets an open run adopt a definition. Every step that begins later uses it. A change of completed steps or of
// the plan's structure is refused with a [*DifferentError].
func (o Operator) Amend(ctx context.Context, def Definition, dir rundir.Dir, note string) (Amended, error) {
	claim, err := dir.Claim()
	if err != nil {
		return Amended{}, err
	}
	if err := AtHome(o.Settings.StateDir, claim, dir); err != nil {
		return Amended{}, err
	}
	now, err := dir.Now()
	if err != nil {
		return Amended{}, err
	}
	out := Amended{RunID: claim.RunID, Directory: dir.Root, ShownStatus: now.State.Status.Shown()}
	if now.Tail.Seq == 0 {
		return out, &RefusedError{Verb: contract.VerbAmend, Why: "the run has not begun: start it with `starter run`",
			FailedPrecondition: true}
	}
	if out.Differences, err = o.Differences(ctx, def, dir, claim, now.State); err != nil {
		return out, err
	}
	if len(out.Differences) == 0 {
		out.Message = "the run has this definition already"
		return out, nil
	}
	live := !now.State.Status.Closed()
	if different := o.different(def, dir, claim, now.State.Status, live, out.Differences); !different.Amendable() {
		return out, different
	}
	m, err := o.amendment(ctx, def, dir, claim, now.State, note)
	if err != nil {
		return out, err
	}
	ack, err := o.SendUpdate(ctx, dir, contract.VerbAmend, m)
	if err != nil {
		return out, err
	}
	out.Status, out.Message = ack.Status, ack.Message
	_, err = o.handOver(claim.RunID, "", o.storeOf(claim), "resume", *def.Plan)
	return out, err
}

func (o Operator) different(def Definition, dir rundir.Dir, claim run.Claim, status run.Status, live bool,
	all []Difference) *DifferentError {
	return &DifferentError{Dir: dir.Root, RunID: claim.RunID, Status: status, Live: live, Differences: all,
		config: def.Parsed.File, task: def.Task, source: def.WorkOn, dirty: def.Dirty}
}

// amendment stores what a run is given and returns the message that names it.
func (o Operator) amendment(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim, s run.State,
	note string) (contract.Message, error) {
	budget := contract.BudgetOf(def.Plan)
	if err := policyOf(def.Plan, "", budget).Allowed(o.Settings, budget.CapUSD); err != nil {
		return contract.Message{}, err
	}
	if err := def.CheckRequests(o.Settings); err != nil {
		return contract.Message{}, err
	}
	if total := s.Total(); budget.CapUSD > 0 && budget.CapUSD < total && budget.CapUSD != s.Budget.CapUSD {
		return contract.Message{}, &RefusedError{Verb: contract.VerbAmend,
			Why: fmt.Sprintf("a budget of %.2f USD is below the current cost (%.2f)", budget.CapUSD, total)}
	}
	stored, err := upload(ctx, def, dir, o.storeOf(claim))
	if err != nil {
		return contract.Message{}, err
	}
	ref := run.PlanRef{Definition: stored.Definition, Plan: stored.Plan, Inputs: stored.Inputs, Policy: stored.Policy,
		ConfigHash: def.Plan.ConfigHash}
	return o.hidden(contract.Message{Plan: &ref, Note: note, By: o.By}), nil
}

// Unchanged returns a [*DifferentError] if a closed run is given something else than it has. No server is needed.
func (o Operator) Unchanged(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim,
	s run.State) error {
	all, err := o.Differences(ctx, def, dir, claim, s)
	if err != nil || len(all) == 0 {
		return err
	}
	return o.different(def, dir, claim, s.Status, false, all)
}

// unchanged compares what the run of a directory is given with what it has. If it is to adopt the differences, an open
// run is amended; the message for a run that has closed is returned.
func (o Operator) unchanged(ctx context.Context, def Definition, dir rundir.Dir, claim run.Claim, now rundir.Now,
	effective run.EffectiveStatus) (amended *Amended, reopen *contract.Message, err error) {
	all, err := o.Differences(ctx, def, dir, claim, now.State)
	if err != nil || len(all) == 0 {
		return nil, nil, err
	}
	different := o.different(def, dir, claim, effective.Status, effective.Liveness == run.LiveOpen, all)
	budget := effective.Liveness == run.LiveOpen && def.Changed == ChangedRefuse &&
		!slices.ContainsFunc(all, func(d Difference) bool { return !strings.HasPrefix(d.Name, "budget") })
	switch {
	case def.Changed != ChangedAmend && !budget || !different.Amendable(): // requirement 002 §4.3.6: edit and restart
		return nil, nil, different
	case effective.Liveness == run.LiveOpen:
		note := "run --amend"
		if budget {
			note = "run, with another budget"
		}
		done, err := o.Amend(ctx, def, dir, note)
		return &done, nil, err
	}
	m, err := o.amendment(ctx, def, dir, claim, now.State, "run --amend")
	return &Amended{RunID: claim.RunID, Directory: dir.Root, ShownStatus: effective.ShownStatus,
		Message: "amended; in force from the new epoch", Differences: all}, &m, err
}

// inForce is the start of a run under the plan in force.
func inForce(ctx context.Context, s *store.Store, start run.RunStart, state run.State) (run.RunStart, error) {
	ref := state.PlanInForce(start)
	if ref == start.PlanRef() {
		return start, nil
	}
	terms, err := termsOf(ctx, s, start, ref)
	return start.Under(ref, terms), err
}

func termsOf(ctx context.Context, s *store.Store, start run.RunStart, ref run.PlanRef) (run.PlanTerms, error) {
	var p pipeline.Plan
	if err := s.GetJSON(ctx, store.Digest(ref.Plan), &p); err != nil {
		return run.PlanTerms{}, fmt.Errorf("read the amended plan: %w", err)
	}
	return contract.TermsOf(&p, firstStage(start)), nil
}

// startAt is the start of a run under the plan of one of its checkpoints, with that plan's budget.
func (o Operator) startAt(ctx context.Context, s *store.Store, from Origin, c run.Checkpoint) (run.RunStart, error) {
	start, err := inForce(ctx, s, from.Start, c.State)
	if start.Amendments, start.Instructions = nil, nil; err != nil || start.Plan == from.Start.Plan {
		return start, err
	}
	var was, is pipeline.Plan
	if err := s.GetJSON(ctx, store.Digest(from.Start.Plan), &was); err != nil {
		return start, fmt.Errorf("read the plan of run %s: %w", from.RunID, err)
	}
	if err := s.GetJSON(ctx, store.Digest(start.Plan), &is); err != nil {
		return start, fmt.Errorf("read the amended plan of run %s: %w", from.RunID, err)
	}
	if was.Budget != is.Budget {
		start.Budget = contract.BudgetOf(&is)
	}
	return start, nil
}

func firstStage(start run.RunStart) int {
	if start.From == nil {
		return 0
	}
	return start.From.Stage
}

// later calls visit with the checkpoints of a run after another one, oldest first.
func later(ctx context.Context, s *store.Store, runID string, c run.Checkpoint,
	visit func(run.Checkpoint) error) error {
	var names rundir.Names = blobs.Of(s)
	marks, err := rundir.Marks(ctx, names, runID)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if m.Seq <= c.Seq {
			continue
		}
		next, err := rundir.LoadCheckpoint(ctx, names, runID, m.ID)
		if err != nil {
			return err
		}
		if next.Seq != m.Seq { // a later one may have its name
			continue
		}
		if err := visit(next); err != nil {
			return err
		}
	}
	return nil
}

// recordAfter sets what a replay from a checkpoint repeats of its source: amendments that steps have begun with, and
// the instructions that prompts contained.
func (o Operator) recordAfter(ctx context.Context, s *store.Store, from Origin, c run.Checkpoint,
	start *run.RunStart) error {
	last := c.State.PlanInForce(from.Start)
	var instructions []run.Instruction
	err := later(ctx, s, from.RunID, c, func(next run.Checkpoint) error {
		instructions = withUses(instructions, next.State.Instructions)
		p := next.State.Plan
		if p == nil || p.From == nil || p.PlanRef == last {
			return nil
		}
		terms, err := termsOf(ctx, s, from.Start, p.PlanRef)
		if err != nil {
			return err
		}
		old, err := blobs.Version(last, blobs.FromStore(ctx, s))
		if err != nil {
			return err
		}
		amended, err := blobs.Version(p.PlanRef, blobs.FromStore(ctx, s))
		if err != nil {
			return err
		}
		start.Amendments = append(start.Amendments, run.Amendment{At: *p.From, RunAmended: run.RunAmended{
			Old: last, New: p.PlanRef, Terms: terms,
			Differences: contract.AmendablesOf(pipeline.Compare(old, amended, pipeline.Position(*p.From)))}})
		last = p.PlanRef
		return nil
	})
	if err != nil || len(instructions) == 0 {
		return err
	}
	digest, err := s.PutJSON(ctx, instructions)
	start.Instructions = &run.Blob{Digest: string(digest)}
	return err
}

// withUses adds the instructions of a state that prompts have contained. A later state knows more of their uses.
func withUses(all, later []run.Instruction) []run.Instruction {
	for _, i := range later {
		at := slices.IndexFunc(all, func(known run.Instruction) bool { return known.ID == i.ID })
		switch {
		case len(i.Uses) == 0:
		case at >= 0:
			all[at] = i
		default:
			all = append(all, i)
		}
	}
	return all
}
