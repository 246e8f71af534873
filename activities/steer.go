package activities

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/calls"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// steered returns the session of a call that an operator interrupted with an instruction. The instruction changed the
// prompt, so its deliveries asked another question of the same call. nil: there is none that this host can continue.
func (a *Activities) steered(ctx context.Context, st *runningCall, in contract.PassInput) (*calls.Session, error) {
	asked, _, ok := cutQuestion(st.l.Call)
	if len(in.Steering) == 0 || !ok {
		return nil, nil
	}
	names, err := st.l.Store.List(ctx, "calls/"+asked+".")
	if err != nil {
		return nil, err
	}
	var newest calls.Claim
	var found *calls.Session
	for _, name := range names {
		call := strings.TrimPrefix(path.Dir(name), "calls/")
		if n, is := calls.Ended(path.Base(name)); is && call != st.l.Call {
			l := calls.Ledger{Store: st.l.Store, Call: call}
			end, err := l.ReadEnd(ctx, n)
			if err != nil || end == nil || a.usable(end.Session) == nil {
				continue // it is read again when it is continued
			}
			if c, err := l.ReadClaim(ctx, n); err == nil && c.At >= newest.At {
				newest, found = c, end.Session
			}
		}
	}
	if found != nil {
		found.Late, found.Instructions = false, slices.Clone(in.Steering)
	}
	return found, nil
}

// cutQuestion splits the id of a call into what the workflow names it and the digest of its question.
func cutQuestion(id string) (call, question string, ok bool) {
	i := strings.LastIndexByte(id, '.')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}

// instructed is the prompt that continues a session with the instructions for which it was interrupted.
func instructed(texts []string) string {
	return "An operator interrupted you with an instruction:\n\n" + strings.Join(texts, "\n\n") +
		"\n\nYour changes to files are kept. Follow the instruction, and continue where you stopped.\n"
}

// steering returns the instructions of a prompt: those that the workflow chose, or in a replay those that the prompt of
// the same pass contained.
func (c *composer) steering() ([]string, error) {
	texts, recorded := c.in.Context.Steering, c.in.Context.Recorded
	if recorded == nil {
		return texts, nil
	}
	var all []run.Instruction
	if err := c.s.GetJSON(c.ctx, store.Digest(recorded.Digest), &all); err != nil {
		return nil, fmt.Errorf("read the instructions of the recorded run: %w", err)
	}
	for _, i := range all {
		if i.UsedAt(c.step.Key, c.in.At.Round, c.in.At.Member) {
			texts = append(texts, i.Text)
		}
	}
	return texts, nil
}
