// Package calls is the record of paid calls: the ledger in the store (claims and results) and what their
// deliveries leave in scratch directories. It makes no calls.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/passbook-run/passbook/internal/agent"
	"github.com/passbook-run/passbook/internal/process"
	"github.com/passbook-run/passbook/internal/sandbox"
	"github.com/passbook-run/passbook/internal/store"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Versions of claims and results in the store. A result of version 1 has no reading.
const (
	Version       = 1
	AnswerVersion = 2
)

// Claim is one delivery of a call, created exclusively before its agent starts. It is valid as long as its supervisor
// runs. A claim without a result is a call whose outcome is unknown.
type Claim struct {
	Version int              `json:"version"`
	Call    string           `json:"call"`
	Request string           `json:"request"` // digest of what is asked
	Prompt  string           `json:"prompt"`  // digest of the words
	Host    string           `json:"host"`
	Worker  process.Identity `json:"worker"`
	Scratch string           `json:"scratch"`
	At      string           `json:"at"`

	Sandbox sandbox.Held `json:"sandbox"`           // what restricts the agent
	Session *Session     `json:"session,omitempty"` // that it continues
	Note    string       `json:"note,omitempty"`    // why it continues none, though its role does

	// for the costs of the host; empty for commands
	Pipeline    string `json:"pipeline,omitempty"`
	Role        string `json:"role,omitempty"`
	Account     string `json:"account,omitempty"`
	AccountName string `json:"account_name,omitempty"`

	Supervisor process.Identity `json:"supervisor"`
	Deadline   string           `json:"deadline"` // when the supervisor has ended the agent at the latest
}

// Answer is the result of a call and its reading. The first one of a call wins.
type Answer struct {
	Version   int                 `json:"version"`
	Call      string              `json:"call"`
	Delivery  int                 `json:"delivery"`
	Host      string              `json:"host"`
	Exit      agent.Exit          `json:"exit"`
	Reply     string              `json:"reply,omitempty"` // name of the adapter; empty: of an earlier release
	Spawn     *agent.Failure      `json:"spawn,omitempty"` // it could not be started
	Prompt    string              `json:"prompt"`          // digest of what the agent was sent
	Stdout    run.Blob            `json:"stdout"`
	Stderr    run.Blob            `json:"stderr"`
	Envelope  *run.Blob           `json:"envelope,omitempty"` // what the agent reported: its JSON, one object a line
	Read      Reading             `json:"read"`
	File      *run.Blob           `json:"file,omitempty"`      // the artifact as the agent wrote it
	Tree      *run.Blob           `json:"tree,omitempty"`      // the workspace as the agent left it
	Setup     *run.WorkspaceSetup `json:"setup,omitempty"`     // of the workspace, before the call; nil: there was none
	Recovered bool                `json:"recovered,omitempty"` // read from the files that a dead worker left
	Tools     *run.ToolUses       `json:"tools,omitempty"`
	Resumed   string              `json:"resumed,omitempty"` // id of the session that it continued
	Session   *Session            `json:"session,omitempty"` // it was interrupted: the next try can continue this
	Kept      *Kept               `json:"kept,omitempty"`    // of a role that continues its session
	Notes     []string            `json:"notes,omitempty"`   // about its session: warnings of the pass
	// call of another run that it was copied from: it was paid for there
	Source string `json:"source,omitempty"`

	StdoutError  string        `json:"stdout_error,omitempty"`  // why Stdout is not all that the agent printed
	FileError    string        `json:"file_error,omitempty"`    // why what the agent left is not an artifact
	TreeError    string        `json:"tree_error,omitempty"`    // why what the agent left is not a tree
	Skipped      []run.LeftOut `json:"skipped,omitempty"`       // the first of what it left that is not part of the tree
	SkippedCount int           `json:"skipped_count,omitempty"` // all of that
}

// Ledger is one call in the store: calls/<id>/claim-<n> and calls/<id>/result.
type Ledger struct {
	Store *store.Store
	Call  string
}

// Name returns the name in the store of a part of the call.
func (l Ledger) Name(of string) string { return "calls/" + l.Call + "/" + of }

// Result returns the answer, or nil if there is none.
func (l Ledger) Result(ctx context.Context) (*Answer, error) {
	return Read[Answer](ctx, l.Store, l.Name("result"))
}

// Put stores an answer. The first wins; a second one is kept as superseded and noted for the run, because it was
// paid for too. won reports whether this one was the first.
func (l Ledger) Put(ctx context.Context, ans Answer) (won bool, err error) {
	end, err := l.ReadEnd(ctx, ans.Delivery)
	if err != nil {
		return false, err
	}
	if end != nil && end.Spend != nil { // it was counted as if it would bring nothing
		ans.Read.Spend = ans.Read.Spend.Without(*end.Spend, end.Spend.UnknownCalls())
	}
	won, err = Create(ctx, l.Store, l.Name("result"), ans)
	if err != nil || won {
		return won, err
	}
	first, err := l.Result(ctx)
	if err != nil || ans.Source != "" || first != nil && first.Delivery == ans.Delivery {
		return false, err // it is that one, read once more, or was paid for elsewhere
	}
	kept, err := Create(ctx, l.Store, l.Name(fmt.Sprintf("superseded-%d", ans.Delivery)), ans)
	if err != nil || !kept || ans.Spawn != nil {
		return false, err
	}
	claims, err := l.Claims(ctx)
	if err != nil {
		return false, err
	}
	late := contract.SupersededResult{Call: l.Call, Spend: ans.Read.Spend, Output: &ans.Stdout, Envelope: ans.Envelope}
	if n := ans.Delivery - 1; 0 <= n && n < len(claims) {
		late.Prompt = &run.Blob{Digest: claims[n].Prompt}
	}
	return false, noteLate(ctx, l.Store, late)
}

// Claims returns the deliveries so far.
func (l Ledger) Claims(ctx context.Context) ([]Claim, error) {
	names, err := l.Store.List(ctx, l.Name("claim-"))
	if err != nil {
		return nil, err
	}
	var out []Claim
	for _, name := range names {
		c, err := readClaim(ctx, l.Store, name)
		if err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// ErrTaken reports that another worker has claimed the delivery first.
var ErrTaken = errors.New("another worker took this delivery")

// Claim claims delivery n, the one after all that the caller has seen end.
func (l Ledger) Claim(ctx context.Context, c Claim, n int) error {
	won, err := Create(ctx, l.Store, l.Name(fmt.Sprintf("claim-%03d", n)), c)
	if err == nil && !won {
		return ErrTaken
	}
	return err
}

// Ended reports whether delivery n will have no result.
func (l Ledger) Ended(ctx context.Context, n int) (bool, error) {
	end, err := l.ReadEnd(ctx, n)
	return end != nil, err
}

// ReadClaim returns the claim of a delivery.
func (l Ledger) ReadClaim(ctx context.Context, n int) (Claim, error) {
	return readClaim(ctx, l.Store, l.Name(fmt.Sprintf("claim-%03d", n)))
}

func readClaim(ctx context.Context, s *store.Store, name string) (Claim, error) {
	c, err := Read[Claim](ctx, s, name)
	if err == nil && c == nil {
		err = fmt.Errorf("%s: %w", name, store.ErrMissing)
	}
	if err != nil {
		return Claim{}, err
	}
	return *c, nil
}

// Read returns what is stored under a name, or nil if that is nothing.
func Read[T any](ctx context.Context, s *store.Store, name string) (*T, error) {
	raw, err := s.ReadName(ctx, name)
	if errors.Is(err, store.ErrMissing) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(raw, value); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// Create stores a value under a name, unless there is one: the first wins.
func Create(ctx context.Context, s *store.Store, name string, value any) (won bool, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return false, err
	}
	return s.Create(ctx, name, raw)
}

// FolderName returns the name of the scratch directory of a call.
func FolderName(call string) string { return strings.NewReplacer("/", "_", ":", "_").Replace(call) }

// Reading is what Passbook reads from a reply. It is made once, of the original bytes: those are not kept, and redacted
// text could give another artifact or score. The artifact is the user's data and unchanged; all other text is redacted.
type Reading struct {
	Failure *agent.Failure `json:"failure,omitempty"` // there is no reply; then only Spend is valid beside it
	Spend   run.Spend      `json:"spend"`
	Text    *run.Blob      `json:"text,omitempty"` // of the reply; of a command all that it printed

	run.Reading
	Artifact *run.Blob     `json:"artifact,omitempty"`
	Notes    []Note        `json:"notes,omitempty"`
	Findings *run.Findings `json:"findings,omitempty"`
	Data     *run.Blob     `json:"data,omitempty"`  // JSON of the reply
	Scope    []string      `json:"scope,omitempty"` // paths that the reply declares

	Full time.Time `json:"full,omitzero"` // when the window of the account resets, which the call has used up
}

// Note is what a reply adds to a notes file.
type Note struct {
	Name string `json:"name"`
	Text string `json:"text"`
}
