package calls

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/passbook-run/passbook/internal/adapter"
	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/blobs"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
)

// Call is what a store has of one call: what was asked and answered, whether or not the run used it.
type Call struct {
	ID         string    `json:"call"`       // with the digest of what was asked
	Deliveries int       `json:"deliveries"` // claims
	Prompt     string    `json:"prompt"`     // digest; empty: not known
	Answered   bool      `json:"answered"`   // else its outcome is unknown
	At         string    `json:"at"`         // when it was answered, or else claimed
	Reply      string    `json:"-"`          // its text
	Output     *run.Blob `json:"output"`     // all that came back
	Envelope   *run.Blob `json:"envelope"`   // what the agent reported, one JSON object a line
	File       *run.Blob `json:"file"`       // the artifact, if the agent wrote it
	Tree       *run.Blob `json:"tree"`       // the workspace as the agent left it
	USD        *float64  `json:"usd"`        // as the agent reported it, with what came too late; null: not known
	Superseded int       `json:"late"`       // answers that came after the one that counts
	Lost       []string  `json:"lost"`       // what the store does not give, in words
}

// List returns all calls of a root run in a store, ordered by id. What cannot be read is listed in [Call.Lost].
func List(ctx context.Context, s *store.Store, root string) ([]Call, error) {
	names, err := s.List(ctx, "calls/"+root+"/")
	if err != nil {
		return nil, err
	}
	found := map[string]*Call{}
	for _, name := range names {
		id := strings.TrimPrefix(path.Dir(name), "calls/")
		if found[id] == nil {
			found[id] = &Call{ID: id, Lost: []string{}}
		}
		if err := found[id].take(ctx, s, name); err != nil {
			return nil, err
		}
	}
	out := make([]Call, 0, len(found))
	for _, c := range found {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Call) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// take reads one name of the call.
func (c *Call) take(ctx context.Context, s *store.Store, name string) error {
	what, _, _ := strings.Cut(path.Base(name), "-")
	if !slices.Contains([]string{"claim", "result", "superseded"}, what) {
		return nil
	}
	raw, err := s.ReadName(ctx, name)
	if err != nil {
		return err
	}
	if what == "claim" {
		var cl Claim
		if err := json.Unmarshal(raw, &cl); err != nil {
			c.Lost = append(c.Lost, fmt.Sprintf("%s: %v", name, err))
			return nil
		}
		c.Deliveries++
		c.Prompt, c.At = cl.Prompt, max(c.At, cl.At)
		return nil
	}
	var ans Answer
	if err := json.Unmarshal(raw, &ans); err != nil || ans.Stdout.Digest == "" {
		return nil // of pictures, or never started: there is no reply
	}
	if what == "result" {
		c.Answered, c.Output, c.Envelope, c.File, c.Tree = true, &ans.Stdout, ans.Envelope, ans.File, ans.Tree
	} else {
		c.Superseded++
	}
	return c.read(ctx, s, ans, what == "result")
}

// read takes text and cost out of an answer.
func (c *Call) read(ctx context.Context, s *store.Store, ans Answer, counts bool) error {
	stdout, err := blobs.Get(ctx, s, ans.Stdout.Digest)
	if errors.Is(err, store.ErrMissing) || errors.Is(err, store.ErrDamaged) {
		c.Lost = append(c.Lost, "the output: "+err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	kind := cmp.Or(ans.Reply, adapter.Text)
	if ans.Reply == "" && agent.Complete(adapter.ClaudeJSON, stdout) {
		kind = adapter.ClaudeJSON
	}
	reply, _ := agent.ReadReply(kind, stdout, ans.Exit, "", agent.Prices{}, 0)
	if counts {
		c.Reply = reply.Text
	}
	if reply.Known != run.CostUnknown && !reply.Estimated {
		usd := run.Cents(reply.CostUSD)
		if c.USD != nil {
			usd = run.Cents(usd + *c.USD)
		}
		c.USD = &usd
	}
	return nil
}
