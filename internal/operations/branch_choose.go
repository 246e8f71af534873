package operations

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/shell"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/pipeline"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// ChooseError reports that a fork of a completed run has to name its checkpoint: after the newest one no step is left.
// Nothing was started.
type ChooseError struct {
	RunID       string
	Status      run.Status
	Checkpoints []BranchPoint // with steps left, oldest first

	command []string // of starter, without --from
}

// BranchPoint is a checkpoint that a new run can start from.
type BranchPoint struct {
	ID    string
	Place string // what the new run does first
}

func (e *ChooseError) Error() string {
	intro := fmt.Sprintf("fork refused: run %s is %s and has no step left, so a checkpoint has to be named; nothing "+
		"was started", e.RunID, e.Status)
	if len(e.Checkpoints) == 0 {
		return intro + ". No checkpoint has steps left: list all of them with `starter checkpoints " +
			shell.Quote(e.RunID) + " --all`"
	}
	lines := []string{intro + ". Choose one:"}
	for _, c := range e.Checkpoints {
		lines = append(lines, "  "+c.Place+": "+e.Command(c))
	}
	return strings.Join(append(lines, "All checkpoints: starter checkpoints "+shell.Quote(e.RunID)+" --all"), "\n")
}

// Command is the request with a checkpoint.
func (e *ChooseError) Command(c BranchPoint) string {
	args := append([]string{"starter"}, e.command...)
	return shell.Line(append(args, "--from", c.ID)...)
}

// maxChoices is the maximum number of checkpoints to list. Of more, only those at the start of a stage or round are
// listed.
const maxChoices = 12

// choose returns a [*ChooseError] if a fork of the newest checkpoint had nothing to do.
func choose(ctx context.Context, s *store.Store, from Origin, names rundir.Names, newest run.Checkpoint,
	b Branching) error {
	ref := newest.State.PlanInForce(from.Start)
	var old pipeline.Plan
	if err := s.GetJSON(ctx, store.Digest(ref.Plan), &old); err != nil {
		return fmt.Errorf("read the plan of run %s: %w", from.RunID, err)
	}
	if newest.State.Status != run.Done && (newest.State.Next.Stage < len(old.Stages) || len(newest.State.Projects) > 0) {
		return nil // a run with projects still has to deliver
	}
	if names == nil { // without a directory
		names = blobs.Of(s)
	}
	marks, err := rundir.Marks(ctx, names, from.RunID)
	if err != nil {
		return err
	}
	var all []run.Checkpoint
	for _, m := range slices.Backward(marks) {
		c, err := m.Load(ctx, names, from.RunID, m.ID)
		if err == nil && b.continues(&old, c) { // a damaged one is not a choice
			all = before(all, c)
		}
	}
	slices.Reverse(all)
	return &ChooseError{RunID: from.RunID, Status: newest.State.Status, Checkpoints: points(b.plan(&old), all),
		command: b.Command}
}

// plan returns the plan of the new run.
func (b Branching) plan(old *pipeline.Plan) *pipeline.Plan {
	if b.Def != nil {
		return b.Def.Plan
	}
	return old
}

// continues reports whether the new run has a step to do after a checkpoint.
func (b Branching) continues(old *pipeline.Plan, c run.Checkpoint) bool {
	stages := b.plan(old).Stages
	at := c.State.Next
	if len(c.State.Blocked()) > 0 {
		return b.Def == nil || sameUpTo(old, b.Def.Plan, at) == nil
	}
	if at.Stage >= len(stages) || c.State.Status == run.Done && b.Def == nil {
		return false
	}
	last := stages[len(stages)-1]
	if at.Stage == len(stages)-1 && last.Kind != pipeline.StageRepeat && at.Round >= last.MaxRounds() &&
		roundEnded(last, at) {
		return false
	}
	return b.Def == nil || sameUpTo(old, b.Def.Plan, c.State.Next) == nil
}

// roundEnded reports whether no step is left in the round of a place.
func roundEnded(s pipeline.PlanStage, at run.Place) bool {
	steps := len(s.RoundAt(at.Round).Steps)
	return steps > 0 && at.Step >= steps
}

// before adds an older checkpoint to a list, newest first, if it is at an earlier place: those that a revert has undone
// are not. Of two with the same work, the named one counts.
func before(all []run.Checkpoint, c run.Checkpoint) []run.Checkpoint {
	if len(all) == 0 {
		return append(all, c)
	}
	last := &all[len(all)-1]
	at, blocked := last.State.Next, len(last.State.Blocked())
	switch {
	case c.State.Next.Before(at), c.State.Next == at && len(c.State.Blocked()) > blocked:
		return append(all, c)
	case c.State.Next != at || len(c.State.Blocked()) < blocked:
		return all
	}
	same := reflect.DeepEqual(c.State.Artifact, last.State.Artifact) && reflect.DeepEqual(c.State.Tree, last.State.Tree)
	if same && last.ID == run.UnnamedID(last.Seq) {
		*last = c
	}
	return all
}

func points(plan *pipeline.Plan, all []run.Checkpoint) (out []BranchPoint) {
	if len(all) > maxChoices {
		all = slices.DeleteFunc(all, func(c run.Checkpoint) bool { return c.State.Next.Step > 0 })
	}
	for _, c := range all {
		if left := c.State.Blocked(); len(left) > 0 {
			out = append(out, BranchPoint{ID: c.ID, Place: "from project " + left[0].Alias})
			continue
		}
		at := c.State.Next
		stage := plan.Stages[at.Stage]
		place := "from stage " + stage.Name
		if at.Round > 1 {
			place += fmt.Sprintf(", round %d", at.Round)
		}
		if roundEnded(stage, at) {
			place += ", after its last step"
		} else if at.Step > 0 {
			place += fmt.Sprintf(", step %d", at.Step+1)
		}
		out = append(out, BranchPoint{ID: c.ID, Place: place})
	}
	return out
}
