package operations

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// runsPrefix is the prefix of the names of a store's runs, and removedPrefix that of removed ones.
const (
	runsPrefix    = "runs/"
	removedPrefix = "removed/"
)

// registered is the record of a run in its store. It stays as it was at the first start.
type registered struct {
	Version   int        `json:"version"`
	Claim     run.Claim  `json:"claim"`
	Directory string     `json:"directory"`
	Given     []string   `json:"given"` // digests of definition, plan, inputs and policy
	Requested *requested `json:"asked,omitempty"`
}

// requested is what else a start requests, so that a second start in its directory with other requests is recognized.
type requested struct {
	Task   string  `json:"task"` // digest
	Budget float64 `json:"budget_usd"`
	Replay string  `json:"replay,omitempty"` // policy of a replay
}

func requestedOf(start run.RunStart) *requested {
	a := requested{Task: string(store.DigestOf([]byte(start.Task))), Budget: start.Budget.CapUSD}
	if start.Source != nil {
		a.Replay = start.Source.Replay
	}
	return &a
}

func givenOf(start run.RunStart) []string {
	return []string{start.Definition, start.Plan, start.Inputs, start.Policy}
}

// otherThan lists the requests of a start that differ from the record.
func (r registered) otherThan(start run.RunStart) (other []string) {
	want, now := givenOf(start), requestedOf(start)
	if len(r.Given) == len(want) && (r.Given[0] != want[0] || r.Given[2] != want[2]) {
		other = append(other, "pipeline")
	} else if len(r.Given) == len(want) && r.Given[1] != want[1] {
		other = append(other, "agent or model")
	}
	if r.Requested == nil { // registered by an earlier version
		return other
	}
	for _, part := range []struct {
		what  string
		other bool
	}{{"task", r.Requested.Task != now.Task}, {"budget", r.Requested.Budget != now.Budget}, {"policy",
		r.Requested.Replay != now.Replay}} {
		if part.other {
			other = append(other, part.what)
		}
	}
	return other
}

// register records in the store that a run uses it, so that no other host removes its objects.
func register(ctx context.Context, in contract.Input) error {
	raw, err := json.Marshal(registered{
		Version: 1, Claim: in.Claim, Directory: in.Target.Dir, Given: givenOf(in.Start), Requested: requestedOf(in.Start),
	})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, in.Target.Store)
	if err != nil {
		return err
	}
	if _, err := s.Create(ctx, runsPrefix+in.Claim.RunID, raw); err != nil {
		return fmt.Errorf("register run %s in its store: %w", in.Claim.RunID, err)
	}
	return nil
}

// registration returns the record of a run in a store. store.ErrMissing: the store has none.
func registration(ctx context.Context, s *store.Store, runID string) (registered, error) {
	var r registered
	raw, err := s.ReadName(ctx, runsPrefix+runID)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return r, fmt.Errorf("read the record of run %s in its store: %w", runID, err)
	}
	return r, nil
}
