package api

import (
	"context"
	"fmt"
	"time"

	"github.com/passbook-run/passbook/internal/view"
	"github.com/passbook-run/passbook/run"
	"github.com/passbook-run/passbook/rundir"
)

// RunStatus is a run at one moment.
type RunStatus struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	Received  bool   `json:"received" jsonschema:"this machine has not recorded the run: its files prove no author"`
	Pipeline  string `json:"pipeline"`
	Task      string `json:"task"`
	run.ShownStatus
	Detail string `json:"detail" jsonschema:"the status in words, and what Temporal reports"`
	Means  string `json:"means" jsonschema:"what the status means"`
	Advice string `json:"advice" jsonschema:"about the error that paused the run, or its lost directory; or empty"`

	NeedsInput bool   `json:"needs_input" jsonschema:"the run waits for an answer to the question"`
	Question   *Asked `json:"question" jsonschema:"the open question; null: none"`

	// AvailableActions are names of operations.
	AvailableActions []run.Operation `json:"available_actions" jsonschema:"operations that the status allows"`

	Progress  string   `json:"progress"`
	CostUSD   float64  `json:"cost_usd" jsonschema:"of the calls whose cost is known"`
	Cost      string   `json:"cost" jsonschema:"in words, with the calls whose cost is unknown"`
	BudgetUSD float64  `json:"budget_usd" jsonschema:"0: no limit in USD"`
	Adopted   string   `json:"adopted" jsonschema:"the conversation that the first call continues, with its cost before, which is in no other number; or empty"`
	Score     *float64 `json:"score"`
	StartedAt string   `json:"started_at"`
	UpdatedAt string   `json:"updated_at" jsonschema:"time of the last event"`
	HeldUp    string   `json:"held_up" jsonschema:"why an open run does not continue; or empty"`
	LastError string   `json:"last_error"`
	Rejected  bool     `json:"not_approved" jsonschema:"it is done, but its last loop did not meet its condition"`
	Damaged   bool     `json:"damaged" jsonschema:"the directory lacks or contradicts something"`
	Next      []string `json:"next" jsonschema:"what to do, the likeliest first"`

	Host        string   `json:"host" jsonschema:"host that has the directory; empty: this one"`
	Unavailable []string `json:"unavailable" jsonschema:"what only the directory records, if it is not available here"`
}

// Asked is an open question.
type Asked struct {
	ID          string       `json:"id"`
	Kind        string       `json:"kind"`
	Text        string       `json:"text"`
	Actions     []run.Choice `json:"actions"`
	Facts       []string     `json:"facts" jsonschema:"verdict, checks, changes, cost and earlier decisions"`
	RequestedAt string       `json:"requested_at"`
	ExpiresAt   string       `json:"expires_at" jsonschema:"empty: never"`
	OnExpiry    string       `json:"on_expiry"`
}

// Status reads the status of a run. No server is needed.
func Status(ctx context.Context, h Host, in RunInput) (RunStatus, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return RunStatus{}, err
	}
	h.Refresh(ctx, d)
	r, err := h.Inspect(ctx, d)
	return h.status(r), err
}

func (h Host) status(r view.Run) RunStatus {
	s, id := r.Now.State, r.Claim.RunID
	out := RunStatus{
		RunID: r.Claim.RunID, Directory: r.Directory, Received: r.Received, Pipeline: s.Pipeline, Task: s.Task, ShownStatus: r.Effective.ShownStatus,
		Detail: r.Described(), Means: r.Means(), Advice: r.Advice(),
		Progress: s.Progress(), CostUSD: s.Total(),
		Cost: s.CostText(), BudgetUSD: s.Budget.CapUSD, Score: s.Score, Rejected: s.NotApproved(),
		StartedAt: s.StartedAt, UpdatedAt: s.TS,
		HeldUp: heldText(r.Effective, id), Damaged: r.Damaged(), AvailableActions: r.Available(),
		Unavailable: []string{},
		Next:        h.next(r),
	}
	if a := s.Adopted; a != nil {
		out.Adopted = a.Text() + ": " + a.CostText()
	}
	q, open := s.Asks()
	if open {
		asked := askedOf(&s, q)
		out.NeedsInput, out.Question = true, &asked
	}
	if p := s.Problem; p != nil {
		out.LastError = fmt.Sprintf("%s %s: %s: %s", p.TS, p.Context, p.Category, p.Message)
	}
	return out
}

func heldText(s run.EffectiveStatus, id string) string {
	switch {
	case s.NoWorker != nil:
		if n := *s.NoWorker; n.Version != nil || n.Polls != nil {
			return view.NoWorker(n) + ". " + n.Fix(id, "")
		}
		return view.NoWorker(*s.NoWorker)
	case s.Held != nil:
		return s.Held.Cause
	}
	return ""
}

// askedOf describes a question, with its facts if the state is known.
func askedOf(s *run.State, q run.Question) Asked {
	a := Asked{ID: q.ID, Kind: string(q.Kind), Text: q.Words(), RequestedAt: q.RequestedAt, ExpiresAt: q.ExpiresAt,
		OnExpiry: q.OnExpiry, Actions: q.Choices(), Facts: []string{}}
	if s == nil {
		return a
	}
	for _, f := range s.Facts(q) {
		a.Facts = append(a.Facts, f.Name+": "+f.Text)
	}
	return a
}

// WaitInput is the input of [Wait].
type WaitInput struct {
	Run     string `json:"run" jsonschema:"id of the run, the beginning of one, or its directory"`
	Seconds int    `json:"seconds,omitempty" jsonschema:"maximum time to wait; default 50, at most 3600"`
}

// Waited is the status of a run after a wait.
type Waited struct {
	RunStatus
	TimedOut bool `json:"timed_out" jsonschema:"the run still works: wait again"`
}

// askEvery is how often a wait asks the server about a run.
const askEvery = 5 * time.Second

// Wait returns the status of a run when it asks, pauses or ends, or after the time. No server is needed.
func Wait(ctx context.Context, h Host, in WaitInput) (Waited, error) {
	if in.Seconds < 0 || in.Seconds > 3600 {
		return Waited{}, invalid("wait for a run: %d seconds; use a number from 1 to 3600", in.Seconds)
	}
	d, err := h.find(in.Run)
	if err != nil {
		return Waited{}, err
	}
	if in.Seconds == 0 {
		in.Seconds = 50
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(in.Seconds)*time.Second)
	defer cancel()
	r, err := h.rest(limited, d)
	if err != nil {
		return Waited{}, err
	}
	if err := context.Cause(ctx); err != nil { // the client, not the time
		return Waited{}, fmt.Errorf("wait for run %s: %w", r.Claim.RunID, err)
	}
	return Waited{h.status(r), works(r)}, nil
}

// rest returns a run when it does not work, or as it is when ctx ends.
func (h Host) rest(ctx context.Context, d rundir.Dir) (r view.Run, err error) {
	var asked time.Time
	err = Poll(ctx, Refresh, func(now time.Time) (bool, error) {
		interval := askEvery
		if m, err := d.Meta(); err == nil && run.Status(m.Status).Class() != run.Live {
			interval = time.Second
		}
		if now.Sub(asked) < interval {
			return false, nil
		}
		asked = now
		r, err = h.Inspect(context.WithoutCancel(ctx), d)
		return !works(r), err
	})
	if err == nil && works(r) { // it is a few seconds old
		r, err = h.Inspect(context.WithoutCancel(ctx), d)
	}
	return r, err
}

// works reports whether a run works, and no question is open.
func works(r view.Run) bool {
	_, open := r.Now.State.Asks()
	return r.Effective.Status.Class() == run.Live && !open
}

// Diagnosis explains the state of a run.
type Diagnosis struct {
	RunID     string `json:"run_id"`
	Directory string `json:"directory"`
	run.ShownStatus
	Means  string               `json:"means"`
	Why    []string             `json:"why"`
	Errors []rundir.ErrorRecord `json:"errors" jsonschema:"the last five"`
	Next   []string             `json:"next" jsonschema:"what to do, the likeliest first"`
}

// Diagnose explains the state of a run and its cause. No server is needed.
func Diagnose(ctx context.Context, h Host, in RunInput) (Diagnosis, error) {
	d, err := h.find(in.Run)
	if err != nil {
		return Diagnosis{}, err
	}
	r, err := h.Inspect(ctx, d)
	if err != nil {
		return Diagnosis{}, err
	}
	last, err := LastErrors(d)
	return Diagnosis{
		RunID: r.Claim.RunID, Directory: d.Root, ShownStatus: r.Effective.ShownStatus, Means: r.Means(),
		Why: append([]string{}, r.Causes()...), Errors: append([]rundir.ErrorRecord{}, last...), Next: h.next(r),
	}, err
}
