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

	"github.com/passbook-run/passbook/pass"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/store/tree"
	"github.com/passbook-run/passbook/work"
)

// callParts takes an id apart: <run>/g0.035.1.-.1.<question> is generation, step with round and member, try, and the digest of what was asked. A
// step's key may have slashes.
func callParts(id string) (step, question string, ok bool) {
	_, rest, _ := strings.Cut(id, "/")
	part := strings.Split(rest, ".")
	if len(part) < 6 {
		return "", "", false
	}
	n := len(part)
	return strings.Join(part[1:n-2], "."), part[n-1], true
}

// recorded looks in the source of a replay for the answer to this very question: same step, round, member, prompt, artifact, pictures and tree. Of
// several the last one counts that could be used; where none could, the last one, so that what failed then fails again (lifecycle.md). The answer is
// copied under this run's own call, so that it is found there next time.
func (a *Activities) recorded(ctx context.Context, l ledger, in work.PassInput) (*answer, error) {
	step, question, ok := callParts(in.Call)
	if in.Recorded == "" || !ok {
		return nil, nil
	}
	var last *answer
	for g := in.Generations; g >= 0; g-- {
		found, err := answers(ctx, l.s, in.Recorded, g, step, question)
		if err != nil {
			return nil, err
		}
		for _, ans := range slices.Backward(found) {
			res, err := a.judge(ctx, l.s, in, ans)
			if errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrDamaged) {
				continue // it cannot be read any more, so it is no record
			}
			if err != nil {
				return nil, err
			}
			if res.Outcome == string(pass.OK) {
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

// answers gives what a run's calls of one generation, step and question have brought, by try.
func answers(ctx context.Context, s *store.Store, runID string, generation int, step, question string) ([]*answer, error) {
	names, err := s.List(ctx, fmt.Sprintf("calls/%s/g%d.%s.", runID, generation, step))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, byTry)
	var out []*answer
	for _, name := range names {
		call, is := strings.CutSuffix(strings.TrimPrefix(name, "calls/"), "/result")
		if of, q, ok := callParts(call); !is || !ok || q != question || of != step {
			continue
		}
		ans, err := ledger{s: s, call: call}.result(ctx)
		if err != nil {
			return nil, err
		}
		out = append(out, ans)
	}
	return out, nil
}

// byTry orders names of results of one question by when it was asked: redo, then try. Both are numbers.
func byTry(a, b string) int {
	redoA, tryA := tryOf(a)
	redoB, tryB := tryOf(b)
	return cmp.Or(cmp.Compare(redoA, redoB), cmp.Compare(tryA, tryB), cmp.Compare(a, b))
}

// tryOf is the redo and the try of a call, as in calls/<run>/g0.035.1.-.r2-10.<question>/result.
func tryOf(name string) (redo, try int) {
	part := strings.Split(strings.TrimSuffix(name, "/result"), ".")
	if len(part) < 2 {
		return 0, 0
	}
	text := part[len(part)-2]
	if again, ok := strings.CutPrefix(text, "r"); ok {
		var number string
		number, text, _ = strings.Cut(again, "-")
		redo, _ = strconv.Atoi(number) // what is no number is of no call that this program made: it comes first
	}
	try, _ = strconv.Atoi(text)
	return redo, try
}

func copyAnswer(ctx context.Context, l ledger, ans *answer) (*answer, error) {
	mine := *ans
	if mine.Source == "" {
		mine.Source = ans.Call
	}
	mine.Call = l.call
	if _, err := l.put(ctx, mine); err != nil {
		return nil, err
	}
	return l.result(ctx)
}

// shotsResult is what pictures came to, as it lies in the ledger of calls.
type shotsResult struct {
	Version int              `json:"version"`
	Call    string           `json:"call"`
	Result  work.ShotsResult `json:"result"`
	Source  string           `json:"source,omitempty"` // run that it was copied from
}

// pictured is the call id of pictures with a digest of what they are of.
func pictured(in work.ShotsInput) (string, error) {
	raw, err := json.Marshal(in.Shots)
	if err != nil {
		return "", err
	}
	return in.Call + "." + string(store.DigestOf([]byte(in.Artifact.Digest + " " + string(raw))))[:12], nil
}

// recordedShots gives the pictures of the same page that this run has taken already, or the source of a replay. That the source could take none is a
// record too.
func recordedShots(ctx context.Context, l ledger, in work.ShotsInput) (*work.ShotsResult, error) {
	if own, err := shotsIn(ctx, l, "result"); own != nil || err != nil {
		return own, err
	}
	step, question, ok := callParts(l.call)
	if in.Recorded == "" || !ok {
		return nil, nil
	}
	for g := in.Generations; g >= 0; g-- {
		theirs := ledger{s: l.s, call: fmt.Sprintf("%s/g%d.%s.1.%s", in.Recorded, g, step, question)}
		for _, name := range []string{"result", "none"} {
			res, err := shotsIn(ctx, theirs, name)
			if err != nil {
				return nil, err
			}
			if res != nil {
				res.Source = in.Recorded
				return res, keepShots(ctx, l, *res)
			}
		}
	}
	return nil, nil
}

func shotsIn(ctx context.Context, l ledger, name string) (*work.ShotsResult, error) {
	raw, err := l.s.ReadName(ctx, l.name(name))
	if errors.Is(err, store.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var r shotsResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, fmt.Errorf("%s of call %s: %w", name, l.call, err)
	}
	r.Result.Source = r.Source
	return &r.Result, nil
}

// keepShots records pictures, or that there were none after all attempts.
func keepShots(ctx context.Context, l ledger, res work.ShotsResult) error {
	name := "result"
	if res.Count == 0 {
		name = "none"
	}
	raw, err := json.Marshal(shotsResult{Version: callVersion, Call: l.call, Result: res, Source: res.Source})
	if err != nil {
		return err
	}
	_, err = l.s.Create(ctx, l.name(name), raw)
	return err
}

// FindCheckpoint gives the checkpoint of a name, after all that it names was found in the store undamaged.
func (a *Activities) FindCheckpoint(ctx context.Context, in work.CheckpointInput) (run.Checkpoint, error) {
	s, err := a.store(ctx, in.Store)
	if err != nil {
		return run.Checkpoint{}, err
	}
	c, err := SoundCheckpoint(ctx, s, in.RunID, in.ID)
	var none *rundir.NoCheckpointError
	var wrong *run.CheckpointError
	if errors.As(err, &none) || errors.As(err, &wrong) || errors.Is(err, rundir.ErrDamaged) {
		return c, badInput("%v", err)
	}
	return c, err
}

// SoundCheckpoint finds a checkpoint in a store, and sees that everything it names is there undamaged. id is its name, or a boundary: pass-35 is the
// place before that pass, cycle-2 that before that cycle.
func SoundCheckpoint(ctx context.Context, s *store.Store, runID, id string) (run.Checkpoint, error) {
	c, err := rundir.FindCheckpoint(ctx, blobs{s}, runID, id)
	if err != nil {
		return c, err
	}
	if err := rundir.Sound(ctx, blobs{s}, c); err != nil {
		return c, err
	}
	if t := c.State.Tree; t != nil {
		if _, err := tree.Load(ctx, s, store.Digest(t.Digest)); err != nil {
			return c, fmt.Errorf("checkpoint %s is %w: workspace integrity check failed: %v", c.ID, rundir.ErrDamaged, err)
		}
	}
	return c, nil
}
