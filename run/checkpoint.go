package run

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// CheckpointVersion is the version of stored checkpoints. A reader refuses any other.
const CheckpointVersion = 1

// Checkpoint is a place to go back to (requirement 003 §4): the small state after event Seq, with the chain over all
// lines up to there. Large values are in it by digest, so its size does not grow with the run.
type Checkpoint struct {
	Version int    `json:"version"`
	RunID   string `json:"run_id"`
	ID      string `json:"id"` // cp-S3, turn-7; unnamed ones are cp-<seq>
	Seq     int64  `json:"seq"`
	Chain   Chain  `json:"chain"`
	State   State  `json:"state"`

	Start *RunStart `json:"start,omitempty"` // only in a run's first one: all that it was given
}

// CheckpointError reports that a stored checkpoint is not one that this program can revert to.
type CheckpointError struct{ ID, Why string }

func (e *CheckpointError) Error() string { return fmt.Sprintf("checkpoint %s: %s", e.ID, e.Why) }

// ReadCheckpoint reads a stored checkpoint and checks that its content belongs to its name.
func ReadCheckpoint(raw []byte, runID, id string) (Checkpoint, error) {
	var c Checkpoint
	if err := json.Unmarshal(raw, &c); err != nil {
		return c, &CheckpointError{id, "it is damaged: " + err.Error()}
	}
	switch {
	case c.Version < 1:
		return c, &CheckpointError{id, "it is damaged: it has no version"}
	case c.Version != CheckpointVersion || c.State.Version != StateVersion:
		return c, &CheckpointError{id, fmt.Sprintf("it has version %d and state %d, and this program reads %d and %d",
			c.Version, c.State.Version, CheckpointVersion, StateVersion)}
	case c.RunID != runID || c.State.RunID != runID || c.Seq != c.State.Seq:
		return c, &CheckpointError{id, fmt.Sprintf("it does not belong to its name: it holds event %d of run %s", c.State.Seq,
			c.State.RunID)}
	}
	return c, nil
}

// NewCheckpoint is the checkpoint at the head of a state; false where the last event made none.
func NewCheckpoint(s State, chain Chain) (Checkpoint, bool) {
	h := s.Checkpoint
	if h == nil || h.Seq != s.Seq || h.Seq == 0 {
		return Checkpoint{}, false
	}
	return Checkpoint{Version: CheckpointVersion, RunID: s.RunID, ID: h.ID, Seq: h.Seq, Chain: chain, State: s}, true
}

// UnnamedID is the name of a checkpoint that was not given one.
func UnnamedID(seq int64) string { return "cp-" + strconv.FormatInt(seq, 10) }

// isUnnamed reports whether id is UnnamedID(seq).
func isUnnamed(id string, seq int64) bool {
	var digits [20]byte
	number, found := strings.CutPrefix(id, "cp-")
	return found && number == string(strconv.AppendInt(digits[:0], seq, 10))
}

// Reverted is the state that holds when a run goes back from now to this checkpoint (lifecycle.md): place, artifact,
// notes and counters are those of the checkpoint. What a revert does not undo stays: epoch, money spent, the budget as
// it was set last, the plan as it was amended last. Answers of the abandoned part no longer count, so its questions are
// asked again.
func (c Checkpoint) Reverted(now State) State {
	s := c.State.Clone()
	s.InFlight, s.Questions, s.Gate, s.Decided, s.Again, s.Feedback, s.About = nil, nil, nil, nil, "", "", nil
	s.Failure, s.Review = nil, ""
	s.Status, s.Reason, s.FinishedAt, s.InvalidTransition = Running, "", "", ""
	s.Markers, s.Limited = s.Markers.reopened(), nil
	s.Instructions, s.Started = now.Instructions, nil
	s.Epoch, s.Starts, s.Budget, s.Problem = now.Epoch, now.Starts, now.Budget, now.Problem
	s.Generation, s.Late, s.Refused = now.Generation+1, now.Late, now.Refused
	s.Plan, s.Stages = now.planFrom(s.Next), now.Stages
	s.Projects, s.Lanes = withCosts(s.Projects, now), s.Lanes.stopped()
	s.SunkUSD = Cents(max(0, now.Spent.USD+now.SunkUSD-s.Spent.USD))
	s.Used, s.Forge = now.Used, now.Forge
	s.ListPrice = now.ListPrice
	s.SunkUnknown = max(0, now.Spent.Unknown+now.SunkUnknown-s.Spent.Unknown)
	s.Means, s.Need, s.Raised = now.Means, nil, false
	s.Warned = s.Budget.WarnUSD > 0 && s.Total() >= s.Budget.WarnUSD
	return s
}

// Branched returns the first state of a new run that is made from this checkpoint: it has the work of the checkpoint,
// but no costs, questions or approvals of the other run.
func (c Checkpoint) Branched() State {
	s := c.State.Clone()
	return State{
		Version: StateVersion, Next: s.Next, Settled: s.Settled, Tries: s.Tries, Phase: s.Phase, Round: s.Round,
		PhaseOpen: s.PhaseOpen, Set: s.Set,
		Artifact: s.Artifact, Tree: s.Tree, Commit: s.Commit, Notes: s.Notes, Pictures: s.Pictures, Replies: s.Replies,
		Sessions: s.Sessions, Adopted: s.Adopted, Values: s.Values, Scores: s.Scores, Outputs: s.Outputs, Conditions: s.Conditions,
		LoopProgress: s.LoopProgress,
		Verdict:      s.Verdict, Approved: s.Approved, Passes: s.Passes, Rounds: s.Rounds, Score: s.Score,
		Lanes: s.Lanes.stopped(), LaneTotals: s.LaneTotals, Loops: s.Loops, Changed: s.Changed, Scope: s.Scope, Tampered: s.Tampered,
		Commands: s.Commands,
	}
}
