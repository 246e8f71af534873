package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/agent"
	"github.com/passbook-run/passbook/process"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/store"
	"github.com/passbook-run/passbook/work"
)

// Versions of claims and results in the store. A result of version 1 does not say what was read out of it.
const (
	callVersion   = 1
	answerVersion = 2
)

// claim is one delivery of a call, made exclusively before its agent starts. It lives as long as its supervisor. A claim without a result is a call whose
// outcome is unknown.
type claim struct {
	Version int              `json:"version"`
	Call    string           `json:"call"`
	Request string           `json:"request"` // digest of what is asked
	Prompt  string           `json:"prompt"`  // digest of the words
	Host    string           `json:"host"`
	Worker  process.Identity `json:"worker"`
	Scratch string           `json:"scratch"`
	At      string           `json:"at"`

	Supervisor process.Identity `json:"supervisor"`
	Deadline   string           `json:"deadline"` // when the supervisor has ended the agent at the latest
}

// answer is what came back, and what it holds. The first one of a call wins.
type answer struct {
	Version   int            `json:"version"`
	Call      string         `json:"call"`
	Delivery  int            `json:"delivery"`
	Host      string         `json:"host"`
	Exit      agent.Exit     `json:"exit"`
	Spawn     *agent.Failure `json:"spawn,omitempty"` // it could not be started
	Prompt    string         `json:"prompt"`          // digest of what the agent was sent
	Stdout    run.Blob       `json:"stdout"`
	Stderr    run.Blob       `json:"stderr"`
	Envelope  *run.Blob      `json:"envelope,omitempty"` // what the agent reported: its JSON, one object a line
	Read      reading        `json:"read"`
	File      *run.Blob      `json:"file,omitempty"`      // the artifact as the agent wrote it
	Tree      *run.Blob      `json:"tree,omitempty"`      // the workspace as the agent left it
	Recovered bool           `json:"recovered,omitempty"` // read from the files that a dead worker left
	Source    string         `json:"source,omitempty"`    // call of another run that it was copied from: it was paid for there

	StdoutError  string        `json:"stdout_error,omitempty"`  // why Stdout is not all that the agent printed
	FileError    string        `json:"file_error,omitempty"`    // why what the agent left is no artifact
	TreeError    string        `json:"tree_error,omitempty"`    // why what the agent left is no tree
	Skipped      []run.LeftOut `json:"skipped,omitempty"`       // the first of what it left that is no part of the tree
	SkippedCount int           `json:"skipped_count,omitempty"` // all of that
}

// ledger is one call in the store: calls/<id>/claim-<n> and calls/<id>/result.
type ledger struct {
	s    *store.Store
	call string
}

func (l ledger) name(of string) string { return "calls/" + l.call + "/" + of }

// result gives the answer, if there is one.
func (l ledger) result(ctx context.Context) (*answer, error) {
	raw, err := l.s.ReadName(ctx, l.name("result"))
	if errors.Is(err, store.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var ans answer
	if err := json.Unmarshal(raw, &ans); err != nil {
		return nil, fmt.Errorf("result of call %s: %w", l.call, err)
	}
	return &ans, nil
}

// put stores an answer. The first wins; a second is kept as superseded, and noted for the run, because it was paid for too. won says which this one was.
func (l ledger) put(ctx context.Context, ans answer) (won bool, err error) {
	raw, err := json.Marshal(ans)
	if err != nil {
		return false, err
	}
	won, err = l.s.Create(ctx, l.name("result"), raw)
	if err != nil || won {
		return won, err
	}
	first, err := l.result(ctx)
	if err != nil || ans.Source != "" || first != nil && first.Delivery == ans.Delivery {
		return false, err // it is that one, read once more, or was paid for elsewhere
	}
	kept, err := l.s.Create(ctx, l.name(fmt.Sprintf("superseded-%d", ans.Delivery)), raw)
	if err != nil || !kept || ans.Spawn != nil {
		return false, err
	}
	claims, err := l.claims(ctx)
	if err != nil {
		return false, err
	}
	late := work.Late{Call: l.call, Spend: ans.Read.Spend, Output: &ans.Stdout, Envelope: ans.Envelope}
	if n := ans.Delivery - 1; 0 <= n && n < len(claims) {
		late.Prompt = &run.Blob{Digest: claims[n].Prompt}
	}
	return false, noteLate(ctx, l.s, late)
}

// claims gives the deliveries so far.
func (l ledger) claims(ctx context.Context) ([]claim, error) {
	names, err := l.s.List(ctx, l.name("claim-"))
	if err != nil {
		return nil, err
	}
	var out []claim
	for _, name := range names {
		raw, err := l.s.ReadName(ctx, name)
		if err != nil {
			return nil, err
		}
		var c claim
		if err := json.Unmarshal(raw, &c); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// errTaken says that another worker took the delivery first.
var errTaken = errors.New("another worker took this delivery")

// claim takes delivery n: the one after all that were seen, so whoever claims has seen how every earlier one ended.
func (l ledger) claim(ctx context.Context, c claim, n int) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	won, err := l.s.Create(ctx, l.name(fmt.Sprintf("claim-%03d", n)), raw)
	if err == nil && !won {
		return errTaken
	}
	return err
}

// end says that a delivery will have no result, so nobody waits for it.
func (l ledger) end(ctx context.Context, n int) error {
	_, err := l.s.Create(ctx, l.name(fmt.Sprintf("ended-%03d", n)), []byte("{}"))
	return err
}

func (l ledger) ended(ctx context.Context, n int) (bool, error) {
	_, err := l.s.ReadName(ctx, l.name(fmt.Sprintf("ended-%03d", n)))
	if errors.Is(err, store.ErrMissing) {
		return false, nil
	}
	return err == nil, err
}

// scratchName makes a folder's name of a call id.
func scratchName(call string) string { return strings.NewReplacer("/", "_", ":", "_").Replace(call) }

func since(t time.Time) int64 { return time.Since(t).Milliseconds() }
