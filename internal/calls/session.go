package calls

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/passbook-run/passbook/internal/sessions"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/workflows/contract"
)

// Session is the conversation that a delivery continues. That of an interrupted call can be continued only with the
// working directory as the agent left it: the model relies on its own changes.
type Session struct {
	ID    string `json:"id"`
	Host  string `json:"host"`
	Work  string `json:"work"`            // the working directory on that host
	Of    string `json:"of,omitempty"`    // the program: claude, codex or gemini
	Cause string `json:"cause,omitempty"` // why the call was interrupted, for the agent
	From  string `json:"from,omitempty"`  // the session that it is a copy of
	Last  string `json:"last,omitempty"`  // the session before it, if the program has no file of it yet
	Copy  string `json:"copy,omitempty"`  // file of that copy
	Asks  bool   `json:"asks,omitempty"`  // it is of an earlier question: the delivery asks its own
	Late  bool   `json:"late,omitempty"`  // its time was nearly up: it only has to finish
	Told  bool   `json:"told,omitempty"`  // that it repeats itself

	Tree *run.Blob `json:"tree,omitempty"` // what the call left in the workspace; nil: the run has none

	Instructions []string `json:"instructions,omitempty"` // of operators, for which the call was interrupted

	Used *sessions.Usage `json:"used,omitempty"` // what it had used when the delivery began; nil: not known

	// for programs whose total of a session includes its earlier calls: what of it is counted already, if Used is not
	// known
	Counted run.Spend `json:"counted,omitzero"`
	Unknown int       `json:"unknown_calls,omitempty"` // calls of it that were counted without a known cost
}

// Kept is the session of an accepted answer, which the next call of its role continues.
type Kept struct {
	ID      string `json:"id"`
	Host    string `json:"host"`
	Program string `json:"program"` // claude, codex or gemini
	File    string `json:"file"`    // below the folder of kept sessions of that host
	Digest  string `json:"digest"`  // of session and answer

	Counted run.Spend `json:"counted,omitzero"` // as of a Session
	Unknown int       `json:"unknown_calls,omitempty"`
}

// Original returns the id of the session as an earlier call reported it.
func (s *Session) Original() string { return cmp.Or(s.From, s.ID) }

// Prior reports whether the session is one of an earlier question: the delivery asks its own.
func (s *Session) Prior() bool { return s != nil && s.Asks }

// Usable reports whether a host can continue the session: it has the working directory, in its scratch directory, or the
// tree of the workspace.
func (s *Session) Usable(host, scratch string) bool {
	if s == nil || s.Host != host || !sessions.Valid(s.ID) {
		return false
	}
	if s.Tree != nil {
		return true
	}
	if below, err := filepath.Rel(scratch, s.Work); err != nil || !filepath.IsLocal(below) {
		return false
	}
	info, err := os.Lstat(s.Work)
	return err == nil && info.IsDir()
}

// WorkDir returns the working directory of a session; of none, "".
func (s *Session) WorkDir() string {
	if s == nil {
		return ""
	}
	return s.Work
}

// End is how a delivery ended that has no result.
type End struct {
	Session *Session `json:"session,omitempty"` // the next delivery can continue it
	Refused bool     `json:"refused,omitempty"` // the agent continued no session: the next delivery starts a new one

	Spend *run.Spend `json:"spend,omitempty"` // what it cost, as far as it is known; nil: no model was asked
}

// End records that a delivery will have no result, so no worker waits for it. The run accounts for its cost.
func (l Ledger) End(ctx context.Context, n int, end End) error {
	if end.Spend != nil {
		if err := noteLate(ctx, l.Store, contract.SupersededResult{Call: l.Call, Ended: n, Spend: *end.Spend}); err != nil {
			return err
		}
	}
	_, err := Create(ctx, l.Store, l.Name(fmt.Sprintf("ended-%03d", n)), end)
	return err
}

// ReadEnd returns how delivery n ended without a result, or nil if it has one or may get one.
func (l Ledger) ReadEnd(ctx context.Context, n int) (*End, error) {
	return Read[End](ctx, l.Store, l.Name(fmt.Sprintf("ended-%03d", n)))
}

// Ended returns the number of the delivery that a name records the end of.
func Ended(name string) (n int, ok bool) {
	text, ok := strings.CutPrefix(name, "ended-")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil
}
