package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// recordedAnswer looks for the answer to the same question in the source of a replay: same step, round, member, prompt,
// artifact, screenshots and tree. The last usable one counts; if none is usable, the last one, so that a failure
// is replayed. The answer is copied to this run's call.
func (a *Activities) recordedAnswer(ctx context.Context, l calls.Ledger, in contract.PassInput) (*calls.Answer, error) {
	if _, _, ok := calls.Parts(in.Call); in.RecordedRun == "" || !ok {
		return nil, nil
	}
	var last *calls.Answer
	for g := in.Generations; g >= 0; g-- {
		found, err := l.AnswersOf(ctx, in.RecordedRun, g)
		if err != nil {
			return nil, err
		}
		for _, ans := range slices.Backward(found) {
			res, err := a.evaluate(ctx, l.Store, in, ans)
			if errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrDamaged) {
				continue // unreadable, so it is not a record
			}
			if err != nil {
				return nil, err
			}
			if res.Outcome == run.CategoryOK {
				return copyAnswer(ctx, l, ans)
			}
			if last == nil {
				last = ans
			}
		}
	}
	if last == nil {
		return nil, nil
	}
	return copyAnswer(ctx, l, last)
}

func copyAnswer(ctx context.Context, l calls.Ledger, ans *calls.Answer) (*calls.Answer, error) {
	mine := *ans
	if mine.Source == "" {
		mine.Source = ans.Call
	}
	mine.Call = l.Call
	if _, err := l.Put(ctx, mine); err != nil {
		return nil, err
	}
	return l.Result(ctx)
}

// shotsResult is the stored result of screenshots.
type shotsResult struct {
	Version int                  `json:"version"`
	Call    string               `json:"call"`
	Result  contract.ShotsResult `json:"result"`
	Source  string               `json:"source,omitempty"` // run that it was copied from
}

// shotsCallID returns the call id of screenshots with a digest of their input.
func shotsCallID(in contract.ShotsInput) (string, error) {
	raw, err := json.Marshal(in.Shots)
	if err != nil {
		return "", err
	}
	return in.Call + "." + string(store.DigestOf([]byte(in.Artifact.Digest + " " + string(raw))))[:12], nil
}

// recordedShots returns screenshots of the same page from this run or from the source of a replay. A source
// without screenshots is a record too.
func recordedShots(ctx context.Context, l calls.Ledger, in contract.ShotsInput) (*contract.ShotsResult, error) {
	if own, err := readShotsResult(ctx, l, "result"); own != nil || err != nil {
		return own, err
	}
	step, question, ok := calls.Parts(l.Call)
	if in.RecordedRun == "" || !ok {
		return nil, nil
	}
	for g := in.Generations; g >= 0; g-- {
		theirs := calls.Ledger{Store: l.Store, Call: fmt.Sprintf("%s/g%d.%s.1.%s", in.RecordedRun, g, step, question)}
		for _, name := range []string{"result", "none"} {
			res, err := readShotsResult(ctx, theirs, name)
			if err != nil {
				return nil, err
			}
			if res != nil {
				res.Source = in.RecordedRun
				return res, storeShotsResult(ctx, l, *res)
			}
		}
	}
	return nil, nil
}

func readShotsResult(ctx context.Context, l calls.Ledger, name string) (*contract.ShotsResult, error) {
	r, err := calls.Read[shotsResult](ctx, l.Store, l.Name(name))
	if err != nil || r == nil {
		return nil, err
	}
	r.Result.Source = r.Source
	return &r.Result, nil
}

// storeShotsResult stores screenshots, or that there were none after all attempts.
func storeShotsResult(ctx context.Context, l calls.Ledger, res contract.ShotsResult) error {
	name := "result"
	if res.Count == 0 {
		name = "none"
	}
	_, err := calls.Create(ctx, l.Store, l.Name(name), shotsResult{Version: calls.Version, Call: l.Call, Result: res, Source: res.Source})
	return err
}

// FindCheckpoint returns a checkpoint by name after verifying all its blobs.
func (a *Activities) FindCheckpoint(ctx context.Context, in contract.CheckpointInput) (run.Checkpoint, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return run.Checkpoint{}, err
	}
	c, err := blobs.Checkpoint(ctx, s, in.RunID, in.ID)
	var none *rundir.NoCheckpointError
	var wrong *run.CheckpointError
	if errors.As(err, &none) || errors.As(err, &wrong) || errors.Is(err, disk.ErrDamaged) {
		return c, badInput("%v", err)
	}
	return c, err
}
