package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/disk"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/workflows/contract"
)

// callParts splits an id: <run>/g0.035.1.-.1.<question> is generation, step with round and member, try, and the
// digest of the question. A step's key may contain slashes.
func callParts(id string) (step, question string, ok bool) {
	_, rest, _ := strings.Cut(id, "/")
	part := strings.Split(rest, ".")
	if len(part) < 6 {
		return "", "", false
	}
	n := len(part)
	return strings.Join(part[1:n-2], "."), part[n-1], true
}

// recordedAnswer looks for the answer to the same question in the source of a replay: same step, round, member, prompt,
// artifact, screenshots and tree. The last usable one counts; if none is usable, the last one, so that a failure
// is replayed. The answer is copied to this run's call.
func (a *Activities) recordedAnswer(ctx context.Context, l calls.Ledger, in contract.PassInput) (*calls.Answer, error) {
	step, question, ok := callParts(in.Call)
	if in.RecordedRun == "" || !ok {
		return nil, nil
	}
	var last *calls.Answer
	for g := in.Generations; g >= 0; g-- {
		found, err := answers(ctx, l.Store, in.RecordedRun, g, step, question)
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

// answers returns the answers of a run's calls of one generation, step and question, by try.
func answers(ctx context.Context, s *store.Store, runID string, generation int,
	step, question string) ([]*calls.Answer, error) {
	names, err := s.List(ctx, fmt.Sprintf("calls/%s/g%d.%s.", runID, generation, step))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, byTry)
	var out []*calls.Answer
	for _, name := range names {
		call, is := strings.CutSuffix(strings.TrimPrefix(name, "calls/"), "/result")
		if of, q, ok := callParts(call); !is || !ok || q != question || of != step {
			continue
		}
		ans, err := calls.Ledger{Store: s, Call: call}.Result(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, ans)
	}
	return out, nil
}

// byTry orders result names of one question by redo, then try, as numbers.
func byTry(a, b string) int {
	redoA, tryA := tryOf(a)
	redoB, tryB := tryOf(b)
	return cmp.Or(cmp.Compare(redoA, redoB), cmp.Compare(tryA, tryB), cmp.Compare(a, b))
}

// tryOf returns redo and try of a call, as in calls/<run>/g0.035.1.-.r2-10.<question>/result.
func tryOf(name string) (redo, try int) {
	part := strings.Split(strings.TrimSuffix(name, "/result"), ".")
	if len(part) < 2 {
		return 0, 0
	}
	text := part[len(part)-2]
	if again, ok := strings.CutPrefix(text, "r"); ok {
		var number string
		number, text, _ = strings.Cut(again, "-")
		redo, _ = strconv.Atoi(number) // a non-number is not from a call of this program: it comes first
	}
	try, _ = strconv.Atoi(text)
	return redo, try
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
	step, question, ok := callParts(l.Call)
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
