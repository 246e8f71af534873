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
}

// register tells the store that a run uses it, so that nobody on another host takes what the run needs for garbage.
func register(ctx context.Context, in workflows.Input) error {
	raw, err := json.Marshal(registered{
		Version: 1, Claim: in.Claim, Directory: in.Target.Dir,
		Given: []string{in.Start.Definition, in.Start.Plan, in.Start.Inputs, in.Start.Policy},
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
