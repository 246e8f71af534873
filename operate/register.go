package operate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/workflows"
)

// runsPrefix is where a store says which runs use it, and removedPrefix which were removed.
const (
	runsPrefix    = "runs/"
	removedPrefix = "removed/"
)

// registered is what a store says of a run that uses it. It stays as it was at the first start.
type registered struct {
	Version   int       `json:"version"`
	Claim     run.Claim `json:"claim"`
	Directory string    `json:"directory"`
	Given     []string  `json:"given"` // digests of definition, plan, inputs and policy
	Asked     *asked    `json:"asked,omitempty"`
}

// asked is what else a start wanted of a run, so that a second start on its directory that wants something else is told from the same one.
type asked struct {
	Task   string  `json:"task"` // digest
	Budget float64 `json:"budget_usd"`
	Replay string  `json:"replay,omitempty"` // policy of a replay
}

func askedOf(start run.RunStart) *asked {
	a := asked{Task: string(store.DigestOf([]byte(start.Task))), Budget: start.Budget.CapUSD}
	if start.Source != nil {
		a.Replay = start.Source.Replay
	}
	return &a
}

func givenOf(start run.RunStart) []string {
	return []string{start.Definition, start.Plan, start.Inputs, start.Policy}
}

// otherThan names what a start wants otherwise than the run was registered with.
func (r registered) otherThan(start run.RunStart) (other []string) {
	want, now := givenOf(start), askedOf(start)
	if len(r.Given) == len(want) && (r.Given[0] != want[0] || r.Given[2] != want[2]) {
		other = append(other, "pipeline")
	} else if len(r.Given) == len(want) && r.Given[1] != want[1] {
		other = append(other, "agent or model")
	}
	if r.Asked == nil { // registered by an earlier version
		return other
	}
	for _, part := range []struct {
		what  string
		other bool
	}{{"task", r.Asked.Task != now.Task}, {"budget", r.Asked.Budget != now.Budget}, {"policy", r.Asked.Replay != now.Replay}} {
		if part.other {
			other = append(other, part.what)
		}
	}
	return other
}

// register tells the store that a run uses it, so that nobody on another host takes what the run needs for garbage.
func register(ctx context.Context, in workflows.Input) error {
	raw, err := json.Marshal(registered{
		Version: 1, Claim: in.Claim, Directory: in.Target.Dir, Given: givenOf(in.Start), Asked: askedOf(in.Start),
	})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, in.Target.Store)
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Create(ctx, runsPrefix+in.Claim.RunID, raw); err != nil {
		return fmt.Errorf("tell the store of run %s: %w", in.Claim.RunID, err)
	}
	return nil
}

// registration gives what a store says of a run that uses it; store.ErrMissing: the store does not know it.
func registration(ctx context.Context, s *store.Store, runID string) (registered, error) {
	var r registered
	raw, err := s.ReadName(ctx, runsPrefix+runID)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("what the store says of run %s: %w", runID, err)
	}
	return r, nil
}
